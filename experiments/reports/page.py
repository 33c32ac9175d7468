"""A report: Markdown with pictures, and the same as one HTML file."""

import base64
import dataclasses
import functools
import html
import io
import math
import pathlib
import platform
import string
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import metadata
from typing import TYPE_CHECKING, Any, BinaryIO

from explorax.experiments import output
from explorax.experiments.recording import drawing, statistics
from explorax.experiments.reports import markdown

if TYPE_CHECKING:
  from matplotlib import figure as mpl_figure

NAME = "report"
_TEMPLATE = pathlib.Path(__file__).parent / "layout.html"
_WIDTH = 5.0  # Inches: narrow enough for a phone.
_LONG = 20  # Letters of a label that needs a legend row of its own.
_LONGEST = 44  # Letters of a label that fits in a line.


@dataclasses.dataclass
class Report:
  """A report in the making.

  Attributes:
    title: its heading.
    blocks: of Markdown.
    pictures: file name → its drawing.
    shown: the tables that the command prints, too.
  """

  title: str
  blocks: list[str] = dataclasses.field(default_factory=list)
  pictures: "dict[str, Callable[[], mpl_figure.Figure]]" = dataclasses.field(
    default_factory=dict
  )
  shown: list[str] = dataclasses.field(default_factory=list)

  def add(self, *blocks: str) -> None:
    """Adds headings, paragraphs and tables."""
    self.blocks += blocks

  def add_table(
    self, title: str, rows: Sequence[Mapping[str, str]], *, is_shown: bool = False
  ) -> None:
    """Adds a table, of which a missing value is empty."""
    names = dict.fromkeys(name for row in rows for name in row)
    filled = [{name: row.get(name, "") for name in names} for row in rows]
    table = markdown.table(filled)
    self.blocks += [f"**{title}**", table]
    if is_shown:
      self.shown.append(f"{title}\n\n{table}")

  def add_picture(
    self, name: str, draw: "Callable[[], mpl_figure.Figure]", caption: str
  ) -> None:
    """Adds a picture, which is drawn when the report is written.

    The caption describes it for readers who cannot see it.
    """
    self.pictures[f"{name}.png"] = draw
    self.blocks += [f"![{caption}]({name}.png)", f"*{caption}*"]

  def markdown(self) -> str:
    return "\n\n".join([f"# {self.title}", *self.blocks]) + "\n"

  def html(self, pictures: Mapping[str, bytes]) -> str:
    """The page with its pictures, file name → PNG, within."""
    import markdown_it

    renderer = markdown_it.MarkdownIt("commonmark", {"html": False}).enable("table")
    text = renderer.render(self.markdown())
    for name, png in pictures.items():
      data = base64.b64encode(png).decode()
      text = text.replace(f'src="{name}"', f'src="data:image/png;base64,{data}"')
    template = string.Template(_TEMPLATE.read_text(encoding="utf-8"))
    return template.substitute(title=html.escape(self.title), body=text)

  def write(self, path: pathlib.Path) -> pathlib.Path:
    """Writes `report.md`, its pictures and `report.html`; returns the last one.

    Raises:
      OutputError: if a file cannot be written.
    """
    directory = output.RunDirectory.create(path)
    pictures = {name: _png(draw()) for name, draw in self.pictures.items()}
    texts = {f"{NAME}.md": self.markdown(), f"{NAME}.html": self.html(pictures)}
    files = {name: text.encode() for name, text in texts.items()}
    for name, content in {**pictures, **files}.items():
      directory.write(name, functools.partial(_put, content))
    return directory.path / f"{NAME}.html"


def _png(fig: "mpl_figure.Figure") -> bytes:
  file = io.BytesIO()
  drawing.save(file, fig)
  return file.getvalue()


def _put(content: bytes, file: BinaryIO) -> None:
  file.write(content)


def versions(*packages: str) -> str:
  """The versions of Python and of the packages that make every page, and of others."""
  names = ("explorax", "numpy", "scipy", "matplotlib", *packages)
  each = ", ".join(f"{name} {metadata.version(name)}" for name in names)
  return f"python {platform.python_version()}, {each}"


def cells(
  interval: statistics.Interval, spec: str = ".2f", *, bold: bool = False
) -> tuple[str, str]:
  """A number and its 95 % interval as text; a NaN is a dash, or no interval."""
  value, low, high = (float(x) for x in interval)
  text = "–" if math.isnan(value) else format(value, spec)
  ends = "" if math.isnan(low) else f"[{low:{spec}}, {high:{spec}}]"
  return (f"**{text}**" if bold else text), ends


def code(name: str) -> str:
  """A name as it is, whatever letters it has."""
  return f"`{name}`"


def new(
  height: float, title: str, names: Iterable[str], **kwargs: Any
) -> "tuple[mpl_figure.Figure, Any]":
  """A figure and its axes, with room for a legend of these names below."""
  wrapped = _wrapped(names)
  lines = sum(text.count("\n") + 1 for text in wrapped)
  legend = 0.2 * math.ceil(lines / _columns(wrapped)) if wrapped else 0.0
  fig, ((axes,),) = drawing.new(width=_WIDTH, height=height + legend, **kwargs)
  fig.suptitle("\n".join(_wrapped([title])), fontsize="medium")
  return fig, axes


def add_legend(
  fig: "mpl_figure.Figure", lines: Sequence[Any], names: Iterable[str]
) -> None:
  """Draws the legend below the axes, where it hides nothing."""
  wrapped = _wrapped(names)
  fig.legend(
    lines,
    wrapped,
    loc="outside lower center",
    ncols=_columns(wrapped),
    frameon=False,
  )


def _columns(names: Sequence[str]) -> int:
  return 1 if max(map(len, names)) > _LONG else 2


def _wrapped(names: Iterable[str]) -> list[str]:
  """Wraps names into lines that fit, if possible before a setting."""
  return [
    "\n".join(
      textwrap.wrap(name.replace("@", " @"), _LONGEST, break_on_hyphens=False)
    ).replace(" @", "@")
    for name in names
  ]
