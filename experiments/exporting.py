"""The work of `export`: finds a run's newest weights, and writes them."""

import pathlib
from typing import Any

from explorax.experiments import errors, output, weights
from explorax.experiments.checkpoints import checkpointer
from explorax.experiments.recording import console, recorder


def export(run: pathlib.Path, target: pathlib.Path) -> int:
  """Writes the weights of a run's directory to a file; returns the exit code."""
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
