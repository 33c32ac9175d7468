"""The work of `report`: reads runs, and writes their page."""

import pathlib
import sys
from collections.abc import Sequence

from explorax.experiments import errors, reports
from explorax.experiments.recording import console as console_lib
from explorax.experiments.recording import plots
from explorax.experiments.reports import page, runs

_PAGE = "report.html"


def report(
  words: Sequence[str], baseline: str | None, to: pathlib.Path, asked: str
) -> int:
  """Reads the runs, prints their scores, and writes the page."""
  plots.check_can_draw()
  found = runs.read_all(words)
  if not found.runs:
    raise errors.SetUpError(
      " ".join(
        [
          f"no run in {', '.join(words)} has a finished episode that can be read, so "
          "there is nothing to report; wait for one, or run the command again.",
          *found.remarks[:1],
        ]
      )
    )
  content = page.compute(found, baseline)
  path = reports.template.write(page.make(content, command=asked), to, _PAGE)
  console = console_lib.Console(sys.stdout)
  console.line(page.text(content))
  console.line(f"{len(found.runs):,} runs, {len(found.missing):,} missing: {path}")
  return 0
