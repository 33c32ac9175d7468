"""Layers of panels: curves, marks, bars, heat maps and lines of reference.

`lines` map labels to the settings that select the tasks of a line. Lines without tasks
are left out, and do not change the style of the others. A label that begins with an
underscore is not in the legend.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from explorax.experiments.recording import drawing, statistics
from explorax.papers import panels, types

GREY = "#7F7F7F"
THIN = {"linestyle": ":", "linewidth": 1}

Lines = Mapping[str, types.Selection]


@dataclasses.dataclass(frozen=True)
class Curves:
  """Lines over x, each a statistic over seeds with its 95 % bootstrap interval.

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
    first: the number of the first line's style.
  """

  y: types.Measure
  lines: Lines
  x: str | Sequence[float] | np.ndarray | Callable[[types.Table], Any] | None = None
  statistic: Callable[[np.ndarray], np.ndarray] = statistics.mean_over_seeds
  markers: bool = False
  blocks: int = 0
  thin: Mapping[str, Any] | None = None
  first: int = 0

  def __call__(self, axes: types.Axes, table: types.Table) -> None:
    for index, (label, where) in enumerate(self.lines.items(), self.first):
      if chosen := table.where(**where):
        self._line(axes, index, label, *self._points(chosen))

  def _line(
    self, axes: types.Axes, index: int, label: str, x: np.ndarray, y: np.ndarray
  ) -> None:
    if self.thin is not None:
      style = drawing.style(index)
      options = {"linestyle": style.linestyle, "color": style.color, **self.thin}
      marker = style.marker if self.markers else None
      axes.plot(x, self.statistic(y[None])[0], marker=marker, label=label, **options)
    else:
      drawing.curve(
        axes,
        x,
        y,
        label=label,
        index=index,
        statistic=self.statistic,
        markers=self.markers,
      )

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


def computed(
  lines: Callable[[types.Table], Mapping[str, np.ndarray]],
  x: Sequence[float] | np.ndarray,
) -> panels.Layer:
  """Curves at x `[N]` that are computed from all tasks: label → `[S, N]`."""

  def draw_lines(axes: types.Axes, table: types.Table) -> None:
    for index, (label, y) in enumerate(lines(table).items()):
      drawing.curve(axes, x, y, label=label, index=index)

  return draw_lines


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
  """Each seed as a mark at a setting's value, hollow where something did not happen.

  Attributes:
    y: what is measured of each seed.
    x: the name of a setting.
    lines: label → the settings that select a line's tasks.
    filled: whether a seed's mark is filled.
    hollow: the label of hollow marks.
  """

  y: types.Measure
  x: str
  lines: Lines
  filled: types.Measure
  hollow: str

  def __call__(self, axes: types.Axes, table: types.Table) -> None:
    for index, (label, where) in enumerate(self.lines.items()):
      chosen, style = table.where(**where), drawing.style(index)
      for value in sorted(chosen.values(self.x)):
        of_value = chosen.where(**{self.x: value})
        y, is_filled = of_value.score(self.y), of_value.score(self.filled) > 0
        for filled, face in ((True, style.color), (False, "none")):
          marks = y[is_filled == filled]
          axes.plot(
            np.full(len(marks), value),
            marks,
            style.marker,
            color=style.color,
            markerfacecolor=face,
            markersize=5,
          )
      if chosen:
        axes.plot([], [], style.marker, color=style.color, markersize=5, label=label)
    axes.plot([], [], "o", color="0.4", markerfacecolor="none", label=self.hollow)


@dataclasses.dataclass(frozen=True)
class Intervals:
  """A row for each line: the mean with its t-interval, and a tick for each seed."""

  x: types.Measure
  lines: Lines

  def __call__(self, axes: types.Axes, table: types.Table) -> None:
    labels: list[str] = []
    for label, where in self.lines.items():
      chosen, row = table.where(**where), len(labels)
      if not chosen:
        continue
      values = chosen.score(self.x)
      interval = statistics.mean(values)
      color = drawing.style(min(row, 1)).color
      axes.plot([interval.low, interval.high], [row, row], color=color)
      axes.plot(interval.value, row, "o", color=color)
      axes.plot(values, np.full(len(values), row), "|", color=GREY, ms=9)
      labels.append(label)
    axes.set_yticks(range(len(labels)), labels)
    axes.invert_yaxis()


@dataclasses.dataclass(frozen=True)
class Bars:
  """Groups of bars: the mean over problems, with a stratified bootstrap interval.

  Attributes:
    y: what is measured: `[S, problems]`.
    groups: label on the x-axis → the settings that select its tasks.
    bars: label in the legend → the same.
    mark: another measure, drawn as a mark on each bar.
    mark_label: its label.
  """

  y: Callable[[types.Table], np.ndarray]
  groups: Lines
  bars: Lines
  mark: types.Measure
  mark_label: str

  def __call__(self, axes: types.Axes, table: types.Table) -> None:
    width = 0.76 / len(self.bars)
    for index, (label, where) in enumerate(self.bars.items()):
      tables = [table.where(**where, **group) for group in self.groups.values()]
      x = np.arange(len(tables)) + (index - (len(self.bars) - 1) / 2) * width
      value, low, high = np.array(
        [
          statistics.stratified([*self.y(t).T], statistics.mean_of_tasks)
          for t in tables
        ]
      ).T
      axes.bar(
        x,
        value,
        width,
        yerr=[value - low, high - value],
        capsize=3,
        color=drawing.style(index).color,
        hatch=("", "//")[index % 2],
        edgecolor="white",
        label=label,
      )
      axes.plot(
        x,
        [np.mean(t.score(self.mark)) for t in tables],
        "D",
        color="black",
        markerfacecolor="none",
        markersize=5,
        label=None if index else self.mark_label,
      )
    axes.set_xticks(range(len(self.groups)), list(self.groups))


@dataclasses.dataclass(frozen=True)
class HeatMap:
  """The mean score at each pair of two settings' values, from 0 to 1, as text too."""

  values: types.Measure
  x: str
  y: str
  label: str

  def __call__(self, axes: types.Axes, table: types.Table) -> None:
    columns, rows = (sorted(table.values(name)) for name in (self.x, self.y))
    values = np.array(
      [
        [
          np.mean(table.where(**{self.x: x, self.y: y}).score(self.values))
          for x in columns
        ]
        for y in rows
      ]
    )
    image = axes.imshow(
      values, cmap="cividis", vmin=0, vmax=1, origin="lower", aspect="auto"
    )
    axes.figure.colorbar(image, ax=axes, shrink=0.8).set_label(
      self.label, fontsize="small"
    )
    axes.set_xticks(range(len(columns)), [f"{x:g}" for x in columns])
    axes.set_yticks(range(len(rows)), [f"{y:g}" for y in rows])
    for (row, column), value in np.ndenumerate(values):
      axes.text(
        column,
        row,
        f"{value:.2f}",
        ha="center",
        va="center",
        color="white" if value < 0.5 else "black",
        fontsize="small",
      )


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
