"""A report: Markdown with tables and pictures, and the same as one HTML file.

Each part of a report makes estimates with intervals from groups of runs; `estimates`
makes the rows of a table of them, and `curves` a picture.
"""

import base64
import dataclasses
import functools
import html
import io
import math
import operator
import pathlib
import string
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from explorax.experiments import output
from explorax.experiments.recording import drawing, statistics
from explorax.experiments.reports import markdown

if TYPE_CHECKING:
  from matplotlib import axes as mpl_axes
  from matplotlib import figure as mpl_figure

NAME = "report"
_TEMPLATE = pathlib.Path(__file__).parent / "layout.html"
_WIDTH = 5.0  # Inches: narrow enough for a phone.
_LONG = 20  # Letters of a label that needs a legend row of its own.
_LONGEST = 44  # Letters of a label that fits in a line.

Row = dict[str, str]  # Column → text.


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
    self, name: str, draw: Callable, caption: str, *arguments: Any
  ) -> None:
    """Adds a picture, which `draw(*arguments)` draws when the report is written.

    The caption describes it for readers who cannot see it.
    """
    self.pictures[f"{name}.png"] = functools.partial(draw, *arguments)
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
    files = {}
    for name, draw in self.pictures.items():
      file = io.BytesIO()
      drawing.save(file, draw())
      files[name] = file.getvalue()
    html = self.html(files).encode()
    files |= {f"{NAME}.md": self.markdown().encode(), f"{NAME}.html": html}
    for name, content in files.items():
      directory.write(name, operator.methodcaller("write", content))
    return directory.path / f"{NAME}.html"


def estimates(
  scores: Mapping[str, statistics.Interval],
  name: str,
  columns: Mapping[str, str | Mapping[str, str]],
  spec: str | None = ".2f",
  *,
  lower_is_better: bool = False,
  are_comparable: bool = True,
) -> list[Row]:
  """A row for each agent; the best score is bold if its interval is above all others.

  Args:
    scores: agent → score.
    name: of their column.
    columns: further ones: the same text for all agents, or agent → text.
    spec: the format of numbers; None: about four digits.
    lower_is_better: the best interval is below all others.
    are_comparable: whether a score may be bold.
  """
  best = _best(scores, -1 if lower_is_better else 1) if are_comparable else None
  rows = []
  for agent, score in scores.items():
    texts = {k: x if isinstance(x, str) else x[agent] for k, x in columns.items()}
    value, interval = cells(score, spec, bold=agent == best)
    rows.append({"agent": code(agent), **texts, name: value, "95 % interval": interval})
  return rows


def _best(scores: Mapping[str, statistics.Interval], sign: int) -> str | None:
  """The agent, if any, whose interval lies above those of all others."""
  ends = {
    agent: sorted((sign * x.low, sign * x.high))
    for agent, x in scores.items()
    if not math.isnan(x.value)
  }
  for agent, (low, _) in ends.items():
    others = [high for other, (_, high) in ends.items() if other != agent]
    if others and all(low > high for high in others):
      return agent
  return None


def cells(
  interval: statistics.Interval, spec: str | None = ".2f", *, bold: bool = False
) -> tuple[str, str]:
  """A number and its 95 % interval as text; a NaN is a dash, or no interval."""
  value, low, high = (float(x) for x in interval)
  if spec is None:  # `475.2`, `12,345`, `0.004`.
    size = math.floor(math.log10(abs(value))) if value else 0
    spec = ".3g" if size < -1 else f",.{max(0, min(3, 3 - size))}f"
  text = "–" if math.isnan(value) else format(value, spec)
  ends = "" if math.isnan(low) else f"[{low:{spec}}, {high:{spec}}]"
  return (f"**{text}**" if bold else text), ends


def code(name: str) -> str:
  """A name as it is, whatever letters it has."""
  return f"`{name}`"


def curves(
  title: str,
  lines: Mapping[str, tuple[np.ndarray, Any]],
  agents: Sequence[str],
  *,
  xlabel: str,
  ylabel: str,
  **how: Any,
) -> "tuple[mpl_figure.Figure, mpl_axes.Axes]":
  """Draws curves with their intervals, or beside the seeds if these are few.

  Args:
    title: of the picture.
    lines: agent → x `[N]`, and the values `[S, N]` of S seeds, or an interval `[N]`.
    agents: all of the report, so that each has one style.
    xlabel, ylabel: of the axes.
    **how: see `drawing.seeds`.
  """
  fig, axes = new(3.2, title, lines)
  styles, handles = drawing.styles(agents), []
  for agent, (x, values) in lines.items():
    first = len(axes.lines)
    drawing.seeds(axes, x, values, label=agent, style=styles[agent], **how)
    handles.append(axes.lines[first])
  axes.set(xlabel=xlabel, ylabel=textwrap.fill(ylabel, 32))
  drawing.shorten_numbers(axes.xaxis)
  axes.grid(alpha=0.3)
  add_legend(fig, handles, lines)
  return fig, axes


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
