"""The drawings of bsuite's scores, each with its name, caption and description.

Each is narrow enough for a phone, and distinguishes agents by markers and line styles
as well as by colour.
"""

import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from explorax.experiments.recording import drawing, statistics
from explorax.experiments.reports import catalogue, pictures, results, scores

if TYPE_CHECKING:
  from matplotlib import figure as mpl_figure

DEEP_SEAS = ("deep_sea", "deep_sea_stochastic")
_NEVER = 1e18  # Episodes.
_LEAST_TAGS = 3  # Of a radar.
_LONGEST_LABEL = 32  # Letters in a line of a y label.
_BARS = f"bars: 95 % intervals; small marks: each of {drawing.FEW} seeds or fewer."


def draw(found: results.Results) -> dict[str, list[pictures.Picture]]:
  """All drawings, by section."""
  deep_seas = [e for e in DEEP_SEAS if e in found.experiments]
  return {
    "tags": _by_tag(found),
    "experiments": [
      pictures.make(
        "scores_by_experiment",
        _forest(found, found.experiments, "Scores by experiment"),
        "The scores of the table above as marks, with bars for intervals or small "
        f"marks for seeds, a row for each experiment: {', '.join(found.experiments)}.",
        f"Scores by experiment; {_BARS}"
        + " *: some agents have identical logs, see the table."
        * any(map(found.identical, found.experiments)),
      )
    ],
    "regrets": [_curve_of(found, experiment) for experiment in found.experiments],
    "deep_sea": [_scaling_of(found, experiment) for experiment in deep_seas],
  }


def _by_tag(found: results.Results) -> list[pictures.Picture]:
  """Scores by tag, and as a radar chart if there are enough tags."""
  drawn = [
    pictures.make(
      "scores_by_tag",
      _forest(found, found.tags, "Scores by tag"),
      "The scores of the table above as marks, with bars for intervals or small "
      "marks for seeds, a row for each tag.",
      f"Scores by tag; {_BARS}",
    )
  ]
  if len(found.tags) >= _LEAST_TAGS:
    drawn.append(
      pictures.make(
        "radar",
        _radar(found),
        "A radar chart of the same scores: a closed line for each agent around a "
        "circle of tags, 0 in the middle and 1 at the rim.",
        "The same scores as a radar: 0 in the middle, 1 at the rim.",
      )
    )
  return drawn


def _curve_of(found: results.Results, experiment: str) -> pictures.Picture:
  each = found.of(experiment)
  curves = {
    agent: _regrets(found, agent, experiment, score) for agent, score in each.items()
  }
  regret = scores.regret_name(experiment)
  ends = [f"{agent} at {y[:, -1].mean():.3g}" for agent, (_, y) in curves.items()]
  return pictures.make(
    f"curve_{experiment}",
    _learning_curves(found, experiment, curves),
    f"Learning curves of {experiment}: {regret}, averaged so far, against the episode, "
    f"a line for each agent. They end with {', '.join(ends)}.",
    f"{experiment}: {regret}, on average so far.",
  )


def _scaling_of(found: results.Results, experiment: str) -> pictures.Picture:
  each = found.of(experiment)
  solutions = {agent: _solutions(found, agent, score) for agent, score in each.items()}
  counts = [
    f"{agent} has solved {int(solved.sum())} of {solved.size} runs"
    for agent, (_, _, solved) in solutions.items()
  ]
  return pictures.make(
    f"scaling_{experiment}",
    _deep_sea_scaling(found, experiment, solutions),
    f"Episodes to solve {experiment} against its size N, on a logarithmic scale, a "
    "line for each agent and a dotted line for 2 to the power of N. "
    f"{'; '.join(counts)}.",
    f"{experiment}: median over seeds; {_BARS} Hollow, at the end of the log: not "
    "solved, by the seed or by at least half of them.",
  )


def _forest(
  found: results.Results, names: Sequence[str], title: str
) -> "mpl_figure.Figure":
  """Scores with their intervals or single seeds, a row for each experiment or tag.

  In a row, the agents are below each other; scores without a value are skipped.
  """
  step, gap = 0.14, 0.2  # Inches per agent, and between rows.
  agents, marks = found.agents, _marks(found)
  same = [name for name in found.experiments if found.identical(name)]
  row_height = step * len(agents) + gap
  most = max(len(x.seeds) for name in names for x in found.of(name).values())
  spread = "bars: 95 % intervals" if most > drawing.FEW else "small: each seed"
  title += f" ({spread})" * (most > 1)
  fig, axes = pictures.new(1.0 + row_height * len(names), title, agents)
  for number, name in enumerate(names):
    for index, agent in enumerate(agents):
      score = found.scores.get((agent, name))
      if score is None or not score.is_determined:
        continue
      y = number + (index - 0.5 * (len(agents) - 1)) * step / row_height
      mean, own = score.mean, marks[agent] | {"linestyle": "none"}
      if len(score.seeds) > drawing.FEW:
        axes.plot([mean.low, mean.high], [y, y], color=own["color"], linewidth=1.4)
      elif len(score.seeds) > 1:
        axes.plot(score.values, [y] * len(score.values), **own, ms=3, alpha=0.5)
      axes.plot([mean.value], [y], **own, markersize=5)
  lines = [
    axes.plot([], [], **marks[agent], markersize=5, linestyle="none")[0]
    for agent in agents
  ]
  axes.set_yticks(range(len(names)), [name + " *" * (name in same) for name in names])
  axes.set_yticks(np.arange(len(names) + 1) - 0.5, minor=True)
  axes.grid(axis="y", which="minor", color="0.8", linewidth=0.6)
  axes.grid(axis="x", alpha=0.4)
  axes.tick_params(axis="y", which="both", length=0)
  axes.set(xlim=(-0.03, 1.03), ylim=(len(names) - 0.5, -0.5), xlabel="score")
  pictures.legend(fig, lines, agents)
  return fig


def _marks(found: results.Results) -> dict[str, dict[str, Any]]:
  """The marker of each agent, which is the same in all drawings."""
  return {
    agent: {"color": style.color, "marker": style.marker}
    for agent, style in drawing.styles(found.agents).items()
  }


def _radar(found: results.Results) -> "mpl_figure.Figure":
  """Scores by tag around a circle."""
  tags = found.tags
  polar = {"projection": "polar"}
  fig, ((axes,),) = drawing.new(width=pictures.WIDTH, height=5.4, subplot_kw=polar)
  fig.suptitle("Scores by tag", fontsize="medium")
  angles = np.linspace(0, 2 * np.pi, len(tags), endpoint=False)
  closed = [*range(len(tags)), 0]
  lines = []
  styles, marks = drawing.styles(found.agents), _marks(found)
  for agent in found.agents:
    each = [found.scores.get((agent, tag)) for tag in tags]
    values = np.array([math.nan if x is None else float(x.mean.value) for x in each])
    lines += axes.plot(
      angles[closed],
      values[closed],
      **marks[agent],
      linestyle=styles[agent].linestyle,
      linewidth=1.8,
      markersize=6,
    )
  axes.set_xticks(angles, [tag.replace("_", "\n") for tag in tags])
  axes.set_ylim(0, 1)
  axes.set_yticks([0.25, 0.5, 0.75, 1.0], [".25", ".5", ".75", "1"], fontsize="small")
  for angle, tick in zip(angles, axes.get_xticklabels(), strict=True):
    side = round(float(np.cos(angle)), 1)
    tick.set_ha("center" if not side else ("left" if side > 0 else "right"))
  pictures.legend(fig, lines, found.agents)
  return fig


def _learning_curves(
  found: results.Results,
  experiment: str,
  curves: Mapping[str, tuple[np.ndarray, np.ndarray]],
) -> "mpl_figure.Figure":
  """The average regret up to each episode: mean over ids and seeds."""
  fig, axes = pictures.new(3.2, experiment, curves)
  styles, lines = drawing.styles(found.agents), []
  for agent, (episodes, values) in curves.items():
    first = len(axes.lines)
    drawing.seeds(
      axes, episodes, values, label=agent, style=styles[agent], markers=True
    )
    lines.append(axes.lines[first])
  value, name = scores.reference(experiment)
  axes.axhline(value, color="0.35", linewidth=0.9, linestyle=(0, (1, 2)))
  place = {"transform": axes.get_yaxis_transform(), "va": "bottom"}
  axes.text(0.02, value, name, **place, fontsize="small", color="0.25")
  axes.set(xscale="log", xlabel="episode")
  label = f"{scores.regret_name(experiment)}, mean so far"
  axes.set_ylabel(textwrap.fill(label, _LONGEST_LABEL))
  drawing.shorten_numbers(axes.xaxis)
  bottom, top = axes.get_ylim()
  axes.set_ylim(min(0.0, bottom), max(top, 1.12 * value))  # Leaves room for its label.
  axes.grid(alpha=0.3)
  pictures.legend(fig, lines, curves)
  return fig


def _regrets(
  found: results.Results, agent: str, experiment: str, score: results.Score
) -> tuple[np.ndarray, np.ndarray]:
  """An agent's learning curve.

  Returns:
    The episodes `[N]` that all of its logs contain, and the average regret up to each
    of them, as the mean over ids, `[S, N]` for S seeds.
  """
  logs = [[found.logs[agent, i, seed] for i in score.ids] for seed in score.seeds]
  every = [set(log["episode"]) for of_seed in logs for log in of_seed]
  episodes = np.array(sorted(set.intersection(*every)))

  def curve(log: scores.Log) -> np.ndarray:
    is_common = np.isin(log["episode"], episodes)
    return scores.average_regret(experiment, log)[is_common]

  values = [np.mean([curve(log) for log in of_seed], axis=0) for of_seed in logs]
  return episodes, np.stack(values)


def _deep_sea_scaling(
  found: results.Results,
  experiment: str,
  solutions: Mapping[str, tuple[np.ndarray, np.ndarray, np.ndarray]],
) -> "mpl_figure.Figure":
  """Episodes to solve Deep Sea against its size N: the median over seeds.

  A seed without a solution would need longer than its log. If the median is such a
  seed, the mark is hollow and at the log's end. The reference is 2^N, about the number
  of episodes that undirected exploration needs.
  """
  solutions = {agent: each for agent, each in solutions.items() if len(each[0])}
  title = f"{experiment} (hollow: not solved)"
  fig, axes = pictures.new(3.8, title, [*solutions, "2^N"])
  styles, marks, lines = drawing.styles(found.agents), _marks(found), []
  longest, fewest = 1, math.inf
  for number, (agent, (sizes, episodes, solved)) in enumerate(solutions.items()):
    longest, fewest = max(longest, episodes.max()), min(fewest, episodes.min())
    ends = episodes.max(axis=0)  # Ends of the logs, for seeds without a solution.
    interval = median_episodes(episodes, solved)
    value, low, high = (np.minimum(x, ends) for x in interval)
    style, own = styles[agent], marks[agent]
    # Side by side, so that no bar hides another.
    x = sizes + 1.2 * ((number + 0.5) / len(solutions) - 0.5)
    line = {"color": style.color, "linestyle": style.linestyle, "linewidth": 1.3}
    axes.plot(x, value, **line)
    if len(episodes) > drawing.FEW:
      axes.vlines(x, low, high, color=style.color, linewidth=1.3)
    elif len(episodes) > 1:
      for which, fill in ((solved, "full"), (~solved, "none")):
        small = own | {"fillstyle": fill, "linestyle": "none", "alpha": 0.5}
        axes.plot(x, np.where(which, episodes, np.nan).T, **small, ms=3)
    for at, median, y in zip(x, interval.value, value, strict=True):
      mark = own | ({"fillstyle": "none"} if median == math.inf else {})
      axes.plot([at], [y], **mark, markersize=5)
    lines += axes.plot([], [], **{**line, **own})
  every = [
    catalogue.setting(i) or 0 for x in found.of(experiment).values() for i in x.ids
  ]
  sizes = np.arange(min(every) - 1, max(every) + 2)
  lines += axes.plot(sizes, 2.0**sizes, color="0.3", linestyle=(0, (1, 1.5)))
  bottom = 0.7 * fewest if fewest < math.inf else 1.0
  axes.set(yscale="log", xlabel="size N", ylabel="episodes to solve (median)")
  axes.set_ylim(bottom, max(3 * longest, 10 * bottom, 4 * 2.0 ** sizes[0]))
  axes.set_xlim(sizes[0] - 0.5, sizes[-1] + 0.5)
  axes.locator_params(axis="x", integer=True)
  drawing.shorten_numbers(axes.yaxis)
  axes.yaxis.set_minor_formatter("")
  axes.grid(alpha=0.3)
  pictures.legend(fig, lines, [*solutions, "2^N"])
  return fig


def _solutions(
  found: results.Results, agent: str, score: results.Score
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
  """When an agent has solved Deep Sea.

  Returns:
    The sizes `[M]` whose logs are long enough for bsuite's rule, and for each of S
    seeds the episode `[S, M]` and whether it was solved, bool `[S, M]`.
  """
  columns = []
  for bsuite_id in sorted(score.ids, key=lambda i: catalogue.setting(i) or 0):
    each = [
      scores.solution(bsuite_id, found.logs[agent, bsuite_id, seed])
      for seed in score.seeds
    ]
    counted = [solution for solution in each if solution is not None]
    if len(counted) == len(each):
      columns.append((catalogue.setting(bsuite_id), counted))
  # [S, M, 2]
  table = np.array([column for _, column in columns], np.float64).reshape(
    len(columns), len(score.seeds), 2
  )
  sizes = np.array([size for size, _ in columns], np.float64)
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
