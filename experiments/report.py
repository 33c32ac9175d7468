"""The page of a sweep's scores: `python -m explorax.experiments.report --help`."""

import contextlib
import functools
import pathlib
import shlex
import sys
import traceback
from collections.abc import Sequence
from typing import BinaryIO

from explorax.experiments import errors, flag_table
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
  "To look around": (
    flag_table.Flag("help", "", False, "Shows this and exits."),
    flag_table.Flag("debug", "", False, "Shows where in the code an error arose."),
  ),
}


def main(argv: Sequence[str] | None = None) -> int:
  """Does what the command line asks and returns the process's exit code.

  Args:
    argv: the command line without the program's name; the process's own by default.
  """
  argv = list(sys.argv[1:] if argv is None else argv)
  try:
    given = flag_table.parse(FLAGS, argv, words="directories")
    if given["help"]:
      with contextlib.suppress(BrokenPipeError):
        print(flag_table.help_text(_INTRODUCTION, FLAGS, _OUTRO), flush=True)
      return 0
    directories = given["directories"]
    if len(directories) != 1:
      raise errors.SetUpError(
        f"{len(directories) or 'no'} directories are named; name one, the --output of "
        "a sweep, as in `python -m explorax.experiments.report results/deep_sea`."
      )
    command = shlex.join(["python", "-m", "explorax.experiments.report", *argv])
    _report(pathlib.Path(directories[0]).expanduser(), given["output"], command)
    return 0
  except (errors.SetUpError, errors.OutputError) as error:
    if "--debug" in argv:
      traceback.print_exc()
    console_lib.complain(error)
    return 1 if isinstance(error, errors.OutputError) else 2
  except KeyboardInterrupt:
    console_lib.complain("stopped; what was written is whole.")
    return 130


def _report(path: pathlib.Path, where: str | None, command: str) -> None:
  """Reads the sweep, and writes its page and drawings."""
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
  report = page.make(sweep, found, command=command)
  directory = output.RunDirectory.create(path / "report" if where is None else where)
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


def _put(content: bytes, file: BinaryIO) -> None:
  file.write(content)


if __name__ == "__main__":
  sys.exit(main())
