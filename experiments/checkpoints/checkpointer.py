"""Decides when a checkpoint is due, which ones are kept, and which one is restored."""

import math
import pathlib
import shutil
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from explorax.experiments import errors
from explorax.experiments.checkpoints import files

_REFUSED = "refused_"


class Snapshot(NamedTuple):
  """A runner's state, without the state of the rest of the program.

  Attributes:
    groups: name → a pytree of arrays.
    counts: values in JSON's types.
    folders: name → a function that writes files of another format into a given folder.
  """

  groups: Mapping[str, Any]
  counts: Mapping[str, Any]
  folders: Mapping[str, Callable[[pathlib.Path], None]] = {}


def newest(
  directory: pathlib.Path,
  warn: Callable[[str], None],
  *,
  renames_damaged: bool = False,
) -> files.Checkpoint | None:
  """The newest valid checkpoint, or None.

  Args:
    directory: of the checkpoints.
    warn: receives a message about each damaged one.
    renames_damaged: whether damaged ones get a name that no run reads or overwrites.
  """
  for path in reversed(_paths(directory)):
    try:
      return files.read(path)
    except files.DamagedCheckpointError as error:
      text = f"{error}"
      if renames_damaged:
        aside = path.with_name(_REFUSED + path.name)
        shutil.rmtree(aside, ignore_errors=True)
        path.rename(aside)
        text += f"; it was renamed to {aside.name}"
      warn(f"{text}.")
  return None


class Checkpointer:
  """Writes a run's checkpoints, and finds the newest valid one.

  Times are measured by the monotonic clock, summed over the processes of the run.

  Attributes:
    directory: of the checkpoints.
    restored: the checkpoint from which the run resumes; None if it starts.
    with_replay: whether checkpoints contain replay.
    recorder_state: returns the recorder's state; None after a write failure.
    on_saved: called with each checkpoint's directory and environment steps.
    problem: why the newest state could not be written; None if it was.
  """

  def __init__(
    self,
    directory: pathlib.Path,
    *,
    with_replay: bool,
    weights: Callable[[], Mapping[str, str]] = dict,
    every: int | None = None,
    minutes: float = math.inf,
    keep: int = 2,
    warn: Callable[[str], None] = lambda text: None,
    clock: Callable[[], float] = time.monotonic,
  ):
    """Finds the newest valid checkpoint, and renames damaged ones.

    Args:
      directory: see the attributes; it may not exist yet.
      with_replay: see the attributes.
      weights: returns the name of each of the agent's weights → its name in the
        learner's state, so that they can be exported without the agent.
      every: a checkpoint is due when a multiple of this number of environment steps was
        passed; None: only by time.
      minutes: one is due this long after the last one.
      keep: number of newest checkpoints to keep.
      warn: receives messages about failed writes and reads.
      clock: seconds.

    Raises:
      OutputError: if checkpoints exist, or were renamed earlier, and none is valid.
    """
    self.directory = directory
    self.with_replay = with_replay
    self.recorder_state: Callable[[], Mapping[str, Any] | None] = dict
    self.on_saved: Callable[[pathlib.Path, int], None] = lambda path, env_steps: None
    self.problem: errors.OutputError | None = None
    self._weights = weights
    self._every = every
    self._minutes = minutes
    self._keep = keep
    self._warn = warn
    self._clock = clock
    for unfinished in directory.glob(f".*{files.TEMPORARY}"):
      shutil.rmtree(unfinished, ignore_errors=True)
    self.restored = newest(directory, warn, renames_damaged=True)
    if self.restored is None and any(directory.glob(f"{_REFUSED}*")):
      raise errors.OutputError(
        f"none of the checkpoints in {directory} is valid; choose another --output, or "
        "delete the run's directory if you do not need the run."
      )
    record = self.restored.record if self.restored else {"seconds": 0.0, "env_steps": 0}
    self._saved_steps = record["env_steps"]
    self._saved_at = clock()
    self._began = clock() - record["seconds"]

  @property
  def seconds(self) -> float:
    """How long the run has lasted, over all its processes."""
    return self._clock() - self._began

  def is_due(self, env_steps: int) -> bool:
    """Whether a checkpoint is due."""
    every = self._every
    if every is not None and env_steps // every > self._saved_steps // every:
      return True
    return self._clock() - self._saved_at >= 60 * self._minutes

  def save(self, env_steps: int, snapshot: Snapshot) -> bool:
    """Writes a checkpoint, or warns that this failed.

    Returns:
      Whether it was written. Older ones are deleted only then.
    """
    recorder_state = self.recorder_state()
    if recorder_state is None:
      return False
    record = {
      "env_steps": env_steps,
      "seconds": self.seconds,
      "counts": snapshot.counts,
      "recorder": recorder_state,
      "weights": self._weights(),
    }
    paths = _paths(self.directory)
    path = self.directory / f"step_{env_steps:012d}"
    while paths and path.name <= paths[-1].name:  # At the same step.
      path = path.with_name(f"{path.name}_1")
    try:
      files.write(path, snapshot.groups, record, snapshot.folders)
    except errors.OutputError as error:
      self._warn(f"{error}; the run continues, and earlier checkpoints are intact.")
      self.problem = error
      return False
    finally:
      # After a failure, do not try again at every step.
      self._saved_steps, self._saved_at = env_steps, self._clock()
    self.problem = None
    for old in [*paths, path][: -self._keep]:
      shutil.rmtree(old, ignore_errors=True)
    self.on_saved(path, env_steps)
    return True


def _paths(directory: pathlib.Path) -> list[pathlib.Path]:
  """The checkpoints, oldest first."""
  return sorted(directory.glob("step_*"))
