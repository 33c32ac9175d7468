"""Makes a sweep's report: `python -m explorax.experiments.report --help`."""

import functools
import pathlib
import shlex
import sys
from collections.abc import Sequence
from typing import Any

from explorax.experiments import command, errors, flag_table
from explorax.experiments.recording import console as console_lib

_PAGE = "report.html"

_INTRODUCTION = """\
Makes the report of a sweep: bsuite's scores by experiment and by tag with intervals
over seeds, learning curves, and how each number was computed.

  python -m explorax.experiments.report DIR

DIR is the --output of `python -m explorax.experiments.sweep`. The sweep may still be
running: the report covers the finished tasks and lists the missing ones.

Examples
  Into results/deep_sea/report:
    python -m explorax.experiments.report results/deep_sea

  Into another directory:
    python -m explorax.experiments.report results/deep_sea --output=public/deep_sea
"""

_OUTRO = """\
OUTPUT holds report.html, a self-contained file, and its drawings as PNG files.
Exit codes: 0 done, 1 the report could not be written, 2 DIR holds no sweep to report,
130 Ctrl-C.
"""

FLAGS = {
  "Output": (
    flag_table.Flag(
      "output",
      "=DIR",
      None,
      "Directory of the page and its drawings; an earlier report is replaced.\n"
      "[report in the sweep's directory]",
    ),
  ),
  "Information": (command.HELP, command.DEBUG),
}


def main(argv: Sequence[str] | None = None) -> int:
  """Runs the command and returns the exit code (see `command.main`)."""
  return command.main(
    argv,
    FLAGS,
    _report,
    introduction=_INTRODUCTION,
    outro=_OUTRO,
    words="directories",
  )


def _report(given: dict[str, Any], argv: list[str]) -> command.Work:
  directories = given["directories"]
  if len(directories) != 1:
    raise errors.SetUpError(
      f"got {len(directories)} directories; give exactly one, the --output of a "
      "sweep: `python -m explorax.experiments.report results/deep_sea`."
    )
  asked = shlex.join(["python", "-m", "explorax.experiments.report", *argv])
  path = pathlib.Path(directories[0]).expanduser()
  to = pathlib.Path(given["output"] or path / "report")
  return functools.partial(_write, path, to, asked)


def _write(path: pathlib.Path, to: pathlib.Path, asked: str) -> int:
  """Reads the sweep in `path`, and writes its page and drawings."""
  from explorax.experiments.recording import plots
  from explorax.experiments.reports import page, read, results, template

  plots.check_can_draw()
  sweep = read.read(path)
  found = results.compute(sweep)
  report = page.make(sweep, found, command=asked)
  console_lib.Console(sys.stdout).line(
    f"{len(sweep.logs):,} of {len(sweep.logs) + len(sweep.lacking):,} tasks are done; "
    f"their scores are in {template.write(report, to, _PAGE)}"
  )
  return 0


if __name__ == "__main__":
  sys.exit(main())
