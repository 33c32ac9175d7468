"""bsuite's part of a report: scores by experiment and by tag, and Deep Sea.

An agent's score in an experiment covers the largest set of ids that one of its seeds
has finished, and the seeds that have finished all of these. A tag's score covers the
seeds that count in all of the tag's experiments that were run.
"""

import collections
import dataclasses
import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from explorax.environments import bsuite_sweeps
from explorax.experiments.recording import drawing, statistics
from explorax.experiments.reports import bsuite_scores as scores_lib
from explorax.experiments.reports import page as page_lib
from explorax.experiments.reports import runs as runs_lib

Key = tuple[str, str, int]  # Agent, bsuite id, seed.

_DEEP_SEAS = ("deep_sea", "deep_sea_stochastic")

_ABOUT = """Scores lie between 0 and 1, and 1 is best. They follow bsuite 0.3.6: a score
is computed for each seed over all of its ids, and the tables show means over seeds of
finished runs, with 95 % intervals over bootstrap draws of the seeds, for a tag of each
experiment's by themselves. A score of some ids, or of fewer episodes than bsuite's own,
cannot be compared with published scores."""
_SCORES = f"""Scores by experiment; bars: 95 % intervals; small marks: each of
{drawing.FEW} seeds or fewer."""
_DEEP_SEA = """The episode in which Deep Sea of size N is solved, by bsuite's rule,
which does not require the treasure in the stochastic version: the median over seeds,
and each seed. Hollow, at the end of the log: not solved. The dotted line is 2^N, about
the number of episodes that random exploration needs."""


@dataclasses.dataclass(frozen=True)
class Score:
  """An agent's score in an experiment, or over a tag.

  Attributes:
    mean: over seeds; NaN if the runs do not determine it. The bounds of its 95 %
      interval are NaN for fewer than two seeds.
    seeds: that count.
    ids: finished by each of these seeds.
    values: the score of each seed, in the order of `seeds`.
    logs: of an experiment's ids, for each seed.
  """

  mean: statistics.Interval
  seeds: tuple[int, ...]
  ids: tuple[str, ...]
  values: tuple[float, ...] = ()
  logs: Sequence[scores_lib.Logs] = ()


@dataclasses.dataclass(frozen=True)
class Results:
  """The scores of agents.

  Attributes:
    agents: those with a finished run.
    experiments: those with a finished run, in bsuite's order.
    tags: of these experiments.
    scores: (agent, experiment or tag) → score, if any of its runs is finished.
  """

  agents: tuple[str, ...]
  experiments: tuple[str, ...]
  tags: tuple[str, ...]
  scores: Mapping[tuple[str, str], Score]

  def of(self, name: str) -> dict[str, Score]:
    """Agent → score in an experiment or over a tag, without missing scores."""
    return {a: self.scores[a, name] for a in self.agents if (a, name) in self.scores}


def finished(
  runs: Sequence[runs_lib.Run], labels: Sequence[str]
) -> dict[Key, scores_lib.Log]:
  """The logs of the finished runs on bsuite, by agent, bsuite id and seed."""
  return {
    (agent, run.env.removeprefix("bsuite:"), run.seed): run.bsuite
    for run, agent in zip(runs, labels, strict=True)
    if run.bsuite is not None and run.status == "finished"
  }


def compute(logs: Mapping[Key, scores_lib.Log]) -> Results:
  """All scores of these logs."""
  by_seed: dict[tuple[str, str], dict[int, dict[str, scores_lib.Log]]] = {}
  for (agent, bsuite_id, seed), log in logs.items():
    key = agent, bsuite_sweeps.experiment(bsuite_id)
    by_seed.setdefault(key, {}).setdefault(seed, {})[bsuite_id] = log
  scores = {key: _of_experiment(key[1], seeds) for key, seeds in by_seed.items()}
  agents = tuple(dict.fromkeys(agent for agent, _ in by_seed))
  run = {name for _, name in by_seed}
  experiments = tuple(name for name in scores_lib.EXPERIMENTS if name in run)
  tags = []
  for tag in scores_lib.TAGS:
    names = [name for name in experiments if tag in scores_lib.tags(name)]
    tags += [tag] if names else []
    for agent in agents:
      if parts := [scores[agent, name] for name in names if (agent, name) in scores]:
        scores[agent, tag] = _of_tag(parts)
  return Results(agents, experiments, tuple(tags), scores)


def _of_experiment(
  experiment: str, seeds: Mapping[int, Mapping[str, scores_lib.Log]]
) -> Score:
  """The score over the seeds with the same, largest set of ids.

  If there are several such sets, it is the one with most seeds.
  """
  sets = collections.Counter(frozenset(logs) for logs in seeds.values())
  most = max(sets, key=lambda ids: (len(ids), sets[ids]))
  ids = tuple(i for i in scores_lib.ids(experiment) if i in most)
  counted = tuple(seed for seed in sorted(seeds) if seeds[seed].keys() == most)
  logs = [{i: seeds[seed][i] for i in ids} for seed in counted]
  values = np.array([scores_lib.score(experiment, x) for x in logs])
  return Score(_mean([values]), counted, ids, tuple(values), logs)


def _of_tag(parts: Sequence[Score]) -> Score:
  """The mean over experiments, without missing scores."""
  parts = [score for score in parts if not np.isnan(score.mean.value)]
  ids = tuple(i for score in parts for i in score.ids)
  seeds = set.intersection(*(set(x.seeds) for x in parts)) if parts else set()
  tasks = [
    np.array([x for s, x in zip(part.seeds, part.values, strict=True) if s in seeds])
    for part in parts
  ]
  return Score(_mean(tasks), tuple(sorted(seeds)), ids)


def _mean(tasks: Sequence[np.ndarray]) -> statistics.Interval:
  """Of experiments, the scores `[S]` of each; NaN if one has none."""
  if not tasks or not len(tasks[0]) or np.isnan(tasks).any():
    return statistics.Interval(*np.full(3, math.nan))
  return statistics.stratified(tasks, statistics.mean_of_tasks)


def add_to(page: page_lib.Page, results: Results) -> None:
  """Adds the sections of bsuite's scores."""
  page.add("## bsuite", _ABOUT)
  rows = [row for name in results.experiments for row in _rows(results, name)]
  page.add_table("Scores by experiment", rows, is_shown=True)
  draw: Any = functools.partial(_draw_scores, results)
  page.add_picture("scores_by_experiment", _SCORES.replace("\n", " "), draw)
  rows = [row for tag in results.tags for row in _rows(results, tag)]
  page.add_table("Scores by tag (an experiment may have several)", rows)
  deep_seas = [name for name in _DEEP_SEAS if name in results.experiments]
  if deep_seas:
    page.add("## Deep Sea", _DEEP_SEA)
  for name in deep_seas:
    draw = functools.partial(_draw_scaling, results, name)
    page.add_picture(f"scaling_{name}", f"{name}: episodes to solve it", draw)


def _rows(results: Results, name: str) -> list[page_lib.Row]:
  """A row for each agent in an experiment, or over a tag."""
  scores, total = results.of(name), len(scores_lib.ids(name))
  columns: dict[str, Any] = {
    "experiment" if name in results.experiments else "tag": name,
    "seeds": {agent: str(len(x.seeds)) for agent, x in scores.items()},
    "ids": {agent: f"{len(x.ids)} of {total}" for agent, x in scores.items()},
  }
  if name in results.experiments:
    columns["episodes"] = {agent: _episodes(x) for agent, x in scores.items()}
  means = {agent: score.mean for agent, score in scores.items()}
  return page_lib.estimates(means, "score", columns)


def _episodes(score: Score) -> str:
  """`200 of 10,000`: the fewest episodes in a log, and bsuite's number."""
  fewest = min(log["episode"][-1] for logs in score.logs for log in logs.values())
  return f"{int(fewest):,} of {bsuite_sweeps.num_episodes(score.ids[0]):,}"


def _draw_scores(results: Results) -> drawing.Figure:
  """Scores with their intervals or single seeds, a row for each experiment.

  In a row, the agents are below each other; scores without a value are skipped.
  """
  names, styles = results.experiments, drawing.styles(results.agents)
  row_height = 0.14 * len(styles) + 0.2  # Inches.
  height = 1.0 + row_height * len(names)
  fig, axes = page_lib.new(height, "Scores by experiment", len(styles))
  handles = {}
  for index, (agent, style) in enumerate(styles.items()):
    mark: Any = {"color": style.color, "marker": style.marker, "linestyle": "none"}
    (handles[agent],) = axes.plot([], [], **mark, markersize=5)
    offset = (index - 0.5 * (len(styles) - 1)) * 0.14 / row_height
    for number, name in enumerate(names):
      score, y = results.of(name).get(agent), number + offset
      if score is None or np.isnan(score.mean.value):
        continue
      if len(score.seeds) > drawing.FEW:
        axes.plot(score.mean[1:], [y, y], color=style.color, linewidth=1.4)
      elif len(score.seeds) > 1:
        axes.plot(score.values, [y] * len(score.values), **mark, ms=3, alpha=0.5)
      axes.plot([score.mean.value], [y], **mark, markersize=5)
  axes.set_yticks(range(len(names)), names)
  axes.set_yticks(np.arange(len(names) + 1) - 0.5, minor=True)
  axes.grid(axis="y", which="minor", color="0.8", linewidth=0.6)
  axes.grid(axis="x", alpha=0.4)
  axes.tick_params(axis="y", which="both", length=0)
  axes.set(xlim=(-0.03, 1.03), ylim=(len(names) - 0.5, -0.5), xlabel="score")
  page_lib.add_legend(fig, handles)
  return fig


def _draw_scaling(results: Results, experiment: str) -> drawing.Figure:
  """Episodes to solve Deep Sea against its size N: the median over seeds, and each.

  A seed without a solution would need longer than its log. If the median is such a
  seed, the mark is hollow and at the log's end.
  """
  scores, styles = results.of(experiment), drawing.styles(results.agents)
  fig, axes = page_lib.new(3.8, f"{experiment} (hollow: not solved)", len(scores))
  axes.set(yscale="log", xlabel="size N", ylabel="episodes to solve")
  handles = {}
  for number, (agent, score) in enumerate(scores.items()):
    color, linestyle, marker = styles[agent]
    mark: Any = {"color": color, "marker": marker, "linestyle": "none"}
    (handles[agent],) = axes.plot([], [], **mark | {"linestyle": linestyle})
    sizes, episodes, solved = _solutions(score)
    # Side by side, so that no mark hides another.
    x = sizes + 1.2 * ((number + 0.5) / len(scores) - 0.5)
    median = np.median(np.where(solved, episodes, np.inf), axis=0)
    ends = np.minimum(median, episodes.max(axis=0))
    axes.plot(x, ends, color=color, linestyle=linestyle, linewidth=1.3)
    for which, at_end, fill in (
      (solved, np.isfinite(median), "full"),
      (~solved, np.isinf(median), "none"),
    ):
      single = np.where(which, episodes, np.nan).T
      axes.plot(x, single, **mark, fillstyle=fill, alpha=0.5, ms=3)
      axes.plot(x[at_end], ends[at_end], **mark, fillstyle=fill, markersize=5)
  (low, high), (bottom, top) = axes.get_xlim(), axes.get_ylim()
  sizes = np.arange(np.floor(low), np.ceil(high) + 1)
  (handles["2^N"],) = axes.plot(sizes, 2.0**sizes, color="0.3", linestyle=":")
  axes.set_ylim(0.7 * bottom, 3 * top)
  axes.locator_params(axis="x", integer=True)
  drawing.shorten_numbers(axes.yaxis)
  axes.yaxis.set_minor_formatter("")
  axes.grid(alpha=0.3)
  page_lib.add_legend(fig, handles)
  return fig


def _solutions(score: Score) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
  """The sizes `[M]`; of each seed the episodes to solve, and if it has, `[S, M]`."""
  ids = sorted(score.ids, key=scores_lib.setting)
  ends = [[scores_lib.solution(i, log[i]) for i in ids] for log in score.logs]
  table = np.array(ends, np.float64)
  return np.array([*map(scores_lib.setting, ids)]), table[..., 0], table[..., 1] == 1
