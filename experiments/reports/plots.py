"""The drawings of a sweep's report.

Each is narrow enough to be read on a phone, and tells agents apart by marks and lines,
not by colour alone.
"""

import io
import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from explorax.experiments.recording import drawing, statistics
from explorax.experiments.reports import catalogue, read, results, scores

if TYPE_CHECKING:
  from matplotlib import figure as mpl_figure

WIDTH = 5.0  # Inches.
_LONG = 20  # Letters of a label that leave no room for another beside it.
_LONGEST = 44  # Letters of a label that have room in a line.
_NUM_STYLES = 8
# How marks are filled once all styles have been had; hollow ones mean something else.
_FILLS = ("full", "left", "top", "right", "bottom")
_NEVER = 1e18  # Episodes.
_PER_RADAR = 5  # More agents cannot be told apart; bsuite says so, too.

Labels = Mapping[str, str]  # Agent → what it is called in a drawing.


def png(fig: "mpl_figure.Figure") -> bytes:
  """The drawing as a PNG."""
  file = io.BytesIO()
  fig.savefig(file, format="png")
  return file.getvalue()


def forest(
  rows: Sequence[tuple[str, Mapping[str, results.Cell]]],
  labels: Labels,
  *,
  title: str,
) -> "mpl_figure.Figure":
  """Scores with their intervals, the agents below each other in each row.

  Args:
    rows: label → agent → score; what cannot be told is left out.
    labels: of the agents, in their order.
    title: above all.
  """
  step, gap = 0.14, 0.2  # Inches for an agent, and between rows.
  row_height = step * len(labels) + gap
  fig, ((axes,),) = drawing.new(
    width=WIDTH, height=1.0 + _legend_height(labels.values()) + row_height * len(rows)
  )
  for number, (_, cells) in enumerate(rows):
    for index, agent in enumerate(labels):
      cell = cells.get(agent)
      if cell is None or not cell.told:
        continue
      y = number + (index - 0.5 * (len(labels) - 1)) * step / row_height
      if not math.isnan(cell.low):
        axes.plot(
          [cell.low, cell.high], [y, y], color=drawing.style(index).color, linewidth=1.4
        )
      axes.plot([cell.value], [y], **_mark(index), linestyle="none", markersize=5)
  lines = [
    axes.plot([], [], **_mark(index), markersize=5, linewidth=1.4)[0]
    for index in range(len(labels))
  ]
  axes.set_yticks(range(len(rows)), [label for label, _ in rows])
  axes.set_yticks(np.arange(len(rows) + 1) - 0.5, minor=True)
  axes.grid(axis="y", which="minor", color="0.8", linewidth=0.6)
  axes.grid(axis="x", alpha=0.4)
  axes.tick_params(axis="y", which="both", length=0)
  axes.set(xlim=(-0.03, 1.03), ylim=(len(rows) - 0.5, -0.5), xlabel="score")
  _legend(fig, lines, labels.values())
  fig.suptitle(title, fontsize="medium")
  return fig


def radar(
  tags: Sequence[str],
  by_tag: Mapping[tuple[str, str], results.Cell],
  agents: Sequence[str],
) -> "mpl_figure.Figure":
  """Scores by tag around a circle, several circles for more than five agents.

  Args:
    tags: three at least.
    by_tag: (agent, tag) → score; where it cannot be told the line has a gap.
    agents: in their order.
  """
  from matplotlib import figure

  groups = np.array_split(np.arange(len(agents)), math.ceil(len(agents) / _PER_RADAR))
  fig = figure.Figure(
    figsize=(WIDTH, 5.4 * len(groups)), dpi=drawing.DPI, layout="constrained"
  )
  panels = fig.subplots(
    len(groups), 1, squeeze=False, subplot_kw={"projection": "polar"}
  )[:, 0]
  angles = np.linspace(0, 2 * np.pi, len(tags), endpoint=False)
  closed = [*range(len(tags)), 0]
  for axes, group in zip(panels, groups, strict=True):
    lines = []
    for index in group:
      cells = [by_tag.get((agents[index], tag)) for tag in tags]
      values = np.array([math.nan if cell is None else cell.value for cell in cells])
      style = drawing.style(index)
      lines += axes.plot(
        angles[closed],
        values[closed],
        **_mark(index),
        linestyle=style.linestyle,
        linewidth=1.8,
        markersize=6,
      )
      axes.fill(angles, np.nan_to_num(values), color=style.color, alpha=0.05)
    axes.set_xticks(angles, [tag.replace("_", "\n") for tag in tags])
    axes.set_ylim(0, 1)
    axes.set_yticks([0.25, 0.5, 0.75, 1.0], [".25", ".5", ".75", "1"], fontsize="small")
    for angle, tick in zip(angles, axes.get_xticklabels(), strict=True):
      side = round(float(np.cos(angle)), 1)
      tick.set_ha("center" if not side else ("left" if side > 0 else "right"))
    names = [agents[index] for index in group]
    axes.legend(
      lines,
      _wrapped(names),
      loc="upper center",
      bbox_to_anchor=(0.5, -0.12),
      frameon=False,
      ncols=_legend_columns(names),
    )
  return fig


def learning_curves(
  sweep: read.Sweep, found: results.Results, experiment: str
) -> "mpl_figure.Figure":
  """The average regret up to each episode, its mean over ids and seeds."""
  cells = results.of_agents(found.by_experiment, experiment, found.agents)
  fig, ((axes,),) = drawing.new(width=WIDTH, height=3.2 + _legend_height(cells))
  for agent, cell in cells.items():
    index = found.agents.index(agent)
    episodes, values = regrets(sweep, agent, experiment, cell)
    drawing.curve(axes, episodes, values, label=agent, index=index, markers=True)
    axes.lines[-1].set_fillstyle(_mark(index)["fillstyle"])
  lines = list(axes.lines)
  value, name = scores.reference(experiment)
  axes.axhline(value, color="0.35", linewidth=0.9, linestyle=(0, (1, 2)))
  axes.text(
    0.02,
    value,
    name,
    transform=axes.get_yaxis_transform(),
    va="bottom",
    fontsize="small",
    color="0.25",
  )
  axes.set(xscale="log", xlabel="episode")
  axes.set_ylabel(textwrap.fill(f"{scores.regret_name(experiment)}, so far", 28))
  axes.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}")
  bottom, top = axes.get_ylim()
  axes.set_ylim(min(0.0, bottom), max(top, 1.12 * value))  # With room for its name.
  axes.grid(alpha=0.3)
  _legend(fig, lines, cells)
  fig.suptitle(experiment, fontsize="medium")
  return fig


def regrets(
  sweep: read.Sweep, agent: str, experiment: str, cell: results.Cell
) -> tuple[np.ndarray, np.ndarray]:
  """An agent's learning curve.

  Returns:
    The episodes `[N]` that all of its logs have, and the average regret up to each of
    them, the mean over ids, `[S, N]` for S seeds.
  """
  logs = [[sweep.logs[agent, i, seed] for i in cell.ids] for seed in cell.seeds]
  every = [set(log["episode"]) for of_seed in logs for log in of_seed]
  episodes = np.array(sorted(set.intersection(*every)))

  def curve(log: scores.Log) -> np.ndarray:
    shown = np.isin(log["episode"], episodes)
    return scores.average_regret(experiment, log)[shown]

  values = [np.mean([curve(log) for log in of_seed], axis=0) for of_seed in logs]
  return episodes, np.stack(values)


def deep_sea_scaling(
  sweep: read.Sweep, found: results.Results, experiment: str
) -> "mpl_figure.Figure":
  """Episodes to solve Deep Sea against its size N: the median over seeds.

  A seed that has not solved it would take longer than its log: where the median is one
  of those, the mark is hollow and at the log's end. The reference is 2^N, about what
  exploration without a plan takes.
  """
  cells = results.of_agents(found.by_experiment, experiment, found.agents)
  names, lines = [], []
  fig, ((axes,),) = drawing.new(
    width=WIDTH, height=3.8 + _legend_height([*cells, "2^N"])
  )
  longest, fewest = 1, math.inf
  for number, (agent, cell) in enumerate(cells.items()):
    sizes, episodes, solved = solutions(sweep, agent, cell)
    if not len(sizes):
      continue
    longest, fewest = max(longest, episodes.max()), min(fewest, episodes.min())
    value, low, high = median_episodes(episodes, solved)
    ends = episodes.max(axis=0)  # Of the logs, where it is not solved.
    index = found.agents.index(agent)
    style = drawing.style(index)
    # Beside each other, so that no bar hides another.
    x = sizes + 1.2 * ((number + 0.5) / len(cells) - 0.5)
    line = {"color": style.color, "linestyle": style.linestyle, "linewidth": 1.3}
    axes.plot(x, np.minimum(value, ends), **line)
    axes.vlines(
      x,
      np.minimum(low, ends),
      np.minimum(high, ends),
      color=style.color,
      linewidth=1.3,
    )
    for at, median, end in zip(x, value, ends, strict=True):
      mark = _mark(index) | ({"fillstyle": "none"} if median == math.inf else {})
      axes.plot([at], [min(median, end)], **mark, markersize=5)
    names.append(agent)
    lines += axes.plot([], [], **{**line, **_mark(index)})
  every = [catalogue.setting(i) for i in catalogue.ids(experiment)]
  sizes = np.arange(min(filter(None, every)), max(filter(None, every)) + 1)
  lines += axes.plot(sizes, 2.0**sizes, color="0.3", linestyle=(0, (1, 1.5)))
  bottom = 10.0 ** math.floor(math.log10(fewest)) if fewest < math.inf else 1.0
  axes.set(yscale="log", xlabel="size N", ylabel="episodes to solve (median)")
  axes.set_ylim(bottom, max(3 * longest, 10 * bottom, 4 * 2.0 ** sizes[0]))
  axes.set_xlim(sizes[0] - 1.5, sizes[-1] + 1.5)
  axes.yaxis.set_major_formatter(lambda x, _: f"{x:,.0f}")
  axes.yaxis.set_minor_formatter("")
  axes.grid(alpha=0.3)
  _legend(fig, lines, [*names, "2^N"])
  fig.suptitle(f"{experiment} (hollow: not solved)", fontsize="medium")
  return fig


def solutions(
  sweep: read.Sweep, agent: str, cell: results.Cell
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
  """When an agent has solved Deep Sea.

  Returns:
    The sizes `[M]` whose logs are long enough for bsuite's rule, and for each of S
    seeds the episode `[S, M]` and whether it was solved, bool `[S, M]`.
  """
  sizes, episodes, solved = [], [], []
  for bsuite_id in cell.ids:
    each = [
      scores.solution(bsuite_id, sweep.logs[agent, bsuite_id, seed])
      for seed in cell.seeds
    ]
    counted = [solution for solution in each if solution is not None]
    if len(counted) == len(each):
      sizes.append(catalogue.setting(bsuite_id))
      episodes.append([solution.episode for solution in counted])
      solved.append([solution.solved for solution in counted])
  shape = len(sizes), len(cell.seeds)
  order = np.argsort(np.array(sizes, np.float64))
  return (
    np.array(sizes, np.float64)[order],
    np.array(episodes, np.float64).reshape(shape)[order].T,
    np.array(solved, bool).reshape(shape)[order].T,
  )


def median_episodes(
  episodes: np.ndarray, solved: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
  """The median over seeds of the episodes to solve, and its 95 % interval.

  Args:
    episodes: `[S, M]`, of S seeds.
    solved: bool `[S, M]`; where it is not, the episodes to solve are ∞.

  Returns:
    The median `[M]`, and the interval's ends `[M]`; ∞ where a median would be of seeds
    that have not solved it.
  """
  # Percentiles are interpolated, which ∞ − ∞ is not for: a number stands for ∞, and so
  # do all means that it has a part in.
  interval = statistics.bootstrap(
    np.where(solved, episodes, _NEVER), statistics.median_over_seeds
  )
  value, low, high = (
    np.where(x < 1e-6 * _NEVER, x, math.inf)
    for x in (interval.value, interval.low, interval.high)
  )
  return value, low, high


def _mark(index: int) -> dict[str, Any]:
  """The mark of an agent: filled in another way once the styles come again."""
  style = drawing.style(index)
  return {
    "color": style.color,
    "marker": style.marker,
    "fillstyle": _FILLS[index // _NUM_STYLES % len(_FILLS)],
    "markerfacecoloralt": "white",
  }


def _legend_columns(names: Iterable[str]) -> int:
  return 1 if max(map(len, names)) > _LONG else 2


def _legend_height(names: Iterable[str]) -> float:
  """Inches."""
  names = list(names)
  lines = sum(text.count("\n") + 1 for text in _wrapped(names))
  return 0.2 * math.ceil(lines / _legend_columns(names))


def _wrapped(names: Iterable[str]) -> list[str]:
  """Names in lines that fit, broken before a setting where that is possible."""
  return [
    "\n".join(
      textwrap.wrap(name.replace("@", " @"), _LONGEST, break_on_hyphens=False)
    ).replace(" @", "@")
    for name in names
  ]


def _legend(
  fig: "mpl_figure.Figure", lines: Sequence[Any], names: Iterable[str]
) -> None:
  """Below the axes, so that it hides nothing."""
  names = list(names)
  fig.legend(
    lines,
    _wrapped(names),
    loc="outside lower center",
    ncols=_legend_columns(names),
    frameon=False,
  )
