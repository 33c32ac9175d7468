"""bsuite's part of a report: scores by experiment and by tag, and Deep Sea.

An agent's score in an experiment covers the largest set of ids that one of its seeds
has finished, and the seeds that have finished all of these. A tag's score covers the
seeds that count in all of the tag's experiments that were run.
"""

import collections
import dataclasses
import functools
import itertools
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
Scores = Mapping[str, Mapping[str, "Score"]]  # Experiment or tag → agent → score.

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


def finished(
  runs: Sequence[runs_lib.Run], labels: Sequence[str]
) -> dict[Key, scores_lib.Log]:
  """The logs of the finished runs on bsuite, by agent, bsuite id and seed."""
  return {
    (agent, run.env.removeprefix("bsuite:"), run.seed): run.bsuite
    for run, agent in zip(runs, labels, strict=True)
    if run.bsuite is not None and run.status == "finished"
  }


def compute(logs: Mapping[Key, scores_lib.Log]) -> Scores:
  """The scores of these logs: of experiments, then of their tags, in bsuite's order."""
  seeds: dict[str, dict[str, dict[int, dict[str, scores_lib.Log]]]] = {}
  for (agent, bsuite_id, seed), log in logs.items():
    of_agent = seeds.setdefault(bsuite_sweeps.experiment(bsuite_id), {})
    of_agent.setdefault(agent, {}).setdefault(seed, {})[bsuite_id] = log
  scores = {
    name: {agent: _of_experiment(name, x) for agent, x in seeds[name].items()}
    for name in scores_lib.EXPERIMENTS
    if name in seeds
  }
  parts: dict[str, dict[str, list[Score]]] = {}
  for tag, name in itertools.product(scores_lib.TAGS, scores):
    if tag in scores_lib.tags(name):
      for agent, score in scores[name].items():
        parts.setdefault(tag, {}).setdefault(agent, []).append(score)
  return scores | {
    tag: {agent: _of_tag(x) for agent, x in of_agents.items()}
    for tag, of_agents in parts.items()
  }


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


def add_to(page: page_lib.Page, scores: Scores, agents: Sequence[str]) -> None:
  """Adds the sections of bsuite's scores; each of all agents has its style."""
  page.add("## bsuite", _ABOUT)
  tags = {name: scores[name] for name in scores if name in scores_lib.TAGS}
  experiments = {name: scores[name] for name in scores if name not in tags}
  rows = [row for name in experiments for row in _rows(name, "experiment", scores)]
  page.add_table("Scores by experiment", rows, is_shown=True)
  draw: Any = functools.partial(_draw_scores, experiments, agents)
  page.add_picture("scores_by_experiment", _SCORES.replace("\n", " "), draw)
  rows = [row for tag in tags for row in _rows(tag, "tag", scores)]
  page.add_table("Scores by tag (an experiment may have several)", rows)
  deep_seas = [name for name in _DEEP_SEAS if name in scores]
  if deep_seas:
    page.add("## Deep Sea", _DEEP_SEA)
  for name in deep_seas:
    draw = functools.partial(_draw_scaling, name, scores[name], agents)
    page.add_picture(f"scaling_{name}", f"{name}: episodes to solve it", draw)


def _rows(name: str, column: str, scores: Scores) -> list[page_lib.Row]:
  """A row for each agent in an experiment, or over a tag."""
  total = len(scores_lib.ids(name))
  columns: dict[str, Any] = {
    column: name,
    "seeds": {agent: str(len(x.seeds)) for agent, x in scores[name].items()},
    "ids": {agent: f"{len(x.ids)} of {total}" for agent, x in scores[name].items()},
  }
  if column == "experiment":
    columns["episodes"] = {agent: _episodes(x) for agent, x in scores[name].items()}
  means = {agent: score.mean for agent, score in scores[name].items()}
  return page_lib.estimates(means, "score", columns)


def _episodes(score: Score) -> str:
  """`200 of 10,000`: the fewest episodes in a log, and bsuite's number."""
  fewest = min(log["episode"][-1] for logs in score.logs for log in logs.values())
  return f"{int(fewest):,} of {bsuite_sweeps.num_episodes(score.ids[0]):,}"


def _draw_scores(scores: Scores, agents: Sequence[str]) -> drawing.Figure:
  """Scores with their intervals or single seeds, a row for each experiment.

  In a row, the agents are below each other; scores without a value are skipped.
  """
  styles = drawing.styles(agents)
  row_height = 0.14 * len(styles) + 0.2  # Inches.
  height = 1.0 + row_height * len(scores)
  fig, axes = page_lib.new(height, "Scores by experiment", len(styles))
  handles = {}
  for index, (agent, style) in enumerate(styles.items()):
    mark: Any = {"color": style.color, "marker": style.marker, "linestyle": "none"}
    (handles[agent],) = axes.plot([], [], **mark, markersize=5)
    offset = (index - 0.5 * (len(styles) - 1)) * 0.14 / row_height
    for number, of_agents in enumerate(scores.values()):
      score, y = of_agents.get(agent), number + offset
      if score is None or np.isnan(score.mean.value):
        continue
      if len(score.seeds) > drawing.FEW:
        axes.plot(score.mean[1:], [y, y], color=style.color, linewidth=1.4)
      elif len(score.seeds) > 1:
        axes.plot(score.values, [y] * len(score.values), **mark, ms=3, alpha=0.5)
      axes.plot([score.mean.value], [y], **mark, markersize=5)
  axes.set_yticks(range(len(scores)), scores)
  axes.set_yticks(np.arange(len(scores) + 1) - 0.5, minor=True)
  axes.grid(axis="y", which="minor", color="0.8", linewidth=0.6)
  axes.grid(axis="x", alpha=0.4)
  axes.tick_params(axis="y", which="both", length=0)
  axes.set(xlim=(-0.03, 1.03), ylim=(len(scores) - 0.5, -0.5), xlabel="score")
  page_lib.add_legend(fig, handles)
  return fig


def _draw_scaling(
  experiment: str, scores: Mapping[str, Score], agents: Sequence[str]
) -> drawing.Figure:
  """Episodes to solve Deep Sea against its size N: the median over seeds, and each.

  A seed without a solution would need longer than its log. If the median is such a
  seed, the mark is hollow and at the log's end.
  """
  styles = drawing.styles(agents)
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
