"""Exports a run's weights and settings into one file.

    python -m explorax.experiments.export RUN_DIR --output=FILE.npz

The file is numpy's: one array for each parameter under its path, and config.json as the
bytes of `explorax/config.json`. `numpy.load(FILE, allow_pickle=False)` reads it, and
`explorax.experiments.evaluate` plays it.
"""

import pathlib
from collections.abc import Sequence
from typing import Any

from explorax.experiments import command, errors, flag_table, output

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
  from explorax.experiments import weights
  from explorax.experiments.recording import recorder

  run, target = pathlib.Path(given["runs"][0]), pathlib.Path(given["output"])
  if not (run / "config.json").exists():
    raise errors.SetUpError(f"{run} is not the directory of a run: no config.json.")
  record = output.RunDirectory(run).read_settings()
  final = run / recorder.WEIGHTS
  if (run / "summary.json").exists() and final.exists():
    where, arrays = final, weights.load_arrays(final)
  else:
    where, arrays = _of_newest_checkpoint(run)
  directory = output.RunDirectory.create(target.parent, may_hold_run=True)
  directory.write(target.name, lambda opened: weights.save(opened, arrays, record))
  print(f"The weights of {where} are in {target}.")
  return 0


def _of_newest_checkpoint(run: pathlib.Path) -> tuple[pathlib.Path, Any]:
  """The agent's weights in the newest valid checkpoint."""
  from explorax.experiments.checkpoints import checkpointer
  from explorax.experiments.recording import console

  newest = checkpointer.newest(run / "checkpoints", console.print_error)
  if newest is None:
    raise errors.SetUpError(f"{run} has neither final weights nor a checkpoint.")
  state = newest.arrays("state")
  try:  # Every runner saves the learner's state under this name.
    names = newest.record["weights"]
    return newest.path, {name: state[f"learner/{names[name]}"] for name in names}
  except KeyError as error:
    raise errors.SetUpError(
      f"{newest.path} was written by another version of this program: no {error}."
    ) from error


if __name__ == "__main__":
  command.leave(main())
