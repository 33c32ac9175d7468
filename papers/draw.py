"""Panels of a figure, as values; a panel draws what it selects from the results.

`Curves` are lines over x, `Marks` the runs at each value of a setting, `Rows` a row of
runs for each line, and `Maps` maps, or a table of numbers in colours. `lines` map
labels to the settings that select a line's tasks. A line's colour, which is that of its
agent in all drawings, is the only sign of it; a hollow mark is a run that the limit
ended. Each panel says how many seeds it shows.
"""

import dataclasses
import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import scipy  # It imports `stats` when it is first used.

from explorax.experiments.recording import drawing, statistics
from explorax.papers import figures

GREY = "#7F7F7F"
# A page's column is 830 pixels wide on a screen of 100 dpi; drawings for it have twice
# as many pixels.
_COLUMN, _COLUMN_DPI = 8.3, 200
_COLUMN_STYLE: Any = {
  "font.size": 9,
  "axes.titlesize": 9.5,
  "figure.titlesize": 11.5,
  "axes.spines.top": False,
  "axes.spines.right": False,
  "legend.frameon": False,
}
_LABELS_IN_A_ROW = 110  # Letters.

Axes = drawing.Axes
Lines = Mapping[str, figures.Selection]
# Draws what is beside the lines, such as a reference, from the panel's tasks.
Guide = Callable[[Axes, figures.Table], Any]


def guide(method: str, *values: Any, **style: Any) -> Guide:
  """A dotted line by a method of matplotlib's axes: `guide("axhline", 1)`."""
  style = {"color": GREY, "linewidth": 1, "linestyle": ":", **style}
  return lambda axes, table: getattr(axes, method)(*values, **style)


def powers_of_two(sizes: Sequence[int]) -> Guide:
  """2^N from the least to the greatest size N, dashed."""
  x = np.linspace(min(sizes), max(sizes), 200)
  return guide("plot", x, 2.0**x, linestyle="--", label="$2^N$")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Panel:
  """Axes with guides alone; the other panels also have lines.

  Attributes:
    where: the settings that select the panel's tasks.
    guides: drawn first.
    axes: arguments of `Axes.set`, such as `title` and `xlabel`.
    grid: lines at the ticks of both axes or of one, "x" or "y"; "" for none.
    inches: the height.
  """

  where: figures.Selection = dataclasses.field(default_factory=dict)
  guides: Sequence[Guide] = ()
  axes: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  grid: str = "both"
  inches: float = 2.9

  def height(self) -> float:
    return self.inches

  def draw(self, axes: Axes, table: figures.Table) -> None:
    chosen = table.where(**self.where)
    for draw_guide in self.guides:
      draw_guide(axes, chosen)
    seeds = self.draw_lines(axes, chosen)
    scales = {k: x for k, x in self.axes.items() if k.endswith("scale")}
    around = {**scales, **self.axes}  # A scale replaces the ticks.
    if "xticks" in around:
      around.setdefault("xticklabels", around["xticks"])
      axes.update_datalim([(x, 1) for x in around["xticks"]], updatey=False)
      axes.autoscale_view()  # Neither ticks nor marks are at an edge.
    axes.set(**around)
    if "xticks" in around:
      axes.xaxis.minorticks_off()
    for name, axis in (("xticks", axes.xaxis), ("yticks", axes.yaxis)):
      if name in self.axes:
        continue
      if axis.get_scale() == "log":
        _label_logarithmic(axis)
      elif axis.get_view_interval()[1] >= 10_000:
        drawing.shorten_numbers(axis)
    if self.grid:
      axes.grid(axis=self.grid, alpha=0.3)
    if seeds:
      words = " to ".join(map(str, sorted({min(seeds), max(seeds)})))
      axes.set_xlabel(f"{axes.get_xlabel()} (n = {words})")

  def draw_lines(self, axes: Axes, table: figures.Table) -> Sequence[int]:
    """Draws the lines; returns the numbers of seeds that the x label has."""
    del axes, table
    return ()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Curves(Panel):
  """Lines over x, each a statistic over seeds with its 95 % bootstrap interval.

  Of five seeds or fewer, each is drawn in place of the interval.

  Attributes:
    y: what is measured: one number of each seed where `x` is a setting, else `[S, N]`.
    lines: label → the settings that select a line's tasks.
    x: the name of a setting, whose points are marked; or a function from a line's tasks
      to N numbers; by default 1 to N.
    statistic: over seeds, see `statistics.bootstrap`.
    blocks: draws means over so many blocks of consecutive points; 0: all points.
  """

  y: figures.Measure
  lines: Lines
  x: str | Callable[[figures.Table], Any] | None = None
  statistic: Callable[..., Any] = np.mean
  blocks: int = 0

  def draw_lines(self, axes: Axes, table: figures.Table) -> Sequence[int]:
    seeds = []
    for label, style in _styles(self.lines).items():
      if chosen := table.where(**self.lines[label]):
        x, y = self._points(chosen)
        drawing.seeds(
          axes,
          *(x, y),
          label=label,
          style=style,
          statistic=self.statistic,
          markers=isinstance(self.x, str) or len(x) == 1,
        )
        seeds.append(len(y))
    return seeds

  def _points(self, table: figures.Table) -> tuple[np.ndarray, np.ndarray]:
    """`[N]` and `[S, N]`."""
    if isinstance(self.x, str):
      return table.over(self.x, self.y)
    y = self.y(table) if callable(self.y) else table.joined(self.y)
    if self.blocks:
      parts = np.array_split(np.arange(y.shape[1]), min(self.blocks, y.shape[1]))
      middles = np.array([part.mean() + 1 for part in parts])
      return middles, np.stack([y[:, part].mean(axis=1) for part in parts], axis=1)
    x = np.arange(1, y.shape[1] + 1) if self.x is None else self.x(table)
    return np.asarray(x), y


def _styles(lines: Lines) -> dict[str, drawing.Style]:
  """Solid lines and round marks: the colour alone differs, while there are enough."""
  styles = drawing.styles([*lines])
  if len({style.color for style in styles.values()}) < len(styles):
    return styles
  return {x: style._replace(linestyle="-", marker="o") for x, style in styles.items()}


def _draw_runs(axes: Axes, x: Any, y: Any, color: str) -> None:
  axes.plot(x, y, "o", color=color, mec="none", ms=3.5, alpha=0.6)


def _draw_hollow(axes: Axes, x: Any, y: Any, color: str) -> None:
  axes.plot(x, y, "o", color=color, fillstyle="none", ms=6)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Marks(Panel):
  """The runs at each value of a setting, on logarithmic axes.

  A hollow mark at the limit, with their number, stands for all runs in which something
  did not happen. The marks of several lines are side by side.

  Attributes:
    event: that happened, see `Table.times`.
    lines: label → the settings that select a line's tasks.
    x: the name of a setting.
    fit: whether a power of x is fitted to the runs in which it happened, with its 95 %
      band; else a line joins the medians where it happened in more than half of them.
    apart: how far apart the marks of two lines are, as a share of x.
  """

  event: str
  lines: Lines
  x: str
  fit: bool = False
  apart: float = 0.012

  def draw_lines(self, axes: Axes, table: figures.Table) -> Sequence[int]:
    axes.set(xscale="log", yscale="log")
    seeds, slopes = [], 0
    for i, (label, style) in enumerate(_styles(self.lines).items()):
      chosen, color = table.where(**self.lines[label]), style.color
      xs, ys, medians = [], [], []
      for value in sorted(chosen.values(self.x)):
        times = chosen.where(**{self.x: value}).times(self.event)
        y, happened = times.episodes.ravel(), times.solved.ravel()
        seeds.append(len(y))
        side = i - (len(self.lines) - 1) / 2
        x = value * (1 + self.apart) ** side
        _draw_runs(axes, np.full(sum(happened), x), y[happened], color)
        if not happened.all():
          self._draw_limit(axes, x, y[~happened], color, int(np.sign(side)))
        xs += [value] * sum(happened)
        ys += [*y[happened]]
        median = np.median(np.where(happened, y, np.inf))
        medians.append((x, median if np.isfinite(median) else np.nan))
      if self.fit and len(set(xs)) > 2:
        slope = _draw_power(axes, np.array(xs), np.array(ys), color)
        words, place = f"$\\propto N^{{{slope:.1f}}}$", 0.04 + 0.085 * slopes
        style_of_text: Any = {"color": color, "transform": axes.transAxes}
        axes.text(0.98, place, words, ha="right", **style_of_text)
        slopes += 1
      elif not self.fit and medians:
        axes.plot(*np.array(medians).T, color=color, linewidth=1.5)
      if medians:
        axes.plot([], [], "o-", ms=4, color=color, linewidth=1.5, label=label)
    return seeds

  def _draw_limit(
    self, axes: Axes, x: float, ends: np.ndarray, color: str, side: int
  ) -> None:
    _draw_hollow(axes, x, ends.max(), color)
    axes.margins(y=0.1)  # Numbers are below the title, and not on each other.
    if len(ends) > 1:
      ha = ("center", "left", "right")[side]
      place = {"xytext": (-3 * side, 5), "textcoords": "offset points", "ha": ha}
      axes.annotate(f"{len(ends)}", (x, ends.max()), **place, fontsize=7, color=color)


def _draw_power(axes: Axes, x: np.ndarray, y: np.ndarray, color: str) -> float:
  """The least-squares line of the logarithms, with the 95 % band of its mean."""
  u, v = np.log(x), np.log(y)
  at = np.linspace(u.min(), u.max(), 100) - u.mean()
  fit = scipy.stats.linregress(u - u.mean(), v)  # Its two parameters are independent.
  line = fit.intercept + fit.slope * at
  spread = np.hypot(fit.intercept_stderr, fit.stderr * at)
  half = scipy.stats.t.ppf(0.975, len(u) - 2) * spread
  x = np.exp(at + u.mean())
  axes.plot(x, np.exp(line), color=color, linewidth=1.6)
  ends = np.exp(line - half), np.exp(line + half)
  axes.fill_between(x, *ends, color=color, alpha=0.2, linewidth=0)
  return float(fit.slope)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Rows(Panel):
  """A row for each line: a mark for each run, and their mean with its t-interval.

  The rows have their labels in the first panel, or where they are sorted.

  Attributes:
    lines: label → the settings that select a row's tasks.
    x: what is measured of each seed; without it, the episodes until the problem is
      solved: a hollow mark stands for all runs in which it is not, and the number of
      the others is on the right, not the mean.
    sort: whether the rows are sorted, the least mean first; a run that did not solve
      its problem counts ten times its length.
  """

  lines: Lines
  x: figures.Measure | None = None
  sort: bool = False
  grid: str = "x"

  def height(self) -> float:
    return 0.9 + 0.21 * len(self.lines)

  def rows(self, table: figures.Table) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Label → the values `[R]`, and whether each happened."""
    rows = {}
    for label, where in self.lines.items():
      chosen = table.where(**where)
      if chosen and self.x is None:
        times = chosen.times()
        rows[label] = times.episodes.ravel(), times.solved.ravel()
      elif chosen and self.x is not None:
        x = chosen.score(self.x)
        rows[label] = x, np.ones(len(x), bool)
    if self.sort:
      means = {x: np.mean(np.where(y, t, 10 * t)) for x, (t, y) in rows.items()}
      rows = {label: rows[label] for label in sorted(rows, key=means.__getitem__)}
    return rows

  def draw_lines(self, axes: Axes, table: figures.Table) -> Sequence[int]:
    rows, styles = self.rows(table), drawing.styles([*self.lines])
    for row, (label, (x, happened)) in enumerate(rows.items()):
      color = styles[label].color
      y = row + np.linspace(-0.22, 0.22, len(x)) * (len(x) > 1)
      _draw_runs(axes, x[happened], y[happened], color)
      ends = np.unique(x[~happened])
      _draw_hollow(axes, ends, np.full(len(ends), row), color)
      if self.x is None:
        words = f"{sum(happened)} of {len(x)}"
      else:
        words = f"n = {len(x)}"
        self._draw_mean(axes, row, x, color)
      place = {"va": "center", "fontsize": 7.5, "transform": axes.get_yaxis_transform()}
      axes.text(1.01, row, words, **place)
    has_names = self.sort or axes.get_subplotspec().is_first_col()
    axes.set_yticks(range(len(rows)), [*rows] if has_names else [])
    axes.set_ylim(max(len(rows), 1) - 0.5, -0.5)
    return ()

  def _draw_mean(self, axes: Axes, row: int, x: np.ndarray, color: str) -> None:
    mean = statistics.mean(x)
    if len(x) > 3:  # Of three seeds or fewer, an interval would dwarf the rest.
      axes.plot([mean.low, mean.high], [row, row], color=color, linewidth=1.8)
    axes.plot(mean.value, row, "o", color=color, ms=6.5, mec="white")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Maps(Panel):
  """Maps side by side on one scale with one colour bar.

  Attributes:
    values: what a map shows: `[H, W]`.
    maps: title → the settings that select its tasks.
    label: of the colour bar.
    columns: maps in a row.
  """

  values: Callable[[figures.Table], np.ndarray]
  maps: Lines
  label: str
  columns: int = 2

  def height(self) -> float:
    return 2.6 * -(-len(self.maps) // self.columns)

  def draw(self, axes: Axes, table: figures.Table) -> None:
    fig, spec = axes.figure, axes.get_subplotspec()
    axes.remove()
    chosen = table.where(**self.where)
    maps = {title: self.values(chosen.where(**x)) for title, x in self.maps.items()}
    low, high = min(map(np.nanmin, maps.values())), max(map(np.nanmax, maps.values()))
    rows = -(-len(maps) // self.columns)
    grid = spec.subgridspec(rows, min(len(maps), self.columns))
    parts = []
    for i, (title, values) in enumerate(maps.items()):
      part = fig.add_subplot(grid[divmod(i, self.columns)])
      scale = {"vmin": low, "vmax": high, "cmap": "cividis", "aspect": "auto"}
      part.imshow(values, interpolation="nearest", **scale)
      part.set(title=title, xticks=[], yticks=[], **self.axes)
      parts.append(part)
    fig.colorbar(parts[0].images[0], ax=parts, pad=0.01, label=self.label)


def draw(
  rows: Sequence[Sequence[Panel]], table: figures.Table, title: str = ""
) -> bytes:
  """Draws rows of panels as a PNG as wide as a page's column; lines are named below.

  Panels of which no tasks are in the table are left out, unless all are.
  """
  import matplotlib
  from matplotlib import figure

  filled = [[panel for panel in row if table.where(**panel.where)] for row in rows]
  rows = [row for row in filled if row] or rows
  heights = [max(panel.height() for panel in row) for row in rows]
  size = _COLUMN, sum(heights) + 0.6
  with matplotlib.rc_context(_COLUMN_STYLE):
    fig: Any = figure.Figure(size, _COLUMN_DPI, layout="constrained")
    fig.get_layout_engine().set(w_pad=0.08)
    parts = fig.subfigures(len(rows), 1, height_ratios=heights, squeeze=False)[:, 0]
    labels: dict[str, Any] = {}
    for part, row in zip(parts, rows, strict=True):
      each = part.subplots(1, len(row), squeeze=False)[0]
      for axes, panel in zip(each, row, strict=True):
        panel.draw(axes, table)
        handles, names = axes.get_legend_handles_labels()
        labels = dict(zip(names, handles, strict=True)) | labels
    if labels:
      columns = _LABELS_IN_A_ROW // (max(map(len, labels)) + 6)
      if sum(len(x) + 7 for x in labels) <= _LABELS_IN_A_ROW:
        columns = len(labels)
      place = {"loc": "outside lower center", "ncols": max(1, columns)}
      fig.legend([*labels.values()], [*labels], **place)
    file = io.BytesIO()
    drawing.save(file, fig, title=title)
  return file.getvalue()


def _label_logarithmic(axis: Any) -> None:
  """Gives an axis short numbers if nothing drawn is below 0.5.

  They are at powers of ten, and also at 2 and 5 times these if it spans less than 100.
  """
  from matplotlib import ticker

  low, high = axis.get_view_interval()
  if axis.get_data_interval()[0] > 0.5:
    subs = (1, 2, 5) if high < 100 * low else (1,)
    axis.set_major_locator(ticker.LogLocator(subs=subs, numticks=9))
    axis.set_minor_formatter(ticker.NullFormatter())
    drawing.shorten_numbers(axis)
