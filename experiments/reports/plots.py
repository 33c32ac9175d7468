"""The drawings of a sweep's report.

Each is narrow enough to be read on a phone, and tells agents apart by marks and lines,
not by colour alone.
"""

import io
import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from explorax.experiments.figures import drawing, statistics
from explorax.experiments.reports import catalogue, read, results, scores

if TYPE_CHECKING:
  from matplotlib import axes as mpl_axes
  from matplotlib import figure as mpl_figure

WIDTH = 5.0  # Inches.
_LONG = 20  # Letters of a label that leave no room for another beside it.
_NUM_STYLES = 8
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
    width=WIDTH, height=1.0 + _legend_height(labels) + row_height * len(rows)
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
  for index, label in enumerate(labels.values()):
    axes.plot([], [], **_mark(index), markersize=5, linewidth=1.4, label=label)
  axes.set_yticks(range(len(rows)), [label for label, _ in rows])
  axes.set_yticks(np.arange(len(rows) + 1) - 0.5, minor=True)
  axes.grid(axis="y", which="minor", color="0.8", linewidth=0.6)
  axes.grid(axis="x", alpha=0.4)
  axes.tick_params(axis="y", which="both", length=0)
  axes.set(xlim=(-0.03, 1.03), ylim=(len(rows) - 0.5, -0.5), xlabel="score")
  _legend(fig, axes, labels)
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
    for index in group:
      cells = [by_tag.get((agents[index], tag)) for tag in tags]
      values = np.array([math.nan if cell is None else cell.value for cell in cells])
      style = drawing.style(index)
      axes.plot(
        angles[closed],
        values[closed],
        **_mark(index),
        linestyle=style.linestyle,
        linewidth=1.8,
        markersize=6,
        label=agents[index],
      )
      axes.fill(angles, np.nan_to_num(values), color=style.color, alpha=0.05)
    axes.set_xticks(angles, [tag.replace("_", "\n") for tag in tags])
    axes.set_ylim(0, 1)
    axes.set_yticks([0.25, 0.5, 0.75, 1.0], [".25", ".5", ".75", "1"], fontsize="small")
    for angle, tick in zip(angles, axes.get_xticklabels(), strict=True):
      side = round(float(np.cos(angle)), 1)
      tick.set_ha("center" if not side else ("left" if side > 0 else "right"))
    axes.legend(
      loc="upper center",
      bbox_to_anchor=(0.5, -0.12),
      frameon=False,
      ncols=_legend_columns({agents[i]: agents[i] for i in group}),
    )
  return fig


def learning_curves(
  sweep: read.Sweep, found: results.Results, experiment: str
) -> "mpl_figure.Figure":
  """The average regret up to each episode, its mean over ids and seeds."""
  labels = _same(found.agents)
  fig, ((axes,),) = drawing.new(width=WIDTH, height=3.2 + _legend_height(labels))
  for index, agent in enumerate(found.agents):
    cell = found.by_experiment.get((agent, experiment))
    if cell is None:
      continue
    episodes, values = regrets(sweep, agent, experiment, cell)
    drawing.curve(axes, episodes, values, label=agent, index=index, markers=True)
    axes.lines[-1].set_markerfacecolor(_mark(index)["markerfacecolor"])
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
  _legend(fig, axes, labels)
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

  Marks are filled where at least half of the seeds have solved it. Those that have not
  count with the last episode that was logged. The reference is 2^N, about what
  exploration without a plan takes.
  """
  labels = _same(found.agents)
  fig, ((axes,),) = drawing.new(
    width=WIDTH, height=3.8 + _legend_height({**labels, "": "2^N"})
  )
  longest, fewest = 1, math.inf
  for index, agent in enumerate(found.agents):
    cell = found.by_experiment.get((agent, experiment))
    if cell is None:
      continue
    sizes, episodes, solved = solutions(sweep, agent, cell)
    if not len(sizes):
      continue
    longest, fewest = max(longest, episodes.max()), min(fewest, episodes.min())
    interval = statistics.bootstrap(episodes, _median_over_seeds)
    style = drawing.style(index)
    # Beside each other, so that no bar hides another.
    x = sizes + 1.2 * ((index + 0.5) / len(labels) - 0.5)
    line = {"color": style.color, "linestyle": style.linestyle, "linewidth": 1.3}
    axes.plot(x, interval.value, **line)
    axes.vlines(x, interval.low, interval.high, color=style.color, linewidth=1.3)
    for at, value, share in zip(x, interval.value, solved.mean(axis=0), strict=True):
      mark = {**_mark(index), "markerfacecolor": style.color}
      if share < 0.5:
        mark["markerfacecolor"] = "white"
      axes.plot([at], [value], **mark, markersize=5)
    axes.plot([], [], **{**line, **_mark(index)}, label=agent)
  every = [catalogue.setting(i) for i in catalogue.ids(experiment)]
  sizes = np.arange(min(filter(None, every)), max(filter(None, every)) + 1)
  axes.plot(sizes, 2.0**sizes, color="0.3", linestyle=(0, (1, 1.5)), label="2^N")
  low = 10.0 ** math.floor(math.log10(fewest)) if fewest < math.inf else 1.0
  axes.set(yscale="log", xlabel="size N", ylabel="episodes to solve (median)")
  axes.set_ylim(low, max(3 * longest, 10 * low, 4 * 2.0 ** sizes[0]))
  axes.set_xlim(sizes[0] - 1.5, sizes[-1] + 1.5)
  axes.yaxis.set_major_formatter(lambda x, _: f"{x:,.0f}")
  axes.yaxis.set_minor_formatter("")
  axes.grid(alpha=0.3)
  _legend(fig, axes, labels)
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


def _median_over_seeds(x: np.ndarray) -> np.ndarray:
  return np.median(x, axis=-2)


def _mark(index: int) -> dict[str, Any]:
  """The mark of an agent: hollow once the styles come again."""
  style = drawing.style(index)
  hollow = (index // _NUM_STYLES) % 2 == 1
  return {
    "color": style.color,
    "marker": style.marker,
    "markerfacecolor": "white" if hollow else style.color,
  }


def _legend_columns(labels: Labels) -> int:
  return 1 if max(map(len, labels.values())) > _LONG else 2


def _legend_height(labels: Labels) -> float:
  """Inches."""
  return 0.2 * math.ceil(len(labels) / _legend_columns(labels))


def _same(agents: Sequence[str]) -> dict[str, str]:
  return {agent: agent for agent in agents}


def _legend(fig: "mpl_figure.Figure", axes: "mpl_axes.Axes", labels: Labels) -> None:
  """Below the axes, so that it hides nothing."""
  handles, names = axes.get_legend_handles_labels()
  fig.legend(
    handles,
    names,
    loc="outside lower center",
    ncols=_legend_columns(labels),
    frameon=False,
  )
