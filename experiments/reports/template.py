"""Fills the templates of pages, and writes each page with its drawings."""

import base64
import functools
import pathlib
import platform
import re
from collections.abc import Mapping, Sequence
from importlib import metadata
from typing import Any, BinaryIO, NamedTuple

import jinja2
import markupsafe

from explorax.experiments import output
from explorax.experiments.recording import statistics, summary
from explorax.experiments.reports import pictures


class Report(NamedTuple):
  """A report's content.

  Attributes:
    html: the page, including all drawings.
    pictures: the drawings as files.
  """

  html: str
  pictures: Sequence[pictures.Picture]


def fill(
  name: str, drawn: Mapping[str, Sequence[pictures.Picture]], **context: Any
) -> Report:
  """Fills a template of this folder.

  Args:
    name: of the template, `report.html`.
    drawn: its drawings, by section.
    **context: its other variables.
  """

  def breakable(name: str) -> str:
    """A name that may wrap between its parts."""
    escaped = str(markupsafe.escape(name))
    return markupsafe.Markup(re.sub(r"[_.:/@](?=.)", r"\g<0><wbr>", escaped))

  environment = jinja2.Environment(
    loader=jinja2.FileSystemLoader(pathlib.Path(__file__).parent),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
  )
  environment.filters |= {
    "base64": lambda content: base64.b64encode(content).decode(),
    "breakable": breakable,
    "count": summary.count,
    "duration": summary.duration,
  }
  html = environment.get_template(name).render(
    drawings=drawn,
    level=f"{100 * statistics.LEVEL:.0f}",
    num_resamples=f"{statistics.NUM_RESAMPLES:,}",
    **context,
  )
  return Report(html, [picture for section in drawn.values() for picture in section])


def write(report: Report, to: pathlib.Path, name: str) -> pathlib.Path:
  """Writes a page and its drawings.

  Args:
    report: from `fill`.
    to: the directory, which is created.
    name: of the page.

  Returns:
    The path of the page.
  """
  directory = output.RunDirectory.create(to)
  path = directory.path / name
  for picture in report.pictures:
    directory.write(picture.file, functools.partial(_put, picture.png))
  directory.write(name, functools.partial(_put, report.html.encode()))
  return path


def versions(*packages: str) -> str:
  """The versions of Python and of the packages that make every page, and of others."""
  names = ("explorax", "numpy", "matplotlib", *packages)
  each = ", ".join(f"{name} {metadata.version(name)}" for name in names)
  return f"python {platform.python_version()}, {each}"


def _put(content: bytes, file: BinaryIO) -> None:
  file.write(content)
