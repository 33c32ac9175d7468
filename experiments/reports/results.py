"""bsuite's scores of agents over seeds, with intervals.

An agent's score in an experiment covers the largest set of ids that one of its seeds
has finished, and the seeds that have finished all of these. A tag's score covers the
seeds that count in all of the tag's experiments that were run.
"""

import collections
import dataclasses
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from explorax.environments import bsuite_sweeps
from explorax.experiments import errors
from explorax.experiments.recording import statistics
from explorax.experiments.reports import catalogue, runs, scores

Key = tuple[str, str, int]  # Agent, bsuite id, seed.


@dataclasses.dataclass(frozen=True)
class Score:
  """An agent's score in an experiment, or over a tag.

  Attributes:
    mean: over seeds; NaN if the runs do not determine it. The bounds of its 95 %
      interval are NaN for fewer than two seeds.
    seeds: that count.
    ids: finished by each of these seeds.
    values: the score of each seed, in the order of `seeds`.
  """

  mean: statistics.Interval
  seeds: tuple[int, ...]
  ids: tuple[str, ...]
  values: tuple[float, ...] = ()

  @property
  def is_determined(self) -> bool:
    return not math.isnan(self.mean.value)


@dataclasses.dataclass(frozen=True)
class Results:
  """The scores of agents.

  Attributes:
    logs: of all finished runs.
    agents: those with a finished run.
    experiments: those with a finished run, in bsuite's order.
    tags: of these experiments.
    scores: (agent, experiment or tag) → score, if any of its runs is finished.
  """

  logs: Mapping[Key, scores.Log]
  agents: tuple[str, ...]
  experiments: tuple[str, ...]
  tags: tuple[str, ...]
  scores: Mapping[tuple[str, str], Score]

  def of(self, name: str, agents: Iterable[str] | None = None) -> dict[str, Score]:
    """Agent → score in an experiment or over a tag, without missing scores.

    Args:
      name: of the experiment or tag.
      agents: None for all.
    """
    chosen = self.agents if agents is None else agents
    return {a: self.scores[a, name] for a in chosen if (a, name) in self.scores}

  def identical(self, experiment: str) -> list[tuple[str, ...]]:
    """Groups of agents that cannot differ in an experiment: their logs are the same."""
    groups: dict[tuple[Any, ...], list[str]] = {}
    for agent, score in self.of(experiment).items():
      keys = [(i, seed) for i in score.ids for seed in score.seeds]
      logs = ((*key, self.logs[agent, *key]) for key in keys)
      content = tuple(
        (i, seed, *((name, log[name].tobytes()) for name in sorted(log)))
        for i, seed, log in logs
      )
      groups.setdefault(content, []).append(agent)
    return [tuple(agents) for agents in groups.values() if len(agents) > 1]

  def best(self, name: str) -> Collection[str]:
    """The agent, if any, whose interval lies above those of all others.

    Empty if agents were run on different ids.
    """
    each = {agent: x for agent, x in self.of(name).items() if x.is_determined}
    if len({frozenset(score.ids) for score in each.values()}) > 1:
      return ()
    bounds = {agent: (x.mean.low, x.mean.high) for agent, x in each.items()}
    return statistics.above_all(bounds)


def finished(
  all_runs: Sequence[runs.Run], labels: Sequence[str]
) -> dict[Key, runs.Run]:
  """The finished runs with a log of bsuite's, by agent, bsuite id and seed.

  Args:
    all_runs: all runs.
    labels: the agent of each.

  Raises:
    SetUpError: if a log lacks what its score needs.
  """
  kept = {}
  for run, agent in zip(all_runs, labels, strict=True):
    kind, _, bsuite_id = run.env.partition(":")
    if kind == "bsuite" and run.bsuite is not None and run.status == "finished":
      for name in scores.columns(bsuite_sweeps.experiment(bsuite_id)):
        if not np.isfinite(run.bsuite.get(name, math.nan)).all():
          raise errors.SetUpError(
            f"the bsuite log of {runs.relative(run.path)} has no column {name!r} "
            "of numbers; restore it, or leave the run out."
          )
      kept[agent, bsuite_id, run.seed] = run
  return kept


def compute(logs: Mapping[Key, scores.Log]) -> Results:
  """All scores of these logs."""
  by_seed: dict[tuple[str, str], dict[int, dict[str, scores.Log]]] = {}
  for (agent, bsuite_id, seed), log in logs.items():
    key = agent, bsuite_sweeps.experiment(bsuite_id)
    by_seed.setdefault(key, {}).setdefault(seed, {})[bsuite_id] = log
  found = {key: _of_experiment(key[1], seeds) for key, seeds in by_seed.items()}
  agents = tuple(dict.fromkeys(agent for agent, _ in by_seed))
  experiments = tuple(
    e for e in catalogue.EXPERIMENTS if any(e == name for _, name in by_seed)
  )
  members = {
    tag: [e for e in experiments if tag in catalogue.tags(e)] for tag in catalogue.TAGS
  }
  for agent in agents:
    for tag, names in members.items():
      each = [found[agent, name] for name in names if (agent, name) in found]
      if each:
        found[agent, tag] = _of_tag(each)
  tags = tuple(tag for tag, names in members.items() if names)
  return Results(logs, agents, experiments, tags, found)


def _of_experiment(
  experiment: str, seeds: Mapping[int, Mapping[str, scores.Log]]
) -> Score:
  """The score over the seeds with the same, largest set of ids.

  If there are several such sets, it is the one with most seeds.
  """
  sets = collections.Counter(frozenset(logs) for logs in seeds.values())
  most = max(sets, key=lambda ids: (len(ids), sets[ids]))
  ids = tuple(i for i in catalogue.ids(experiment) if i in most)
  counted = tuple(seed for seed in sorted(seeds) if seeds[seed].keys() == most)
  values = [
    scores.score(experiment, {i: seeds[seed][i] for i in ids}) for seed in counted
  ]
  mean = _without_interval(np.mean(values))
  if len(counted) > 1 and not np.isnan(values).any():
    mean = statistics.bootstrap(values)
  return Score(mean, counted, ids, tuple(values))


def _of_tag(each: list[Score]) -> Score:
  """The mean over experiments, without missing scores."""
  determined = [score for score in each if score.is_determined]
  ids = tuple(i for score in determined for i in score.ids)
  seeds = set.intersection(*(set(x.seeds) for x in determined)) if determined else set()
  if not seeds:
    return Score(_without_interval(math.nan), (), ids)
  # The seeds of each experiment.
  tasks = [
    np.array([x for s, x in zip(score.seeds, score.values, strict=True) if s in seeds])
    for score in determined
  ]
  mean = _without_interval(scores.tag_mean([float(x.mean()) for x in tasks]))
  if len(seeds) > 1:
    mean = statistics.stratified(tasks, statistics.mean_of_tasks)
  return Score(mean, tuple(sorted(seeds)), ids, tuple(np.mean(tasks, axis=0)))


def _without_interval(value: float | np.floating) -> statistics.Interval:
  return statistics.Interval(*np.array([value, math.nan, math.nan]))
