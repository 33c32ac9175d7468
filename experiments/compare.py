"""Compares runs: `python -m explorax.experiments.compare --help`."""

import functools
import pathlib
import shlex
import sys
from collections.abc import Sequence
from typing import Any

from explorax.experiments import command, errors, flag_table
from explorax.experiments.recording import console as console_lib

_PAGE = "compare.html"

_INTRODUCTION = """\
Compares the agents of runs, of any runner and environment: learning curves, returns at
the end and probabilities of improvement, with intervals over seeds.

  python -m explorax.experiments.compare DIR...

Each DIR is the --output of `python -m explorax.experiments.run`, or a directory with
runs at any depth. Runs of the same agent, settings and environment that differ only in
the seed belong together. They may still be running.

Examples
  All runs in runs/:
    python -m explorax.experiments.compare runs

  Two agents with several seeds each, into another directory:
    python -m explorax.experiments.compare runs/dqn-gym_CartPole-v1-seeds0-4 \\
      runs/dqn_ez-gym_CartPole-v1-seeds0-4 --output=public/cartpole
"""

_OUTRO = """\
OUTPUT holds compare.html, a self-contained file, and its drawings as PNG files.
Exit codes: 0 done, 1 the page could not be written, 2 no run, or a run that cannot be
read, 130 Ctrl-C.
"""

FLAGS = {
  "Output": (
    flag_table.Flag(
      "output",
      "=DIR",
      "compare",
      "Directory of the page and its drawings; an earlier page is replaced.\n"
      "[compare in the current directory]",
    ),
  ),
  "Information": (command.HELP, command.DEBUG),
}


def main(argv: Sequence[str] | None = None) -> int:
  """Runs the command and returns the exit code (see `command.main`)."""
  return command.main(
    argv,
    FLAGS,
    _compare,
    introduction=_INTRODUCTION,
    outro=_OUTRO,
    words="directories",
  )


def _compare(given: dict[str, Any], argv: list[str]) -> command.Work:
  if not given["directories"]:
    raise errors.SetUpError(
      "no directory was given; give the directories of runs: `python -m "
      "explorax.experiments.compare runs`."
    )
  asked = shlex.join(["python", "-m", "explorax.experiments.compare", *argv])
  to = pathlib.Path(given["output"])
  return functools.partial(_write, given["directories"], to, asked)


def _write(words: Sequence[str], to: pathlib.Path, asked: str) -> int:
  """Reads the runs, prints their scores, and writes the page."""
  from explorax.experiments.recording import plots
  from explorax.experiments.reports import comparison, comparison_page, runs, template

  plots.check_can_draw()
  console = console_lib.Console(sys.stdout)
  found = comparison.compute(*runs.read_all(words))
  path = template.write(comparison_page.make(found, command=asked), to, _PAGE)
  console.line(comparison_page.table(found))
  for remark in found.remarks:
    console.line(remark)
  console.line(f"The curves and the probabilities of improvement are in {path}")
  return 0


if __name__ == "__main__":
  sys.exit(main())
