"""Exports a run's weights and settings into one file.

    python -m explorax.experiments.export RUN_DIR --output=FILE.npz

The file is numpy's: one array for each parameter under its path, and config.json as the
bytes of `explorax/config.json`. `numpy.load(FILE, allow_pickle=False)` reads it, and
`explorax.experiments.evaluate` plays it.
"""

import pathlib
from collections.abc import Sequence
from typing import Any

from explorax.experiments import signals

if __name__ == "__main__":
  signals.end_while_importing()

from explorax import experiments
from explorax.experiments import command, errors, flag_table

_INTRODUCTION = """\
Exports a run's weights and settings into one file.

  python -m explorax.experiments.export RUN_DIR --output=FILE.npz

RUN_DIR is the directory of a run (with --seeds, of one of its seeds). The file holds
the final weights or, if the run was killed, those of its newest checkpoint.
"""

FLAGS = {
  "Output": (
    flag_table.Flag("output", "=FILE", None, "The file; an existing one is replaced."),
  ),
  "Information": (command.HELP, command.DEBUG),
}


def main(argv: Sequence[str] | None = None) -> int:
  """Runs the command and returns the exit code (see `command.main`)."""
  return command.main(argv, FLAGS, _export, introduction=_INTRODUCTION, words="runs")


def _export(given: dict[str, Any], argv: list[str]) -> int:
  del argv
  if len(given["runs"]) != 1 or not given["output"]:
    raise errors.SetUpError(
      "give a run's directory and --output=FILE.npz (--help shows how)."
    )
  return experiments.exporting.export(
    pathlib.Path(given["runs"][0]), pathlib.Path(given["output"])
  )


if __name__ == "__main__":
  command.leave(main())
