"""The page of a sweep's scores: `python -m explorax.experiments.report --help`."""

import functools
import pathlib
import shlex
import sys
from collections.abc import Sequence
from typing import Any, BinaryIO

from explorax.experiments import command, errors, flag_table
from explorax.experiments.recording import console as console_lib

_PAGE = "report.html"

_INTRODUCTION = """\
Makes a page of a sweep: bsuite's scores by experiment and by tag with intervals over
seeds, learning curves, and how each number was made.

  python -m explorax.experiments.report DIR

DIR is the --output of `python -m explorax.experiments.sweep`, which may still be
running: the page has what is done, and says what is missing.

Examples
  Into DIR/report:
    python -m explorax.experiments.report results/deep_sea

  Elsewhere:
    python -m explorax.experiments.report results/deep_sea --output=public/deep_sea
"""

_OUTRO = """\
OUTPUT holds report.html, one file that needs no other and no network, and its drawings
as PNGs.
Exit codes: 0 done, 1 the report could not be written, 2 DIR cannot be reported, 130
Ctrl-C.
"""

FLAGS = {
  "Where to": (
    flag_table.Flag(
      "output",
      "=DIR",
      None,
      "Where the page and its drawings go, in the place of an earlier report's.\n"
      "[report in the sweep's directory]",
    ),
  ),
  "To look around": (command.HELP, command.DEBUG),
}


def main(argv: Sequence[str] | None = None) -> int:
  """Does what the command line asks and returns the exit code (`command.main`)."""
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
      f"{len(directories) or 'no'} directories are named; name one, the --output of "
      "a sweep, as in `python -m explorax.experiments.report results/deep_sea`."
    )
  asked = shlex.join(["python", "-m", "explorax.experiments.report", *argv])
  path = pathlib.Path(directories[0]).expanduser()
  to = pathlib.Path(given["output"] or path / "report")
  return functools.partial(_write, path, to, asked)


def _write(path: pathlib.Path, to: pathlib.Path, asked: str) -> int:
  """Reads the sweep in `path`, and writes its page and drawings."""
  try:
    import matplotlib  # noqa: F401
  except ImportError as error:
    raise errors.SetUpError(
      "matplotlib is missing, which draws the report; install explorax[plots]."
    ) from error
  from explorax.experiments import output
  from explorax.experiments.reports import page, read, results

  sweep = read.read(path)
  found = results.compute(sweep)
  report = page.make(sweep, found, command=asked)
  directory = output.RunDirectory.create(to)
  earlier = directory.path / _PAGE
  old = page.files_of(earlier.read_text("utf-8")) if earlier.exists() else set()
  for picture in report.pictures:
    directory.write(picture.file, functools.partial(_put, picture.png))
  directory.write(_PAGE, functools.partial(_put, report.html.encode()))
  for name in old - {picture.file for picture in report.pictures}:
    (directory.path / name).unlink(missing_ok=True)
  console_lib.Console(sys.stdout).line(
    f"{len(sweep.logs):,} of {len(sweep.logs) + len(sweep.lacking):,} tasks are done; "
    f"their scores are in {directory.path / _PAGE}"
  )
  return 0


def _put(content: bytes, file: BinaryIO) -> None:
  file.write(content)


if __name__ == "__main__":
  sys.exit(main())
