"""The style of drawings: lines that also differ in grey, and bands."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import numpy as np

from explorax.experiments.recording import statistics

if TYPE_CHECKING:
  from matplotlib import axes as mpl_axes
  from matplotlib import axis as mpl_axis
  from matplotlib import figure as mpl_figure

DPI = 150


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
  band(axes, x, interval, label=label, index=index, markers=markers)
  return interval


def band(
  axes: "mpl_axes.Axes",
  x: Sequence[float] | np.ndarray,
  interval: statistics.Interval,
  *,
  label: str,
  index: int,
  markers: bool = False,
) -> None:
  """Draws a statistic `[N]` as a line, and its interval; arguments as in `curve`."""
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


def shorten_numbers(axis: "mpl_axis.Axis") -> None:
  """An axis has 500, 20k and 1.5M: long numbers would run into each other."""
  from matplotlib import ticker

  axis.set_major_formatter(ticker.EngFormatter(sep=""))


def save(file: BinaryIO, fig: "mpl_figure.Figure", *, title: str = "") -> None:
  """Writes a drawing as a PNG, with a title above if it is not empty."""
  if title:
    fig.suptitle(title)
  try:
    fig.savefig(file, format="png")
  except ValueError:  # `$` in a name of a user begins no formula.
    texts: Any = fig.findobj(lambda artist: hasattr(artist, "set_parse_math"))
    for text in texts:
      text.set_parse_math(False)
    fig.savefig(file, format="png")
