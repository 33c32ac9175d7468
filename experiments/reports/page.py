"""A page: Markdown with tables and pictures, and the same as one HTML file.

Each part of a report makes estimates with intervals from groups of runs; `estimates`
makes the rows of a table of them, and `curves` a picture.
"""

import base64
import dataclasses
import html
import io
import math
import operator
import pathlib
import string
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from explorax.experiments import output
from explorax.experiments.recording import drawing, statistics
from explorax.experiments.reports import markdown

NAME = "report"
_TEMPLATE = pathlib.Path(__file__).parent / "layout.html"
_WIDTH = 5.0  # Inches: narrow enough for a phone.
_LONGEST = 44  # Letters of a label that fits in a line.

Row = Mapping[str, str]  # Column → text.


@dataclasses.dataclass
class Page:
  """A page in the making.

  Attributes:
    title: its heading.
    blocks: of Markdown.
    pictures: file name → its drawing.
    shown: the tables that the command prints, too.
  """

  title: str
  blocks: list[str] = dataclasses.field(default_factory=list)
  pictures: dict[str, Callable[[], drawing.Figure]] = dataclasses.field(
    default_factory=dict
  )
  shown: list[str] = dataclasses.field(default_factory=list)

  def add(self, *blocks: str) -> None:
    """Adds headings and paragraphs."""
    self.blocks += blocks

  def add_table(
    self, title: str, rows: Sequence[Row], *, is_shown: bool = False
  ) -> None:
    """Adds a table."""
    table = markdown.table(rows)
    self.blocks += [f"**{title}**", table]
    if is_shown:
      self.shown.append(f"{title}\n\n{table}")

  def add_picture(
    self, name: str, caption: str, draw: Callable[[], drawing.Figure]
  ) -> None:
    """Adds a picture, which is drawn when the page is written.

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
    directory = output.RunDirectory(path)
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
  to_text: Callable[[float], str] = "{:.2f}".format,
) -> list[Row]:
  """A row for each agent.

  Args:
    scores: agent → score.
    name: of their column.
    columns: further ones: the same text for all agents, or agent → text.
    to_text: formats numbers.
  """
  rows: list[Row] = []
  for agent, score in scores.items():
    texts = {k: x if isinstance(x, str) else x[agent] for k, x in columns.items()}
    value, interval = cells(score, to_text)
    row = {"agent": f"`{agent}`", **texts, name: value, "95 % interval": interval}
    rows.append(row)
  return rows


def cells(
  interval: statistics.Interval, to_text: Callable[[float], str] = "{:.2f}".format
) -> tuple[str, str]:
  """A number and its 95 % interval as text; a NaN is a dash, or no interval."""
  value, low, high = (float(x) for x in interval)
  ends = "" if math.isnan(low) else f"[{to_text(low)}, {to_text(high)}]"
  return "–" if math.isnan(value) else to_text(value), ends


def curves(
  title: str,
  lines: Mapping[str, tuple[np.ndarray, np.ndarray]],
  agents: Sequence[str],
  *,
  ylabel: str,
  **how: Any,
) -> drawing.Figure:
  """Draws curves with their intervals, or beside the seeds if these are few.

  Args:
    title: of the picture.
    lines: agent → environment steps `[N]`, and the values `[S, N]` of S seeds.
    agents: all of the report, so that each has one style.
    ylabel: of the axis.
    **how: see `drawing.seeds`.
  """
  fig, axes = new(3.2, title, len(lines))
  styles, handles = drawing.styles(agents), {}
  for agent, (x, values) in lines.items():
    first = len(axes.lines)
    drawing.seeds(axes, x, values, label=agent, style=styles[agent], **how)
    handles[agent] = axes.lines[first]
  axes.set(xlabel="environment steps", ylabel=ylabel)
  drawing.shorten_numbers(axes.xaxis)
  axes.grid(alpha=0.3)
  add_legend(fig, handles)
  return fig


def new(height: float, title: str, num_lines: int) -> tuple[drawing.Figure, Any]:
  """A figure and its axes, with room for a legend of so many lines below."""
  fig, axes = drawing.new(_WIDTH, height + 0.2 * num_lines)
  fig.suptitle(title, fontsize="medium")
  return fig, axes


def add_legend(fig: drawing.Figure, handles: Mapping[str, Any]) -> None:
  """Draws the legend, label → line, below the axes, where it hides nothing."""
  labels = [textwrap.fill(label, _LONGEST) for label in handles]
  fig.legend(handles.values(), labels, loc="outside lower center", frameon=False)
