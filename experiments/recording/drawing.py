"""Drawings: `curve.png`, and the style of all: lines that differ in grey, and bands."""

import collections
import re
from collections.abc import Sequence
from typing import Any, BinaryIO, NamedTuple, TypeAlias

import numpy as np

from explorax.experiments.recording import curves, rows, statistics

# Matplotlib's types, which may be absent.
Axes: TypeAlias = Any
Axis: TypeAlias = Any
Figure: TypeAlias = Any
DPI = 150
FEW = 5  # At most so many seeds are drawn one by one.
_MAX_POINTS = 4000  # Of a run: more are indistinguishable and slow to draw.


class Style(NamedTuple):
  """A line's style: Okabe and Ito's colours, from dark to light, with markers."""

  color: str
  linestyle: Any
  marker: str


_STYLES = (
  Style("#0072B2", "-", "o"),
  Style("#D55E00", "--", "s"),
  Style("#009E73", "-.", "^"),
  Style("#CC79A7", ":", "D"),
  Style("#000000", (0, (5, 1, 1, 1, 1, 1)), "v"),
  Style("#E69F00", (0, (3, 1)), "P"),
  Style("#56B4E9", (0, (1, 1)), "X"),
  Style("#7F7F7F", (0, (8, 2)), "<"),
)


# The style numbers of agents and rules, by preset or label, in all drawings: different
# ones where agents are together in one of our figures.
_AGENTS = {
  name: number
  for number, names in {
    0: "tdu, TDU, retrace_dqn, Retrace",
    1: "bootstrapped_dqn, bootstrapped DQN, BDQN",
    2: "ensemble_voting, voting, noisy_dqn, noisy networks, Tree-backup, tree-backup",
    3: "epinet, successor_uncertainties, SU, Q*, R-MAX, q_ucb, Q+UCB",
    4: "double_dqn, double DQN, dqn, ε-greedy, Q-learning",
    5: "dqn_rnd, RND, tdu_bandit",
    6: "dqn_counts, counts, qu, QU",
    7: "qex, QEX",
    8: "ngu, ngu_dqn, NGU",
    9: "dqn_ez, double_dqn_ez, εz-greedy, zeta",
    10: "dqn_simhash, SimHash",
    11: "dqn_e3b, E3B",
    14: "dqn_icm, ICM",
    15: "dqn_re3, RE3",
    18: "dqn_novel_d, NovelD",
    19: "dqn_disagreement, Disagreement, disagreement",
    21: "dqn_ride, RIDE",
    24: "ucb_infogain, InfoGain",
    29: "ucb, UCB",
  }.items()
  for name in names.split(", ")
}


def style(number: int) -> Style:
  """The style of a line by its number, from 0; after 8 lines with other markers."""
  other = _STYLES[(number + number // len(_STYLES)) % len(_STYLES)]
  return other._replace(color=_STYLES[number % len(_STYLES)].color)


def styles(names: Sequence[str]) -> dict[str, Style]:
  """The styles of agents; each has the same in all drawings.

  What comes after a comma, a bracket or `@` is a variant: variants of an agent have its
  marker, shades of its colour, from light to dark, and different lines. Other names
  have styles that are left, in their order, if possible of colours that are left, and
  so has an agent whose style is that of one before it.
  """
  agents = {name: re.split(r"[,@(]", name)[0].strip() for name in names}
  known = [agent for agent in agents.values() if agent in _AGENTS]
  first = {_AGENTS[agent]: agent for agent in reversed(known)}
  index = {agent: i for i, agent in first.items()}
  every = {*range(len(_STYLES) ** 2)} - {*first}
  colors = {i % len(_STYLES) for i in first}
  left = sorted(every, key=lambda i: (i % len(_STYLES) in colors, i))
  others = [a for a in dict.fromkeys(agents.values()) if a not in index]
  index |= {agent: left[i % len(left)] for i, agent in enumerate(others)}
  total, count = collections.Counter(agents.values()), collections.Counter[str]()
  found = {}
  for name, agent in agents.items():
    count[agent] += 1
    depth = 0.45 + 0.55 * count[agent] / total[agent] if total[agent] > 1 else 1.0
    own = style(index[agent])
    hue = [int(own.color[i : i + 2], 16) for i in (1, 3, 5)]
    color = "#" + "".join(f"{round(255 - depth * (255 - x)):02X}" for x in hue)
    line = style(index[agent] + count[agent] - 1).linestyle
    found[name] = Style(color, line, own.marker)
  return found


def new(width: float, height: float) -> tuple[Figure, Axes]:
  """A figure and its axes; width and height in inches."""
  # Without pyplot, which would keep the figure and choose a GUI backend.
  from matplotlib import figure

  fig = figure.Figure(figsize=(width, height), dpi=DPI, layout="constrained")
  return fig, fig.subplots()


def seeds(
  axes: Axes,
  x: Sequence[float] | np.ndarray,
  values: Any,
  *,
  label: str,
  style: Style,
  statistic: Any = np.mean,
  markers: bool = False,
) -> None:
  """Draws a statistic over seeds: of few beside each of them, of more with its band.

  Args:
    axes: to draw into.
    x: `[N]`.
    values: `[S, N]`, S seeds; or an interval, `[N]`.
    label: in the legend.
    style: of the line.
    statistic: replaces the mean; see `statistics.bootstrap`.
    markers: marks the points, for curves with few of them.
  """
  if isinstance(values, np.ndarray) and len(values) > FEW:
    values = statistics.bootstrap(values, statistic)
  band = values if isinstance(values, statistics.Interval) else None
  mean = band.value if band else statistic(values, axis=0)
  line: dict[str, Any] = {"color": style.color, "linestyle": style.linestyle}
  mark = style.marker if markers else None
  axes.plot(x, mean, **line, linewidth=1.7, marker=mark, markersize=4.5, label=label)
  if band:
    color: Any = {"color": style.color, "alpha": 0.18, "linewidth": 0}
    axes.fill_between(x, band.low, band.high, **color)
  elif len(values) > 1:
    thin = {"linestyle": "", "marker": mark, "markersize": 3} if markers else {}
    axes.plot(x, values.T, **{**line, "linewidth": 0.7, "alpha": 0.5, **thin})


def shorten_numbers(axis: Axis) -> None:
  """An axis has 500, 20k and 1.5M: long numbers would run into each other."""
  from matplotlib import ticker

  axis.set_major_formatter(ticker.EngFormatter(sep=""))


def save(file: BinaryIO, fig: Figure, *, title: str = "") -> None:
  """Writes a drawing as a PNG, with a title above if it is not empty.

  The file has neither a date nor a version: the same drawing has the same bytes.
  """
  if title:
    fig.suptitle(title)
  fig.savefig(file, format="png", metadata={"Software": None})


def learning_curve(
  file: BinaryIO,
  runs: Sequence[rows.Rows],
  *,
  title: str,
  evaluations: rows.Rows | None = None,
) -> Figure:
  """Draws returns against environment steps, of one run or of several seeds, as PNG.

  A line for each policy group is the mean over the last tenth of the group's episodes,
  at most 100; of several seeds it is their mean, from where all have ended such an
  episode. With one seed, dots are the episodes, and a black line the mean returns of
  evaluations.

  Args:
    file: where the PNG goes.
    runs: the columns of `metrics.csv` of each seed, with at least one episode.
    title: above the axes.
    evaluations: the columns of `evaluation.csv` of one seed.
  """
  fig, axes = new(width=7, height=4)
  policies = np.unique(np.concatenate([episodes["policy"] for episodes in runs]))
  for number, policy in enumerate(policies):
    groups = [curves.of_policy(episodes, policy) for episodes in runs]
    if not all(len(group["episode"]) for group in groups):
      continue
    smooth = [(x["env_steps"], curves.smooth(x["episode_return"])) for x in groups]
    label = f"{policy} ({sum(len(x['episode']) for x in groups):,} episodes)"
    grid, values = curves.on_grid(smooth)
    seeds(axes, grid, values, label=label, style=style(number))
    if len(runs) == 1:
      every = -(-len(groups[0]["episode"]) // _MAX_POINTS)
      x, y = (groups[0][name][::every] for name in ("env_steps", "episode_return"))
      axes.scatter(x, y, s=4, color=style(number).color, alpha=0.25, linewidths=0)
  if evaluations and (returns := curves.evaluation_returns(evaluations)):
    label = f"evaluation ({len(returns):,}, mean of each)"
    steps, means = zip(*((x, np.mean(y)) for x, y in returns), strict=True)
    axes.plot(steps, means, "o-", color="black", lw=1.2, ms=4, label=label)
  of_seeds = "" if len(runs) == 1 else f", mean of {len(runs)} seeds"
  axes.set(title=title + of_seeds, xlabel="environment steps", ylabel="episode return")
  shorten_numbers(axes.xaxis)
  axes.grid(alpha=0.3)
  window = f"lines: mean over a tenth of the episodes, at most {curves.WINDOW}"
  fig.legend(loc="outside lower center", ncols=3, title=window, fontsize="small")
  save(file, fig)
  return fig
