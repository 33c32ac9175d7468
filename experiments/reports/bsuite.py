"""bsuite's part of a report: scores by experiment and tag, regrets, and Deep Sea.

An agent's score in an experiment covers the largest set of ids that one of its seeds
has finished, and the seeds that have finished all of these. A tag's score covers the
seeds that count in all of the tag's experiments that were run.
"""

import collections
import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from explorax.environments import bsuite_sweeps
from explorax.experiments import errors
from explorax.experiments.recording import drawing, statistics
from explorax.experiments.reports import bsuite_scores as scores_lib
from explorax.experiments.reports import page, runs

if TYPE_CHECKING:
  from matplotlib import figure as mpl_figure

Key = tuple[str, str, int]  # Agent, bsuite id, seed.

_DEEP_SEAS = ("deep_sea", "deep_sea_stochastic")
_NEVER = 1e18  # Episodes.
_BARS = f"bars: 95 % intervals; small marks: each of {drawing.FEW} seeds or fewer"

_ABOUT = """Scores lie between 0 and 1, and 1 is best. They follow bsuite 0.3.6 and
are equal to bsuite's own on the same logs: a score is computed for each seed over
all of its ids, and the tables show means over seeds of finished runs, with 95 %
intervals over bootstrap draws of the seeds, for a tag of each experiment's by
themselves. A score of some ids, or of fewer episodes than bsuite's own, cannot be
compared with published scores. Bold: the best, if its interval lies above all others
and agents were run on the same ids."""
_REGRETS = """The average regret over all episodes so far, at the episodes that
bsuite logs: its mean over ids and seeds, with 95 % bands, or small marks for each of
few seeds. Lower is better. The dotted line is the score's reference: a baseline,
whose regret scores 0, or a threshold, below which a setting counts as learnt."""
_DEEP_SEA = """The episode in which Deep Sea of size N is solved, by bsuite's rule:
the share of episodes so far that left the diagonal by a move to the left is below
0.9; in the stochastic version below 0.8, from episode 100 on. There the rule does
not require the treasure, since failing moves leave the diagonal, where bsuite counts
no episode as missed. The table therefore has the share of episodes that found it.
The dotted line is 2^N, about the number of episodes that random exploration needs."""
_TREASURE = """The treasure: the share of all logged episodes that found it (the best
policy's is limited by failing moves), and the seeds that solved it by bsuite's rule"""


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


def finished(all_runs: Sequence[runs.Run], labels: Sequence[str]) -> dict[Key, Any]:
  """The logs of the finished runs on bsuite, by agent, bsuite id and seed.

  Raises:
    SetUpError: if a log lacks what its score needs.
  """
  logs = {}
  for run, agent in zip(all_runs, labels, strict=True):
    kind, _, bsuite_id = run.env.partition(":")
    if kind == "bsuite" and run.bsuite is not None and run.status == "finished":
      for name in scores_lib.kind(bsuite_sweeps.experiment(bsuite_id)).columns:
        if not np.isfinite(run.bsuite.get(name, math.nan)).all():
          raise errors.SetUpError(
            f"the bsuite log of {runs.relative(run.path)} has no column {name!r} "
            "of numbers; restore it, or leave the run out."
          )
      logs[agent, bsuite_id, run.seed] = run.bsuite
  return logs


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
  of_tag = {
    x: [e for e in experiments if x in scores_lib.tags(e)] for x in scores_lib.TAGS
  }
  for agent in agents:
    for tag, names in of_tag.items():
      parts = [scores[agent, name] for name in names if (agent, name) in scores]
      if parts:
        scores[agent, tag] = _of_tag(parts)
  tags = tuple(tag for tag, names in of_tag.items() if names)
  return Results(agents, experiments, tags, scores)


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
  values = np.mean(tasks, axis=0) if seeds else ()
  return Score(_mean(tasks), tuple(sorted(seeds)), ids, tuple(values))


def _mean(tasks: Sequence[np.ndarray]) -> statistics.Interval:
  """Of experiments, the scores `[S]` of each; NaN if one has none."""
  if not tasks or not len(tasks[0]) or np.isnan(tasks).any():
    return statistics.Interval(*np.full(3, math.nan))
  return statistics.stratified(tasks, statistics.mean_of_tasks)


def add_to(report: page.Report, found: Results, lengths: Mapping[str, str]) -> None:
  """Adds the sections of bsuite's scores.

  Args:
    report: to add to.
    found: the scores.
    lengths: experiment → the length of its runs, if it is not bsuite's own.
  """
  report.add("## bsuite", _ABOUT)
  rows = [row for name in found.experiments for row in _rows(found, name, lengths)]
  report.add_table("Scores by experiment", rows, is_shown=True)
  caption = f"Scores by experiment; {_BARS}."
  report.add_picture("scores_by_experiment", _draw_scores, caption, found)
  report.add_table(
    "Scores by tag (an experiment may have several)",
    [row for tag in found.tags for row in _rows(found, tag, {})],
  )
  report.add("## bsuite: learning curves", _REGRETS)
  for name in found.experiments:
    caption = f"{name}: {scores_lib.kind(name).regret}, on average so far."
    report.add_picture(f"curve_{name}", _draw_regrets, caption, found, name)
  deep_seas = [name for name in _DEEP_SEAS if name in found.experiments]
  if deep_seas:
    report.add("## Deep Sea", _DEEP_SEA)
    rows = [row for name in deep_seas for row in _treasure_rows(found, name)]
    report.add_table(_TREASURE.replace("\n", " "), rows)
  for name in deep_seas:
    caption = (
      f"{name}: median over seeds; {_BARS}. Hollow, at the end of the log: not solved, "
      "by the seed or by at least half of them."
    )
    report.add_picture(f"scaling_{name}", _draw_scaling, caption, found, name)


def _rows(found: Results, name: str, lengths: Mapping[str, str]) -> list[page.Row]:
  """A row for each agent in an experiment, or over a tag."""
  scores, total = found.of(name), len(scores_lib.ids(name))
  columns: dict[str, Any] = {
    "experiment" if name in found.experiments else "tag": name,
    "seeds": {agent: str(len(x.seeds)) for agent, x in scores.items()},
    "ids": {agent: f"{len(x.ids)} of {total}" for agent, x in scores.items()},
    **({"episodes": lengths[name]} if name in lengths else {}),
  }
  means = {agent: x.mean for agent, x in scores.items() if not np.isnan(x.mean.value)}
  are_comparable = len({frozenset(scores[agent].ids) for agent in means}) == 1
  means = {agent: score.mean for agent, score in scores.items()}
  return page.estimates(means, "score", columns, are_comparable=are_comparable)


def _treasure_rows(found: Results, experiment: str) -> Iterator[page.Row]:
  scores = found.of(experiment)
  ids = {i for score in scores.values() for i in score.ids}
  for bsuite_id in sorted(ids, key=scores_lib.setting):
    for agent, score in scores.items():
      if bsuite_id not in score.ids:
        continue
      logs = [log[bsuite_id] for log in score.logs]
      solutions = [scores_lib.solution(bsuite_id, log) for log in logs]
      solved = sum(x is not None and x.solved for x in solutions)
      rates = [scores_lib.treasure_rates(bsuite_id, log) for log in logs]
      rate = np.mean([rate for rate, _ in rates])
      yield {
        "experiment": f"{experiment}, N = {scores_lib.setting(bsuite_id):g}",
        "agent": page.code(agent),
        "treasure": "–" if np.isnan(rate) else f"{rate:.1%}",
        "best policy": f"{rates[0][1]:.1%}",
        "solved": f"{solved} of {len(logs)}",
      }


def _draw_scores(found: Results) -> "mpl_figure.Figure":
  """Scores with their intervals or single seeds, a row for each experiment.

  In a row, the agents are below each other; scores without a value are skipped.
  """
  step, gap = 0.14, 0.2  # Inches per agent, and between rows.
  names, styles = found.experiments, drawing.styles(found.agents)
  row_height = step * len(found.agents) + gap
  height = 1.0 + row_height * len(names)
  fig, axes = page.new(height, "Scores by experiment", found.agents)
  handles = []
  for index, (agent, style) in enumerate(styles.items()):
    mark: Any = {"color": style.color, "marker": style.marker, "linestyle": "none"}
    handles += axes.plot([], [], **mark, markersize=5)
    offset = (index - 0.5 * (len(styles) - 1)) * step / row_height
    for number, name in enumerate(names):
      score, y = found.of(name).get(agent), number + offset
      if score is None or np.isnan(score.mean.value):
        continue
      if len(score.seeds) > drawing.FEW:
        ends = [score.mean.low, score.mean.high]
        axes.plot(ends, [y, y], color=style.color, linewidth=1.4)
      elif len(score.seeds) > 1:
        axes.plot(score.values, [y] * len(score.values), **mark, ms=3, alpha=0.5)
      axes.plot([score.mean.value], [y], **mark, markersize=5)
  axes.set_yticks(range(len(names)), names)
  axes.set_yticks(np.arange(len(names) + 1) - 0.5, minor=True)
  axes.grid(axis="y", which="minor", color="0.8", linewidth=0.6)
  axes.grid(axis="x", alpha=0.4)
  axes.tick_params(axis="y", which="both", length=0)
  axes.set(xlim=(-0.03, 1.03), ylim=(len(names) - 0.5, -0.5), xlabel="score")
  page.add_legend(fig, handles, found.agents)
  return fig


def _draw_regrets(found: Results, experiment: str) -> "mpl_figure.Figure":
  """The average regret up to each episode: mean over ids and seeds."""
  kind = scores_lib.kind(experiment)
  lines = {a: _regrets(kind, score.logs) for a, score in found.of(experiment).items()}
  fig, axes = page.curves(
    experiment,
    lines,
    found.agents,
    xlabel="episode",
    ylabel=f"{kind.regret}, mean so far",
    markers=True,
  )
  axes.axhline(kind.reference, color="0.35", linewidth=0.9, linestyle=(0, (1, 2)))
  place: Any = {"transform": axes.get_yaxis_transform(), "va": "bottom"}
  axes.text(0.02, kind.reference, kind.reference_name, **place, fontsize="small")
  axes.set(xscale="log")
  drawing.shorten_numbers(axes.xaxis)
  bottom, top = axes.get_ylim()
  axes.set_ylim(min(0.0, bottom), max(top, 1.12 * kind.reference))
  return fig


def _regrets(
  kind: scores_lib.Kind, logs: Sequence[scores_lib.Logs]
) -> tuple[np.ndarray, np.ndarray]:
  """The episodes `[N]` that all logs contain, and the average regret up to each.

  The latter is the mean over ids, `[S, N]` for S seeds.
  """
  logged = [set(log["episode"]) for of_seed in logs for log in of_seed.values()]
  episodes = np.array(sorted(set.intersection(*logged)))

  def curve(log: scores_lib.Log) -> np.ndarray:
    return kind.average(log)[np.isin(log["episode"], episodes)]

  values = [np.mean([curve(x) for x in of_seed.values()], axis=0) for of_seed in logs]
  return episodes, np.stack(values)


def _draw_scaling(found: Results, experiment: str) -> "mpl_figure.Figure":
  """Episodes to solve Deep Sea against its size N: the median over seeds.

  A seed without a solution would need longer than its log. If the median is such a
  seed, the mark is hollow and at the log's end.
  """
  scores = found.of(experiment)
  solutions = {agent: _solutions(score) for agent, score in scores.items()}
  solutions = {agent: x for agent, x in solutions.items() if len(x[0])}
  names = [*solutions, "2^N"]
  fig, axes = page.new(3.8, f"{experiment} (hollow: not solved)", names)
  styles, handles = drawing.styles(found.agents), []
  for number, (agent, (sizes, episodes, solved)) in enumerate(solutions.items()):
    color, linestyle, marker = styles[agent]
    mark: Any = {"color": color, "marker": marker, "linestyle": "none"}
    ends = episodes.max(axis=0)  # Ends of the logs, for seeds without a solution.
    interval = median_episodes(episodes, solved)
    value, low, high = (np.minimum(x, ends) for x in interval)
    # Side by side, so that no bar hides another.
    x = sizes + 1.2 * ((number + 0.5) / len(solutions) - 0.5)
    axes.plot(x, value, color=color, linestyle=linestyle, linewidth=1.3)
    if len(episodes) > drawing.FEW:
      axes.vlines(x, low, high, color=color, linewidth=1.3)
    for which, fill in ((solved, "full"), (~solved, "none")):
      if 1 < len(episodes) <= drawing.FEW:
        small = np.where(which, episodes, np.nan).T
        axes.plot(x, small, **mark, fillstyle=fill, alpha=0.5, ms=3)
      is_drawn = np.isfinite(interval.value) == (fill == "full")
      axes.plot(x[is_drawn], value[is_drawn], **mark, fillstyle=fill, markersize=5)
    handles += axes.plot([], [], **mark | {"linestyle": linestyle})
  every = [scores_lib.setting(i) for score in scores.values() for i in score.ids]
  sizes = np.arange(min(every) - 1, max(every) + 2)
  handles += axes.plot(sizes, 2.0**sizes, color="0.3", linestyle=(0, (1, 1.5)))
  shown = [episodes for _, episodes, _ in solutions.values()]
  bottom = 0.7 * min((x.min() for x in shown), default=1.0)
  top = 3 * max((x.max() for x in shown), default=1.0)
  axes.set(yscale="log", xlabel="size N", ylabel="episodes to solve (median)")
  axes.set_ylim(bottom, max(top, 10 * bottom, 4 * 2.0 ** sizes[0]))
  axes.set_xlim(sizes[0] - 0.5, sizes[-1] + 0.5)
  axes.locator_params(axis="x", integer=True)
  drawing.shorten_numbers(axes.yaxis)
  axes.yaxis.set_minor_formatter("")
  axes.grid(alpha=0.3)
  page.add_legend(fig, handles, names)
  return fig


def _solutions(score: Score) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
  """When an agent has solved Deep Sea.

  Returns:
    The sizes `[M]` whose logs are long enough for bsuite's rule, and for each of S
    seeds the episode `[S, M]` and whether it was solved, bool `[S, M]`.
  """
  columns = {}
  for bsuite_id in sorted(score.ids, key=scores_lib.setting):
    solutions = [scores_lib.solution(bsuite_id, log[bsuite_id]) for log in score.logs]
    if None not in solutions:
      columns[scores_lib.setting(bsuite_id)] = solutions
  table = np.array([*columns.values()], np.float64)
  table = table.reshape(len(columns), len(score.seeds), 2)  # [M, S, 2]
  sizes = np.array([*columns], np.float64)
  return sizes, table[..., 0].T, table[..., 1].T.astype(bool)


def median_episodes(episodes: np.ndarray, solved: np.ndarray) -> statistics.Interval:
  """The median over seeds of the episodes to solve, and its 95 % interval.

  Args:
    episodes: `[S, M]`, of S seeds.
    solved: bool `[S, M]`; if false, the episodes to solve are ∞.

  Returns:
    An interval `[M]`; ∞ if the median is a seed without a solution.
  """
  # Percentiles are interpolated, which fails for ∞ − ∞: a large number stands for ∞,
  # and for every mean that contains it.
  interval = statistics.bootstrap(np.where(solved, episodes, _NEVER), np.median)
  return interval.map(lambda x: np.where(x < 1e-6 * _NEVER, x, math.inf))
