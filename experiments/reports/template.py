"""Fills the templates of pages, and writes each page with its drawings."""

import base64
import functools
import math
import pathlib
import platform
import re
from collections.abc import Mapping, Sequence
from importlib import metadata
from typing import Any, BinaryIO, NamedTuple

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
  import jinja2
  import markupsafe

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
    "decimals": decimals,
    "duration": summary.duration,
    "hours": _hours,
    "seeds": seeds,
  }
  html = environment.get_template(name).render(
    drawings=drawn,
    level=f"{100 * statistics.LEVEL:.0f}",
    num_resamples=f"{statistics.NUM_RESAMPLES:,}",
    **context,
  )
  return Report(html, [picture for section in drawn.values() for picture in section])


def write(report: Report, to: pathlib.Path, name: str) -> pathlib.Path:
  """Writes a page and its drawings; drawings of an earlier page are removed.

  Args:
    report: from `fill`.
    to: the directory, which is created.
    name: of the page.

  Returns:
    The path of the page.
  """
  directory = output.RunDirectory.create(to)
  path = directory.path / name
  old = files_of(path.read_text("utf-8")) if path.exists() else set()
  for picture in report.pictures:
    directory.write(picture.file, functools.partial(_put, picture.png))
  directory.write(name, functools.partial(_put, report.html.encode()))
  for file in old - {picture.file for picture in report.pictures}:
    (directory.path / file).unlink(missing_ok=True)
  return path


def files_of(html: str) -> set[str]:
  """The names of the drawings in a page of `fill`."""
  return set(re.findall(r'data-file="([\w.-]+\.png)"', html))


def versions(*packages: str) -> str:
  """The versions of Python and of the packages that make every page, and of others."""
  names = ("explorax", "numpy", "matplotlib", *packages)
  told = ", ".join(f"{name} {metadata.version(name)}" for name in names)
  return f"python {platform.python_version()}, {told}"


def seeds(numbers: Sequence[int]) -> str:
  """`seed 3`, `seeds 0 to 4`, `seeds 0, 2`."""
  if len(numbers) == 1:
    return f"seed {numbers[0]}"
  first, last = numbers[0], numbers[-1]
  if len(numbers) > 2 and list(numbers) == list(range(first, last + 1)):
    return f"seeds {first} to {last}"
  return f"seeds {', '.join(map(str, numbers))}"


def decimals(value: float) -> str:
  return f"{value:.2f}"


def _put(content: bytes, file: BinaryIO) -> None:
  file.write(content)


def _hours(seconds: float) -> str:
  """`40 minutes`, `7.5 hours`, `120 hours`."""
  if seconds < 5400:
    return summary.count(math.ceil(seconds / 60), "minute")
  hours = seconds / 3600
  return f"{hours:.1f} hours" if hours < 10 else f"{hours:,.0f} hours"
