"""Decides when a checkpoint is due, which ones are kept, and which one is restored."""

import math
import pathlib
import re
import shutil
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from explorax.experiments import errors
from explorax.experiments.checkpoints import files

# A second checkpoint at the same step (after an evaluation, for example) has a suffix.
_NAME = re.compile(r"step_(\d+)(?:_(\d+))?")
_SET_ASIDE = "refused_"


class Snapshot(NamedTuple):
  """A runner's state, without the state of the rest of the program.

  Attributes:
    groups: name → a pytree of arrays; the size of `replay` is reported separately.
    counts: values in JSON's types.
    folders: name → a function that writes files of another format into a given folder.
  """

  groups: Mapping[str, Any]
  counts: Mapping[str, Any]
  folders: Mapping[str, Callable[[pathlib.Path], None]] = {}


def newest(
  directory: pathlib.Path, warn: Callable[[str], None]
) -> files.Checkpoint | None:
  """The newest valid checkpoint of any run, or None; changes nothing.

  Args:
    directory: of the checkpoints.
    warn: receives a message about each damaged one.
  """
  for path in reversed(_paths(directory)):
    try:
      return files.read(path)
    except files.DamagedCheckpointError as error:
      warn(f"{error}.")
  return None


class Checkpointer:
  """Writes a run's checkpoints, and finds the newest valid one.

  Times are measured by the monotonic clock, summed over the processes of the run.

  Attributes:
    directory: of the checkpoints.
    found: the checkpoint from which the run resumes; None if it starts.
    with_replay: whether checkpoints contain replay.
    companion: returns the recorder's state; None after a write failure.
    permits: whether a checkpoint may be made now; one that is due waits for it.
    tell: receives messages about the size of checkpoints.
  """

  def __init__(
    self,
    directory: pathlib.Path,
    run: str,
    *,
    with_replay: bool,
    every: int | None = None,
    minutes: float = math.inf,
    keep: int = 2,
    warn: Callable[[str], None] = lambda text: None,
    clock: Callable[[], float] = time.monotonic,
  ):
    """Searches for checkpoints, and renames damaged ones.

    Args:
      directory: see the attributes; it may not exist yet.
      run: identifies the run's settings.
      with_replay: see the attributes.
      every: a checkpoint is due when a multiple of this number of environment steps was
        passed; None: only by time.
      minutes: one is due this long after the last one.
      keep: number of newest checkpoints to keep.
      warn: receives messages about failed writes and reads.
      clock: seconds.
    """
    self.with_replay = with_replay
    self.directory = directory
    self._run = run
    self._every = every
    self._minutes = minutes
    self._keep = keep
    self.companion: Callable[[], Mapping[str, Any] | None] = dict
    self.permits: Callable[[], bool] = lambda: True
    self.tell: Callable[[str], None] = lambda text: None
    self._warn = warn
    self._clock = clock
    self._has_reported_size = False
    self.found = self.find()
    self._seconds_before = self.found.record["seconds"] if self.found else 0.0
    self._began = self._saved_at = clock()
    self._saved_steps = self.found.record["env_steps"] if self.found else 0

  @property
  def seconds(self) -> float:
    """How long the run has lasted, over all its processes."""
    return self._seconds_before + self._clock() - self._began

  def is_due(self, env_steps: int) -> bool:
    """Whether a checkpoint is due."""
    if not self.permits():
      return False
    every = self._every
    if every is not None and env_steps // every > self._saved_steps // every:
      return True
    return self._clock() - self._saved_at >= 60 * self._minutes

  def save(self, env_steps: int, snapshot: Snapshot) -> bool:
    """Writes a checkpoint, or warns that this failed.

    Returns:
      Whether it was written. Older ones are deleted only then.
    """
    companion = self.companion()
    if companion is None:
      return False
    record = {
      "run": self._run,
      "env_steps": env_steps,
      "seconds": self.seconds,
      "counts": snapshot.counts,
      "companion": companion,
    }
    path = self._free_name(env_steps)
    began = self._clock()
    try:
      files.write(path, snapshot.groups, record, snapshot.folders)
      self._rotate()
    except (errors.OutputError, OSError) as error:
      self._warn(f"{error}; the run continues, and earlier checkpoints are intact.")
      return False
    finally:
      # After a failure, do not try again at every step.
      self._saved_steps, self._saved_at = env_steps, self._clock()
    self._report_size(path, self._clock() - began)
    return True

  def find(self) -> files.Checkpoint | None:
    """The newest valid one; damaged ones are renamed.

    Raises:
      OutputError: if checkpoints exist, or were renamed earlier, and none is valid.
    """
    if not self.directory.is_dir():
      return None
    for leftover in self.directory.glob(".*"):
      if leftover.is_dir():
        shutil.rmtree(leftover, ignore_errors=True)
    for path in reversed(_paths(self.directory)):
      try:
        checkpoint = files.read(path)
        if checkpoint.record["run"] != self._run:
          raise files.DamagedCheckpointError(f"{path} is of a run with other settings")
      except files.DamagedCheckpointError as error:
        aside = path.with_name(_SET_ASIDE + path.name)
        shutil.rmtree(aside, ignore_errors=True)
        path.rename(aside)
        self._warn(f"{error}; it was renamed to {aside.name}.")
      else:
        return checkpoint
    if refused := len(list(self.directory.glob(f"{_SET_ASIDE}*"))):
      raise errors.OutputError(
        f"none of the {refused} checkpoints in {self.directory} is valid; choose "
        "another --output, or delete the run's directory if you do not need it."
      )
    return None

  def _free_name(self, env_steps: int) -> pathlib.Path:
    path = self.directory / f"step_{env_steps:012d}"
    last = [each for each in _paths(self.directory) if each.name.startswith(path.name)]
    if not last:
      return path
    return path.with_name(f"{path.name}_{_order(last[-1])[1] + 1}")

  def _rotate(self) -> None:
    """Deletes all but the newest ones."""
    for path in _paths(self.directory)[: -self._keep]:
      # Renamed first: a half-deleted one must not look like a checkpoint.
      doomed = path.with_name(f".{path.name}.old")
      path.rename(doomed)
      shutil.rmtree(doomed, ignore_errors=True)

  def _report_size(self, path: pathlib.Path, seconds: float) -> None:
    """Reports the size after the first checkpoint."""
    if self._has_reported_size:
      return
    self._has_reported_size = True
    text = f"A checkpoint takes {_num_mib(path):,.1f} MiB"
    if (path / "replay").exists():
      text += f", {_num_mib(path / 'replay'):,.1f} MiB of it replay,"
    self.tell(f"{text} and was written in {seconds:.1f} s; {self._keep} are kept.")


def _paths(directory: pathlib.Path) -> list[pathlib.Path]:
  """The checkpoints, oldest first."""
  paths = [path for path in directory.glob("step_*") if _NAME.fullmatch(path.name)]
  return sorted(paths, key=_order)


def _order(path: pathlib.Path) -> tuple[int, int]:
  """(environment steps, number among those at the same step)."""
  match = _NAME.fullmatch(path.name)
  return (int(match[1]), int(match[2] or 0)) if match else (0, 0)


def _num_mib(path: pathlib.Path) -> float:
  """Size of the files in a directory."""
  files_in = (file for file in path.rglob("*") if file.is_file())
  return sum(file.stat().st_size for file in files_in) / 2**20
