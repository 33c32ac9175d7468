"""bsuite's part of a report: scores by experiment and tag, regrets, and Deep Sea.

An agent's score in an experiment covers the largest set of ids that one of its seeds
has finished, and the seeds that have finished all of these. A tag's score covers the
seeds that count in all of the tag's experiments that were run.
"""

import collections
import dataclasses
import functools
import math
import textwrap
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
_LONGEST_LABEL = 32  # Letters in a line of a y label.
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

  logs: Mapping[Key, scores_lib.Log]
  agents: tuple[str, ...]
  experiments: tuple[str, ...]
  tags: tuple[str, ...]
  scores: Mapping[tuple[str, str], Score]

  def of(self, name: str) -> dict[str, Score]:
    """Agent → score in an experiment or over a tag, without missing scores."""
    return {a: self.scores[a, name] for a in self.agents if (a, name) in self.scores}

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

  def best(self, name: str) -> Sequence[str]:
    """The agent, if any, whose interval lies above those of all others.

    Empty if agents were run on different ids.
    """
    scores = {a: x for a, x in self.of(name).items() if not np.isnan(x.mean.value)}
    if len({frozenset(score.ids) for score in scores.values()}) > 1:
      return ()
    bounds = {agent: (x.mean.low, x.mean.high) for agent, x in scores.items()}
    return statistics.above_all(bounds)


def finished(all_runs: Sequence[runs.Run], labels: Sequence[str]) -> dict[Key, Any]:
  """The logs of the finished runs on bsuite, by agent, bsuite id and seed.

  Raises:
    SetUpError: if a log lacks what its score needs.
  """
  logs = {}
  for run, agent in zip(all_runs, labels, strict=True):
    kind, _, bsuite_id = run.env.partition(":")
    if kind == "bsuite" and run.bsuite is not None and run.status == "finished":
      for name in scores_lib.columns(bsuite_sweeps.experiment(bsuite_id)):
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
  members = {
    tag: [name for name in experiments if tag in scores_lib.tags(name)]
    for tag in scores_lib.TAGS
  }
  for agent in agents:
    for tag, names in members.items():
      parts = [scores[agent, name] for name in names if (agent, name) in scores]
      if parts:
        scores[agent, tag] = _of_tag(parts)
  tags = tuple(tag for tag, names in members.items() if names)
  return Results(logs, agents, experiments, tags, scores)


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
  values = [
    scores_lib.score(experiment, {i: seeds[seed][i] for i in ids}) for seed in counted
  ]
  mean = _without_interval(np.mean(values))
  if len(counted) > 1 and not np.isnan(values).any():
    mean = statistics.bootstrap(values)
  return Score(mean, counted, ids, tuple(values))


def _of_tag(parts: Sequence[Score]) -> Score:
  """The mean over experiments, without missing scores."""
  parts = [score for score in parts if not np.isnan(score.mean.value)]
  ids = tuple(i for score in parts for i in score.ids)
  seeds = set.intersection(*(set(x.seeds) for x in parts)) if parts else set()
  if not seeds:
    return Score(_without_interval(math.nan), (), ids)
  tasks = [
    np.array([x for s, x in zip(part.seeds, part.values, strict=True) if s in seeds])
    for part in parts
  ]
  mean = _without_interval(np.mean([np.mean(x) for x in tasks]))
  if len(seeds) > 1:
    mean = statistics.stratified(tasks, statistics.mean_of_tasks)
  return Score(mean, tuple(sorted(seeds)), ids, tuple(np.mean(tasks, axis=0)))


def _without_interval(value: float | np.floating) -> statistics.Interval:
  return statistics.Interval(*np.array([value, math.nan, math.nan]))


def add_to(report: page.Report, found: Results, lengths: Mapping[str, str]) -> None:
  """Adds the sections of bsuite's scores.

  Args:
    report: to add to.
    found: the scores.
    lengths: experiment → the length of its runs, if it is not bsuite's own.
  """
  report.add("## bsuite", _ABOUT)
  report.add_table(
    "Scores by experiment",
    [row for name in found.experiments for row in _rows(found, name, lengths)],
    is_shown=True,
  )
  same = {name: found.identical(name) for name in found.experiments}
  for name, groups in same.items():
    report.add(*(f"{name}: the logs of {', '.join(x)} are identical." for x in groups))
  starred = [name for name, groups in same.items() if groups]
  report.add_picture(
    "scores_by_experiment",
    functools.partial(_draw_scores, found, starred),
    f"Scores by experiment; {_BARS}."
    + (" A star: some agents have identical logs." if starred else ""),
  )
  report.add_table(
    "Scores by tag (an experiment may have several)",
    [row for tag in found.tags for row in _rows(found, tag, {})],
  )
  report.add("## bsuite: learning curves", _REGRETS)
  for name in found.experiments:
    report.add_picture(
      f"curve_{name}",
      functools.partial(_draw_regrets, found, name),
      f"{name}: {scores_lib.regret_name(name)}, on average so far.",
    )
  deep_seas = [name for name in _DEEP_SEAS if name in found.experiments]
  if deep_seas:
    report.add("## Deep Sea", _DEEP_SEA)
    report.add_table(
      "The treasure: the share of all logged episodes that found it (the best policy's "
      "is limited by failing moves), and the seeds that solved it by bsuite's rule",
      [row for name in deep_seas for row in _treasure_rows(found, name)],
    )
  for name in deep_seas:
    report.add_picture(
      f"scaling_{name}",
      functools.partial(_draw_scaling, found, name),
      f"{name}: median over seeds; {_BARS}. Hollow, at the end of the log: not solved, "
      "by the seed or by at least half of them.",
    )


def _rows(
  found: Results, name: str, lengths: Mapping[str, str]
) -> Iterator[dict[str, str]]:
  """A row for each agent in an experiment, or over a tag."""
  best, total = found.best(name), len(scores_lib.ids(name))
  for agent, score in found.of(name).items():
    value, interval = page.cells(score.mean, bold=agent in best)
    row = {
      "experiment" if name in found.experiments else "tag": name,
      "agent": page.code(agent),
      "score": value,
      "95 % interval": interval,
      "seeds": str(len(score.seeds)),
      "ids": f"{len(score.ids)} of {total}",
    }
    yield {**row, "episodes": lengths[name]} if name in lengths else row


def _treasure_rows(found: Results, experiment: str) -> Iterator[dict[str, str]]:
  scores = found.of(experiment)
  ids = dict.fromkeys(i for score in scores.values() for i in score.ids)
  for bsuite_id in sorted(ids, key=lambda i: scores_lib.setting(i) or 0):
    for agent, score in scores.items():
      if bsuite_id not in score.ids:
        continue
      logs = [found.logs[agent, bsuite_id, seed] for seed in score.seeds]
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


def _marks(found: Results) -> dict[str, dict[str, Any]]:
  """The colour and marker of each agent, which are the same in all drawings."""
  return {
    agent: {"color": style.color, "marker": style.marker}
    for agent, style in drawing.styles(found.agents).items()
  }


def _draw_scores(found: Results, starred: Sequence[str]) -> "mpl_figure.Figure":
  """Scores with their intervals or single seeds, a row for each experiment.

  In a row, the agents are below each other; scores without a value are skipped.
  """
  step, gap = 0.14, 0.2  # Inches per agent, and between rows.
  agents, marks, names = found.agents, _marks(found), found.experiments
  row_height = step * len(agents) + gap
  most = max(len(x.seeds) for name in names for x in found.of(name).values())
  title = "Scores by experiment"
  if most > 1:
    spread = "bars: 95 % intervals" if most > drawing.FEW else "small: each seed"
    title += f" ({spread})"
  fig, axes = page.new(1.0 + row_height * len(names), title, agents)
  for number, name in enumerate(names):
    for agent, score in found.of(name).items():
      if np.isnan(score.mean.value):
        continue
      index = agents.index(agent) - 0.5 * (len(agents) - 1)
      y = number + index * step / row_height
      mean, mark = score.mean, marks[agent] | {"linestyle": "none"}
      if len(score.seeds) > drawing.FEW:
        axes.plot([mean.low, mean.high], [y, y], color=mark["color"], linewidth=1.4)
      elif len(score.seeds) > 1:
        axes.plot(score.values, [y] * len(score.values), **mark, ms=3, alpha=0.5)
      axes.plot([mean.value], [y], **mark, markersize=5)
  lines = [
    axes.plot([], [], **marks[agent], markersize=5, linestyle="none")[0]
    for agent in agents
  ]
  labels = [f"{name} *" if name in starred else name for name in names]
  axes.set_yticks(range(len(names)), labels)
  axes.set_yticks(np.arange(len(names) + 1) - 0.5, minor=True)
  axes.grid(axis="y", which="minor", color="0.8", linewidth=0.6)
  axes.grid(axis="x", alpha=0.4)
  axes.tick_params(axis="y", which="both", length=0)
  axes.set(xlim=(-0.03, 1.03), ylim=(len(names) - 0.5, -0.5), xlabel="score")
  page.add_legend(fig, lines, agents)
  return fig


def _draw_regrets(found: Results, experiment: str) -> "mpl_figure.Figure":
  """The average regret up to each episode: mean over ids and seeds."""
  scores = found.of(experiment)
  fig, axes = page.new(3.2, experiment, scores)
  styles, lines = drawing.styles(found.agents), []
  for agent, score in scores.items():
    episodes, values = _regrets(found, agent, experiment, score)
    first = len(axes.lines)
    drawing.seeds(
      axes, episodes, values, label=agent, style=styles[agent], markers=True
    )
    lines.append(axes.lines[first])
  value, name = scores_lib.reference(experiment)
  axes.axhline(value, color="0.35", linewidth=0.9, linestyle=(0, (1, 2)))
  place = {"transform": axes.get_yaxis_transform(), "va": "bottom"}
  axes.text(0.02, value, name, **place, fontsize="small", color="0.25")
  axes.set(xscale="log", xlabel="episode")
  regret = scores_lib.regret_name(experiment)
  axes.set_ylabel(textwrap.fill(f"{regret}, mean so far", _LONGEST_LABEL))
  drawing.shorten_numbers(axes.xaxis)
  bottom, top = axes.get_ylim()
  axes.set_ylim(min(0.0, bottom), max(top, 1.12 * value))  # Leaves room for its label.
  axes.grid(alpha=0.3)
  page.add_legend(fig, lines, scores)
  return fig


def _regrets(
  found: Results, agent: str, experiment: str, score: Score
) -> tuple[np.ndarray, np.ndarray]:
  """An agent's learning curve.

  Returns:
    The episodes `[N]` that all of its logs contain, and the average regret up to each
    of them, as the mean over ids, `[S, N]` for S seeds.
  """
  logs = [[found.logs[agent, i, seed] for i in score.ids] for seed in score.seeds]
  logged = [set(log["episode"]) for of_seed in logs for log in of_seed]
  episodes = np.array(sorted(set.intersection(*logged)))

  def curve(log: scores_lib.Log) -> np.ndarray:
    is_common = np.isin(log["episode"], episodes)
    return scores_lib.average_regret(experiment, log)[is_common]

  values = [np.mean([curve(log) for log in of_seed], axis=0) for of_seed in logs]
  return episodes, np.stack(values)


def _draw_scaling(found: Results, experiment: str) -> "mpl_figure.Figure":
  """Episodes to solve Deep Sea against its size N: the median over seeds.

  A seed without a solution would need longer than its log. If the median is such a
  seed, the mark is hollow and at the log's end.
  """
  solutions = {
    agent: columns
    for agent, score in found.of(experiment).items()
    if len((columns := _solutions(found, agent, score))[0])
  }
  names = [*solutions, "2^N"]
  fig, axes = page.new(3.8, f"{experiment} (hollow: not solved)", names)
  styles, marks, lines = drawing.styles(found.agents), _marks(found), []
  for number, (agent, (sizes, episodes, solved)) in enumerate(solutions.items()):
    ends = episodes.max(axis=0)  # Ends of the logs, for seeds without a solution.
    interval = median_episodes(episodes, solved)
    value, low, high = (np.minimum(x, ends) for x in interval)
    # Side by side, so that no bar hides another.
    x = sizes + 1.2 * ((number + 0.5) / len(solutions) - 0.5)
    line = {"color": styles[agent].color, "linestyle": styles[agent].linestyle}
    axes.plot(x, value, **line, linewidth=1.3)
    if len(episodes) > drawing.FEW:
      axes.vlines(x, low, high, color=line["color"], linewidth=1.3)
    elif len(episodes) > 1:
      for which, fill in ((solved, "full"), (~solved, "none")):
        small = marks[agent] | {"fillstyle": fill, "linestyle": "none", "alpha": 0.5}
        axes.plot(x, np.where(which, episodes, np.nan).T, **small, ms=3)
    for at, median, y in zip(x, interval.value, value, strict=True):
      fill = "none" if median == math.inf else "full"
      axes.plot([at], [y], **marks[agent], fillstyle=fill, markersize=5)
    lines += axes.plot([], [], **{**line, **marks[agent]})
  ids = [i for score in found.of(experiment).values() for i in score.ids]
  every = [scores_lib.setting(i) or 0 for i in ids]
  sizes = np.arange(min(every) - 1, max(every) + 2)
  lines += axes.plot(sizes, 2.0**sizes, color="0.3", linestyle=(0, (1, 1.5)))
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
  page.add_legend(fig, lines, names)
  return fig


def _solutions(
  found: Results, agent: str, score: Score
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
  """When an agent has solved Deep Sea.

  Returns:
    The sizes `[M]` whose logs are long enough for bsuite's rule, and for each of S
    seeds the episode `[S, M]` and whether it was solved, bool `[S, M]`.
  """
  columns = {}
  for bsuite_id in sorted(score.ids, key=lambda i: scores_lib.setting(i) or 0):
    solutions = [
      scores_lib.solution(bsuite_id, found.logs[agent, bsuite_id, seed])
      for seed in score.seeds
    ]
    if None not in solutions:
      columns[scores_lib.setting(bsuite_id)] = solutions
  # [M, S, 2]
  table = np.array([*columns.values()], np.float64)
  table = table.reshape(len(columns), len(score.seeds), 2)
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
