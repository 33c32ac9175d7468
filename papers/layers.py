"""Layers of panels: curves, marks, rows of marks and lines of reference.

`lines` map labels to the settings that select the tasks of a line. A label's style is
that of its agent in all drawings (`drawing.styles`). Lines without tasks are left out,
and do not change the style of the others. A label that begins with an underscore is not
in the legend.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from explorax.experiments.recording import drawing, statistics
from explorax.papers import panels, types

GREY = "#7F7F7F"
THIN = {"linestyle": ":", "linewidth": 1.2}
_HOLLOW: dict[str, Any] = {"fillstyle": "none", "ms": 6}

Lines = Mapping[str, types.Selection]


@dataclasses.dataclass(frozen=True)
class Curves:
  """Lines over x, each a statistic over seeds.

  Five seeds or fewer are drawn one by one, more as a 95 % bootstrap interval.

  Attributes:
    y: what is measured: one number for each seed where `x` is a setting, else `[S, N]`.
    lines: label → the settings that select a line's tasks.
    x: the name of a setting; N numbers, or a function from a line's tasks to them; by
      default 1 to N.
    statistic: over seeds; see `statistics.bootstrap`.
    markers: marks the points, for curves with few of them.
    blocks: to make long curves readable, draws means over so many blocks of consecutive
      points; 0 for all points.
    thin: matplotlib's arguments of lines without an interval.
    among: all labels of the figure, where `lines` are some of them.
  """

  y: types.Measure
  lines: Lines
  x: str | Sequence[float] | np.ndarray | Callable[[types.Table], Any] | None = None
  statistic: Callable[..., Any] = np.mean
  markers: bool = False
  blocks: int = 0
  thin: Mapping[str, Any] | None = None
  among: Sequence[str] = ()

  def __call__(self, axes: types.Axes, table: types.Table) -> None:
    styles = drawing.styles(self.among or [label.strip("_") for label in self.lines])
    for label, where in self.lines.items():
      if not (chosen := table.where(**where)):
        continue
      (x, y), style = self._points(chosen), styles[label.strip("_")]
      if self.thin is None:
        drawing.seeds(
          axes,
          x,
          y,
          label=label,
          style=style,
          statistic=self.statistic,
          markers=self.markers,
        )
      else:
        options = {"linestyle": style.linestyle, "color": style.color, **self.thin}
        marker = style.marker if self.markers else None
        axes.plot(x, self.statistic(y, axis=0), marker=marker, label=label, **options)

  def _points(self, table: types.Table) -> tuple[np.ndarray, np.ndarray]:
    """`[N]` and `[S, N]`."""
    if isinstance(self.x, str):
      return over(self.x, table, self.y)
    y = table.curve(self.y)
    if self.blocks:
      parts = np.array_split(np.arange(y.shape[1]), min(self.blocks, y.shape[1]))
      middles = np.array([part.mean() + 1 for part in parts])
      return middles, np.stack([y[:, part].mean(axis=1) for part in parts], axis=1)
    x = self.x(table) if callable(self.x) else self.x
    return np.arange(1, y.shape[1] + 1) if x is None else np.asarray(x), y


def over(
  setting: str, table: types.Table, measure: types.Measure
) -> tuple[np.ndarray, np.ndarray]:
  """The values of a setting `[N]`, rising, and the scores of each, `[S, N]`."""
  values = sorted(table.values(setting))
  scores = [table.where(**{setting: value}).score(measure) for value in values]
  return np.array(values), np.stack(scores, axis=1)


@dataclasses.dataclass(frozen=True)
class Dots:
  """A small dot at each pair of two measured numbers."""

  x: types.Measure
  y: types.Measure

  def __call__(self, axes: types.Axes, table: types.Table) -> None:
    x, y = (table.curve(measure).ravel() for measure in (self.x, self.y))
    axes.plot(x, y, ".", ms=1.5, alpha=0.3, color=drawing.style(0).color)


@dataclasses.dataclass(frozen=True)
class Seeds:
  """Each seed as a mark at a setting's value.

  A hollow mark, with their number, stands for all seeds in which something did not
  happen. A line joins the medians of the values at which it happened in more than half
  of the seeds. The marks of several lines are side by side.

  Attributes:
    y: what is measured of each seed.
    x: the name of a setting.
    lines: label → the settings that select a line's tasks.
    filled: whether a seed's mark is filled.
    hollow: the label of hollow marks.
    dodge: the distance of two lines' marks, as a factor of x.
    joined: the settings of the tasks that the line joins.
  """

  y: types.Measure
  x: str
  lines: Lines
  filled: types.Measure
  hollow: str
  dodge: float = 1.0
  joined: types.Selection = dataclasses.field(default_factory=dict)

  def __call__(self, axes: types.Axes, table: types.Table) -> None:
    middle, any_hollow = (len(self.lines) - 1) / 2, False
    for i, (label, style) in enumerate(drawing.styles([*self.lines]).items()):
      if not (chosen := table.where(**self.lines[label])):
        continue
      medians = []
      for value in sorted(chosen.values(self.x)):
        of_value = chosen.where(**{self.x: value})
        y, filled = of_value.score(self.y), of_value.score(self.filled) > 0
        x = value * self.dodge ** (i - middle)
        marks: Any = {"color": style.color, "marker": style.marker, "linestyle": ""}
        size: Any = {"ms": 4} if len(y) <= drawing.FEW else {"ms": 3, "alpha": 0.4}
        axes.plot(np.full(sum(filled), x), y[filled], **marks, **size)
        if not filled.all():
          any_hollow, end, side = True, y[~filled].max(), int(np.sign(i - middle))
          axes.plot(x, end, **marks, **_HOLLOW)
          axes.annotate(
            f"{np.sum(~filled)}",
            (x, end),
            xytext=(0, 5),
            textcoords="offset points",
            ha=("center", "left", "right")[side],
            fontsize=7,
            color=style.color,
          )
        median = np.median(np.where(filled, y, np.inf))
        if of_value.where(**self.joined):
          medians.append((x, median if np.isfinite(median) else np.nan))
      line: Any = {"color": style.color, "linestyle": style.linestyle, "linewidth": 1.4}
      axes.plot(*np.array(medians).T, **line)
      axes.plot([], [], marker=style.marker, ms=5, **line, label=label)
    if any_hollow:
      axes.plot([], [], "o", color="0.4", **_HOLLOW, label=f"{self.hollow} (number)")


@dataclasses.dataclass(frozen=True)
class Rows:
  """A row for each line: a mark for each seed, and their mean with its t-interval.

  Attributes:
    x: what is measured of each seed.
    lines: label → the settings that select a row's tasks.
    filled: whether a seed has a filled mark; one hollow mark stands for all others.
      Then there is no mean, but the number of filled marks on the right.
    hollow: the label of hollow marks.
  """

  x: types.Measure
  lines: Lines
  filled: types.Measure | None = None
  hollow: str = ""

  def __call__(self, axes: types.Axes, table: types.Table) -> None:
    styles = drawing.styles([*self.lines])
    labels = [label for label, where in self.lines.items() if table.where(**where)]
    for row, label in enumerate(labels):
      chosen, style = table.where(**self.lines[label]), styles[label]
      x = chosen.scores(self.x).ravel() if self.filled else chosen.score(self.x)
      y = row + np.linspace(-0.2, 0.2, len(x)) * (len(x) > 1)
      marks: Any = {"color": style.color, "marker": style.marker, "linestyle": ""}
      if self.filled:
        filled = chosen.scores(self.filled).ravel() > 0
        axes.plot(x[filled], y[filled], **marks, ms=5)
        ends = np.unique(x[~filled])
        axes.plot(ends, np.full(len(ends), row), **marks, **_HOLLOW)
        words = f"{filled.sum()} of {len(x)}"
        place: Any = axes.get_yaxis_transform()
        axes.text(1.01, row, words, va="center", fontsize=8, transform=place)
      else:
        draw_row(axes, row, x, style)
    if self.hollow:
      axes.plot([], [], "o", color="0.4", **_HOLLOW, label=self.hollow)
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.5, -0.5)


def draw_row(
  axes: types.Axes,
  row: int,
  x: np.ndarray,
  style: drawing.Style,
  scale: Callable[[np.ndarray], np.ndarray] = np.asarray,
) -> None:
  """A small mark for each of `x` `[S]`, and their mean with its 95 % t-interval."""
  value, *ends = statistics.mean(x).map(scale)
  marks: Any = {"color": style.color, "marker": style.marker, "linestyle": ""}
  spread = row + np.linspace(-0.25, 0.25, len(x)) * (len(x) > 1)
  axes.plot(scale(x), spread, **marks, ms=3, alpha=0.45)
  if len(x) > 3:  # Of three seeds or fewer, an interval would dwarf the rest.
    axes.plot(ends, [row, row], color=style.color, linewidth=1.8)
  axes.plot(value, row, **marks, ms=7, mec="white")


def horizontal(y: float, label: str | None = None, **style: Any) -> panels.Layer:
  """A horizontal line of reference."""

  def draw_line(axes: types.Axes, table: types.Table) -> None:
    del table
    axes.axhline(y, label=label, **{"color": GREY, "linewidth": 1, **style})

  return draw_line


def vertical(x: float, **style: Any) -> panels.Layer:
  """A vertical line of reference."""

  def draw_line(axes: types.Axes, table: types.Table) -> None:
    del table
    axes.axvline(x, **{"color": GREY, "linewidth": 1, **style})

  return draw_line


def reference(
  x: Sequence[float] | np.ndarray,
  function: Callable[[np.ndarray], np.ndarray],
  label: str | None = None,
  **style: Any,
) -> panels.Layer:
  """The values of a function at x, as a line of reference."""

  def draw_line(axes: types.Axes, table: types.Table) -> None:
    del table
    points = np.asarray(x, np.float64)
    options = {"color": GREY, "linewidth": 1, **style}
    axes.plot(points, function(points), label=label, **options)

  return draw_line


def two_to_the_n(sizes: Sequence[int]) -> panels.Layer:
  """2^N: the episodes that dithering needs in Deep Sea of size N."""
  x = np.linspace(min(sizes), max(sizes), 200)
  return reference(x, lambda n: 2.0**n, "$2^N$")
