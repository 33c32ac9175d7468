"""bsuite's scores of agents over seeds, with intervals.

An agent's score in an experiment covers the largest set of ids that one of its seeds
has finished, and the seeds that have finished all of these; the others are left out. A
tag's score covers the seeds that count in all of the tag's experiments that were run.
"""

import collections
import dataclasses
import math
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np

from explorax.environments import bsuite_sweeps
from explorax.experiments import errors
from explorax.experiments.recording import statistics, summary
from explorax.experiments.reports import catalogue, runs, scores

Key = tuple[str, str, int]  # Agent, bsuite id, seed.


@dataclasses.dataclass(frozen=True)
class Cell:
  """An agent's score in an experiment, or over a tag.

  Attributes:
    value: the mean over seeds; NaN if the runs do not determine it.
    low: of its 95 % interval; NaN with fewer than two seeds.
    high: of its 95 % interval.
    seeds: that count.
    left_out: seeds with some results, but fewer ids.
    ids: finished by each of these seeds.
    values: the score of each seed, in the order of `seeds`; empty for a tag.
  """

  value: float
  low: float
  high: float
  seeds: tuple[int, ...]
  left_out: tuple[int, ...]
  ids: tuple[str, ...]
  values: tuple[float, ...] = ()

  @property
  def told(self) -> bool:
    return not math.isnan(self.value)

  @property
  def has_interval(self) -> bool:
    return not math.isnan(self.low)

  def words(self) -> tuple[str, str]:
    """The value and the interval, each '' if there is none."""
    value, low, high = (f"{x:.2f}" for x in (self.value, self.low, self.high))
    return value if self.told else "", f"[{low}, {high}]" if self.has_interval else ""

  @property
  def experiments(self) -> tuple[str, ...]:
    """The experiments of its ids, without duplicates."""
    return tuple(dict.fromkeys(map(bsuite_sweeps.experiment, self.ids)))


@dataclasses.dataclass(frozen=True)
class Results:
  """The scores of agents.

  Attributes:
    logs: of all finished runs.
    agents: those with a finished run.
    experiments: those with a finished run, in bsuite's order.
    tags: of these experiments.
    by_experiment: (agent, experiment) → score, if any of its runs is finished.
    by_tag: (agent, tag) → score, if any of its runs is finished.
  """

  logs: Mapping[Key, scores.Log]
  agents: tuple[str, ...]
  experiments: tuple[str, ...]
  tags: tuple[str, ...]
  by_experiment: Mapping[tuple[str, str], Cell]
  by_tag: Mapping[tuple[str, str], Cell]


def finished(found: Sequence[runs.Run], labels: Sequence[str]) -> dict[Key, runs.Run]:
  """The finished runs with a log of bsuite's, by agent, bsuite id and seed.

  Args:
    found: all runs.
    labels: the agent of each.

  Raises:
    SetUpError: if a log lacks what its score needs.
  """
  kept = {}
  for run, agent in zip(found, labels, strict=True):
    kind, _, bsuite_id = run.env.partition(":")
    if kind == "bsuite" and run.bsuite is not None and run.status == "finished":
      for name in scores.columns(bsuite_sweeps.experiment(bsuite_id)):
        if not np.isfinite(run.bsuite.get(name, math.nan)).all():
          raise errors.SetUpError(
            f"the bsuite log of {runs.shown(run.path)} has no column {name!r} of "
            "numbers; restore it, or leave the run out."
          )
      kept[agent, bsuite_id, run.seed] = run
  return kept


def compute(logs: Mapping[Key, scores.Log]) -> Results:
  """All scores of these logs."""
  done: dict[tuple[str, str], dict[int, dict[str, scores.Log]]] = {}
  for (agent, bsuite_id, seed), log in logs.items():
    key = agent, bsuite_sweeps.experiment(bsuite_id)
    done.setdefault(key, {}).setdefault(seed, {})[bsuite_id] = log
  by_experiment = {key: _of_experiment(key[1], seeds) for key, seeds in done.items()}
  agents = tuple(dict.fromkeys(agent for agent, _ in done))
  experiments = tuple(
    e for e in catalogue.EXPERIMENTS if any(key[1] == e for key in done)
  )
  tags_of = {experiment: catalogue.tags(experiment) for experiment in experiments}
  tags = tuple(t for t in catalogue.TAGS if any(t in own for own in tags_of.values()))
  by_tag = {}
  for agent in agents:
    for tag in tags:
      cells = [
        by_experiment[agent, experiment]
        for experiment in experiments
        if tag in tags_of[experiment] and (agent, experiment) in by_experiment
      ]
      if cells:
        by_tag[agent, tag] = _of_tag(cells)
  return Results(logs, agents, experiments, tags, by_experiment, by_tag)


def is_whole(experiment: str, cell: Cell) -> bool:
  """Whether the score covers all of bsuite's ids of the experiment."""
  return set(cell.ids) == set(catalogue.ids(experiment))


def is_whole_tag(tag: str, cell: Cell) -> bool:
  """Whether the score covers all ids of all of the tag's experiments."""
  every = [e for e in catalogue.EXPERIMENTS if tag in catalogue.tags(e)]
  return set(cell.ids) == {i for experiment in every for i in catalogue.ids(experiment)}


def text(found: Results) -> str:
  """The scores as text, experiment by experiment."""
  lines = []
  for experiment in found.experiments:
    cells = of_agents(found.by_experiment, experiment, found.agents)
    part = num_ids(experiment, cells)
    lines.append(f"{experiment}, score" + (f" of {part}" if part else ""))
    rows = [
      [agent, summary.count(len(cell.seeds), "seed"), *cell.words()]
      for agent, cell in cells.items()
    ]
    lines += [*summary.aligned(rows), ""]
  return "\n".join(lines)


def of_agents(
  cells: Mapping[tuple[str, str], Cell], name: str, agents: Iterable[str]
) -> dict[str, Cell]:
  """Agent → score, without missing scores."""
  return {agent: cells[agent, name] for agent in agents if (agent, name) in cells}


def num_ids(experiment: str, cells: Mapping[str, Cell]) -> str:
  """`3 of 20 ids`, or `1 to 3 of 20 ids` if agents differ; '' if none is missing.

  Args:
    experiment: of the ids.
    cells: agent → its score in it.
  """
  total = len(catalogue.ids(experiment))
  counts = {len(cell.ids) for cell in cells.values()}
  low, high = min(counts), max(counts)
  if low == total:
    return ""
  return f"{low if low == high else f'{low} to {high}'} of {total} ids"


def all_whole(found: Results, experiment: str) -> bool:
  """Whether the score of every agent that was run covers all of bsuite's ids."""
  cells = of_agents(found.by_experiment, experiment, found.agents)
  return all(is_whole(experiment, cell) for cell in cells.values())


def best(cells: Mapping[str, Cell]) -> Collection[str]:
  """The agent, if any, whose interval lies above those of all others.

  Empty if agents were run on different ids.
  """
  told = {agent: cell for agent, cell in cells.items() if cell.told}
  if len({frozenset(cell.ids) for cell in told.values()}) > 1:
    return ()
  return statistics.above_all({a: (cell.low, cell.high) for a, cell in told.items()})


def _of_experiment(
  experiment: str, seeds: Mapping[int, Mapping[str, scores.Log]]
) -> Cell:
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
  low = high = math.nan
  if len(counted) > 1 and not np.isnan(values).any():
    interval = statistics.bootstrap(np.asarray(values)[:, None]).at(0)
    low, high = float(interval.low), float(interval.high)
  return Cell(
    value=float(np.mean(values)),
    low=low,
    high=high,
    seeds=counted,
    left_out=tuple(sorted(seeds.keys() - set(counted))),
    ids=ids,
    values=tuple(values),
  )


def _of_tag(cells: list[Cell]) -> Cell:
  """The mean over experiments, without missing scores."""
  told = [cell for cell in cells if cell.told]
  every = {seed for cell in cells for seed in (*cell.seeds, *cell.left_out)}
  seeds = set.intersection(*(set(cell.seeds) for cell in told)) if told else set()
  value = low = high = math.nan
  if seeds:
    # [S, M], the seeds of M experiments.
    values = np.array(
      [
        [x for seed, x in zip(cell.seeds, cell.values, strict=True) if seed in seeds]
        for cell in told
      ]
    ).T
    value = scores.tag_mean(values.mean(axis=0))
    if len(seeds) > 1:
      interval = statistics.stratified([*values.T], statistics.mean_of_tasks)
      low, high = float(interval.low), float(interval.high)
  return Cell(
    value=value,
    low=low,
    high=high,
    seeds=tuple(sorted(seeds)),
    left_out=tuple(sorted(every - seeds)),
    ids=tuple(i for cell in told for i in cell.ids),
  )
