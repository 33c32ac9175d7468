"""The settings and weights of a trained agent: of a run, or of an exported file."""

import os
import pathlib
from typing import Any, NamedTuple

import numpy as np

from explorax.agents import types
from explorax.environments import spec_records
from explorax.experiments import errors, output, weights
from explorax.experiments.checkpoints import checkpointer
from explorax.experiments.recording import console, recorder


class Trained(NamedTuple):
  """What a run has learnt.

  Attributes:
    path: as it was given.
    source: the file or checkpoint that holds the weights.
    record: the content of the run's config.json.
    arrays: name → array, as `weights.named` names them.
  """

  path: pathlib.Path
  source: pathlib.Path
  record: dict[str, Any]
  arrays: dict[str, np.ndarray]

  @property
  def spec(self) -> types.EnvironmentSpec:
    """Of the environment.

    Raises:
      SetUpError: if it was written before specs were recorded.
    """
    if "spec" not in self.record:
      raise errors.SetUpError(
        f"{self.path} does not say what the agent's observations are: it was written "
        "by an earlier version of explorax."
      )
    return spec_records.from_record(self.record["spec"])

  def check_spec(self, spec: types.EnvironmentSpec, env: str) -> None:
    """Refuses an environment with other observations or actions.

    Raises:
      SetUpError: in one sentence, with both.
    """
    if "spec" not in self.record or self.spec == spec:
      return
    ours, theirs = spec_records.describe(self.spec), spec_records.describe(spec)
    if ours == theirs:
      ours, theirs = f"{self.spec.observations}", f"{spec.observations}"
    raise errors.SetUpError(
      f"the agent of {self.path} was trained in {self.record['env']}, with {ours}; "
      f"{env} has {theirs}."
    )


def read(path: str | os.PathLike[str]) -> Trained:
  """Reads a run's directory, or a file of `python -m explorax.experiments.export`.

  Of a run these are the final weights or, if it has not finished, those of its newest
  checkpoint. Nothing that the settings name is imported.

  Raises:
    SetUpError: if there is no run, or it has no weights yet.
    OSError, ValueError, OutputError: if the file or directory cannot be read.
  """
  path = pathlib.Path(path).expanduser()
  if not path.exists():
    raise errors.SetUpError(
      f"there is no {path}: give the directory of a run, or an exported file."
    )
  if not path.is_dir():
    arrays, record = weights.load_with_settings(path)
    return Trained(path, path, record, arrays)
  if not (path / "config.json").exists():
    raise errors.SetUpError(f"{path} is not the directory of a run: no config.json.")
  record = output.RunDirectory(path).read_settings()
  final = path / recorder.WEIGHTS
  if (path / "summary.json").exists() and final.exists():
    return Trained(path, final, record, weights.load_arrays(final))
  return _of_newest_checkpoint(path, record)


def _of_newest_checkpoint(path: pathlib.Path, record: dict[str, Any]) -> Trained:
  """The agent's weights in the newest valid checkpoint."""
  newest = checkpointer.newest(path / "checkpoints", console.print_error)
  if newest is None:
    seeds = sorted(each.name for each in path.glob("seed*") if each.is_dir())
    hint = f"; it holds several seeds: name one, as {path / seeds[0]}" if seeds else ""
    raise errors.SetUpError(f"{path} has neither final weights nor a checkpoint{hint}.")
  state = newest.arrays("state")
  try:  # Every runner saves the learner's state under this name.
    names = newest.record["weights"]
    arrays = {name: state[f"learner/{names[name]}"] for name in names}
  except KeyError as error:
    raise errors.SetUpError(
      f"{newest.path} was written by another version of this program: no {error}."
    ) from error
  return Trained(path, newest.path, record, arrays)
