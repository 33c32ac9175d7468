"""Pictures of a page: narrow enough for a phone, and legible without colour."""

import io
import math
import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from explorax.experiments.recording import drawing

if TYPE_CHECKING:
  from matplotlib import figure as mpl_figure

WIDTH = 5.0  # Inches.
_LONG = 20  # Letters of a label that needs a legend row of its own.
_LONGEST = 44  # Letters of a label that fits in a line.


class Picture(NamedTuple):
  """A drawing on the page, and a file beside it.

  Attributes:
    file: its name.
    png: its content.
    alt: a description for readers who cannot see it.
    caption: below it.
  """

  file: str
  png: bytes
  alt: str
  caption: str


def make(name: str, fig: "mpl_figure.Figure", alt: str, caption: str) -> Picture:
  file = io.BytesIO()
  drawing.save(file, fig)
  return Picture(f"{name}.png", file.getvalue(), alt, caption)


def new(
  height: float, title: str, names: Iterable[str]
) -> "tuple[mpl_figure.Figure, Any]":
  """A figure and its axes, with room for a legend of these names below."""
  names = list(names)
  lines = sum(text.count("\n") + 1 for text in wrapped(names))
  legend = 0.2 * math.ceil(lines / legend_columns(names))
  fig, ((axes,),) = drawing.new(width=WIDTH, height=height + legend)
  fig.suptitle(title, fontsize="medium")
  return fig, axes


def legend(
  fig: "mpl_figure.Figure", lines: Sequence[Any], names: Iterable[str]
) -> None:
  """Draws the legend below the axes, where it hides nothing."""
  names = list(names)
  columns = legend_columns(names)
  place = "outside lower center"
  fig.legend(lines, wrapped(names), loc=place, ncols=columns, frameon=False)


def legend_columns(names: Sequence[str]) -> int:
  return 1 if max(map(len, names)) > _LONG else 2


def wrapped(names: Iterable[str]) -> list[str]:
  """Wraps names into lines that fit, if possible before a setting."""
  return [
    "\n".join(
      textwrap.wrap(name.replace("@", " @"), _LONGEST, break_on_hyphens=False)
    ).replace(" @", "@")
    for name in names
  ]
