"""Writes a run's weights and settings into one file."""

import os
import pathlib
from typing import Any

import jax

from explorax import environments
from explorax.experiments import errors, output, playing, weights
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
    where, arrays = _of_newest_checkpoint(run, record)
  directory = output.RunDirectory.create(target.parent, may_hold_run=True)
  directory.write(target.name, lambda opened: weights.save(opened, arrays, record))
  print(f"The weights of {where} are in {target}.")


def _of_newest_checkpoint(
  run: pathlib.Path, record: dict[str, Any]
) -> tuple[pathlib.Path, Any]:
  """The learner's weights in the newest valid checkpoint."""
  newest = checkpointer.newest(run / "checkpoints", console.print_error)
  if newest is None:
    raise errors.SetUpError(f"{run} has neither final weights nor a checkpoint.")
  environment = environments.make(record["env"], seed=record["seed"])
  try:
    agent = playing.make_agent(record, environments.spec(environment))
  finally:
    environment.close()
  # Every runner saves the learner's state under this name.
  like = jax.eval_shape(agent.learner.init, jax.random.PRNGKey(0))
  arrays = {
    name.removeprefix("agent/").removeprefix("learner/"): array
    for name, array in newest.arrays("state").items()
    if name.startswith(("learner/", "agent/learner/"))
  }
  refusal = f"{newest.path} was written by another version of this program"
  return newest.path, agent.learner.params(weights.arranged(arrays, like, refusal))
