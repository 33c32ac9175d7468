"""Writes a run's weights and settings into one file."""

import os
import pathlib
from typing import Any

from explorax.experiments import errors, output, weights
from explorax.experiments.checkpoints import checkpointer
from explorax.experiments.recording import console, recorder


def export(run: str | os.PathLike[str], file: str | os.PathLike[str]) -> None:
  """Writes the final weights of a run, or else those of its newest checkpoint.

  Raises:
    SetUpError: if `run` is not the directory of a run, or has no weights.
  """
  run, target = pathlib.Path(run), pathlib.Path(file)
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


def _of_newest_checkpoint(run: pathlib.Path) -> tuple[pathlib.Path, Any]:
  """The agent's weights in the newest valid checkpoint."""
  newest = checkpointer.newest(run / "checkpoints", console.print_error)
  if newest is None:
    raise errors.SetUpError(f"{run} has neither final weights nor a checkpoint.")
  # Every runner saves the learner's state under this name.
  state = {
    name.removeprefix("agent/"): array for name, array in newest.arrays("state").items()
  }
  try:
    sources = newest.record["weights"]
    return newest.path, {name: state[f"learner/{sources[name]}"] for name in sources}
  except KeyError as error:
    raise errors.SetUpError(
      f"{newest.path} was written by another version of this program: no {error}."
    ) from error
