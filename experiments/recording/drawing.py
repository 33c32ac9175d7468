"""The style of drawings: lines that also differ in grey, bands, captions."""

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import numpy as np

from explorax.experiments.recording import statistics

if TYPE_CHECKING:
  from matplotlib import axes as mpl_axes
  from matplotlib import figure as mpl_figure

DPI = 150
_CAPTION_SIZE = 8.5  # Points.
_CHARACTERS_PER_INCH = 15.5  # Of the caption's letters.


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


def style(index: int) -> Style:
  """The style of line number `index`, from 0; it repeats after 8 lines."""
  return _STYLES[index % len(_STYLES)]


def new(
  rows: int = 1,
  columns: int = 1,
  *,
  width: float = 4.2,
  height: float = 3.2,
  **kwargs: Any,
) -> "tuple[mpl_figure.Figure, np.ndarray]":
  """A figure and its axes `[rows, columns]`; width and height of each in inches.

  Other arguments are those of matplotlib's `subplots`.
  """
  # Without pyplot, which would keep the figure and choose a GUI backend.
  from matplotlib import figure

  fig = figure.Figure(
    figsize=(max(5.0, width * columns), height * rows), dpi=DPI, layout="constrained"
  )
  return fig, fig.subplots(rows, columns, squeeze=False, **kwargs)


def curve(
  axes: "mpl_axes.Axes",
  x: Sequence[float] | np.ndarray,
  values: np.ndarray,
  *,
  label: str,
  index: int,
  statistic: Any = statistics.mean_over_seeds,
  markers: bool = False,
) -> statistics.Interval:
  """Draws the mean over seeds with its 95 % interval.

  Args:
    axes: to draw into.
    x: `[N]`.
    values: `[S, N]`, S seeds.
    label: in the legend.
    index: of the line, for its style.
    statistic: replaces the mean; see `statistics.bootstrap`.
    markers: marks the points, for curves with few of them.

  Returns:
    The artists.
  """
  interval = statistics.bootstrap(values, statistic)
  s = style(index)
  axes.plot(
    x,
    interval.value,
    color=s.color,
    linestyle=s.linestyle,
    marker=s.marker if markers else None,
    markersize=4,
    linewidth=1.6,
    label=label,
  )
  axes.fill_between(
    x, interval.low, interval.high, color=s.color, alpha=0.18, linewidth=0
  )
  return interval


def heat_map(
  axes: "mpl_axes.Axes", values: np.ndarray, *, title: str, label: str, **kwargs: Any
) -> None:
  """Draws `[H, W]` as a map with its scale; NaN is left white."""
  image = axes.imshow(values, cmap="cividis", interpolation="nearest", **kwargs)
  axes.set_title(title, fontsize="medium")
  axes.set_xticks([])
  axes.set_yticks([])
  bar = axes.figure.colorbar(image, ax=axes, shrink=0.8)
  bar.set_label(label, fontsize="small")


def save(
  file: BinaryIO,
  fig: "mpl_figure.Figure",
  *,
  title: str = "",
  caption: Sequence[str] = (),
) -> None:
  """Writes a drawing as a PNG, with a title above and a caption below.

  Args:
    file: the output file.
    fig: the drawing; its height grows for the caption.
    title: '' for none.
    caption: its paragraphs; empty for no caption.
  """
  if title:
    fig.suptitle(title)
  if caption:
    width, height = fig.get_size_inches()
    columns = int(width * _CHARACTERS_PER_INCH)
    lines = [line for text in caption for line in textwrap.wrap(text, columns)]
    line_height = _CAPTION_SIZE * 1.3 / 72
    below = (len(lines) + 1.5) * line_height
    fig.set_size_inches(width, height + below)
    share = below / (height + below)
    fig.set_layout_engine("constrained", rect=(0, share, 1, 1 - share))
    fig.text(
      0.01,
      share - 0.5 * line_height / (height + below),
      "\n".join(lines),
      fontsize=_CAPTION_SIZE,
      va="top",
      linespacing=1.3,
    )
  fig.savefig(file, format="png")
