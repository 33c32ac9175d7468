"""What tasks under way leave, so that they are gone on with and not begun anew.

    unfinished/AGENT/seed0/deep_sea-0/   a task's checkpoints (`checkpoints/files.py`)

Our agents go on to the bit: on Deep Sea from the reports of the device runner, with
bsuite's own environments from the ends of episodes, since those cannot be saved within
one. Agents of users cannot be saved at all, and their tasks begin anew.
"""

import contextlib
import dataclasses
import hashlib
import json
import pathlib
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from importlib import metadata
from typing import Any, NamedTuple

from explorax.experiments import errors, output
from explorax.experiments.checkpoints import keeper
from explorax.experiments.sweeps import lock, tasks

_FOLDER = "unfinished"
_TOKEN = ".shared"
# What the numbers depend on beside the settings: with another one they begin anew.
_ARITHMETIC = ("explorax", "jax", "jaxlib", "dm-haiku", "optax", "rlax", "numpy")
_PATIENCE = 60.0  # Seconds for a process that was left by an earlier sweep to end.


class Place(NamedTuple):
  """Where checkpoints go, and when: plain data, which can cross processes.

  Attributes:
    folder: of the sweep's checkpoints.
    token: what its file `.shared` holds; a machine on which it does not sees another
      folder of that name, and writes no checkpoints.
    minutes: between two checkpoints of a task.
  """

  folder: str
  token: str
  minutes: float


def prepare(directory: output.RunDirectory, minutes: float) -> Place:
  """The place of a sweep's checkpoints.

  Raises:
    OutputError: if it cannot be written to.
  """
  token = secrets.token_hex(8)
  directory.write(f"{_FOLDER}/{_TOKEN}", lambda file: file.write(token.encode()))
  folder = str((directory.path / _FOLDER).absolute())
  return Place(folder, token, minutes)


def exists(directory: pathlib.Path, task: tasks.Task) -> bool:
  """Whether the task has a checkpoint, good or not."""
  return any(_path(directory / _FOLDER, task).glob("step_*"))


def drop(directory: pathlib.Path, task: tasks.Task) -> None:
  """Removes what the task has left."""
  shutil.rmtree(_path(directory / _FOLDER, task), ignore_errors=True)


def drop_all(directory: pathlib.Path) -> None:
  """Removes the folder, if no task is unfinished."""
  if not any((directory / _FOLDER).glob("*/seed*/*/step_*")):
    shutil.rmtree(directory / _FOLDER, ignore_errors=True)


class Saves:
  """A task's checkpoints, with the rows that it has logged so far.

  Attributes:
    keeper: for a runner.
    rows: those logged before the checkpoint that the task goes on from.
    log: what was saved beside them.
    seconds: that the task took until then.
  """

  def __init__(self, checkpoints: keeper.Keeper):
    self.keeper = checkpoints
    companion = checkpoints.found.record["companion"] if checkpoints.found else {}
    self.rows: list[dict[str, Any]] = list(companion.get("rows", ()))
    self.log: Mapping[str, Any] = companion.get("log", {})
    self.seconds = checkpoints.seconds

  def attach(
    self,
    rows: list[dict[str, Any]],
    log: Callable[[], Mapping[str, Any]],
    complete: Callable[[], bool],
  ) -> None:
    """Has the checkpoints hold these.

    Args:
      rows: a list that grows.
      log: what else its writer needs to go on.
      complete: whether the task is done, and needs no checkpoint any more.
    """

    def companion() -> Mapping[str, Any] | None:
      return None if complete() else {"rows": rows, "log": log()}

    self.keeper.companion = companion


@contextlib.contextmanager
def open_saves(
  place: Place | None, task: tasks.Task, settings: Mapping[str, Any]
) -> Iterator[Saves | None]:
  """A task's checkpoints while the block lasts; none if this machine has no such place.

  They are removed if the block raises an exception: it would do so again.

  Args:
    place: of all; None for no checkpoints.
    task: that they are of.
    settings: of its agent.

  Raises:
    SetUpError: if another process does this task, and does not end.
  """
  if place is None or not _is_here(place):
    yield None
    return
  folder = _path(pathlib.Path(place.folder), task)
  try:
    folder.mkdir(parents=True, exist_ok=True)
  except OSError:  # A full disk costs checkpoints, and not the task.
    yield None
    return
  with lock.hold(folder, patience=_PATIENCE):
    saves = _find(folder, _fingerprint(task, settings), place.minutes)
    try:
      yield saves
    except Exception:
      shutil.rmtree(folder, ignore_errors=True)
      raise


def _find(folder: pathlib.Path, run: str, minutes: float) -> Saves:
  """Begins anew where what is there is damaged, or of other settings."""

  def find() -> Saves:
    return Saves(keeper.Keeper(folder, run, with_replay=True, minutes=minutes))

  try:
    return find()
  except errors.OutputError:
    for path in folder.glob("*step_*"):
      shutil.rmtree(path, ignore_errors=True)
    return find()


def _fingerprint(task: tasks.Task, settings: Mapping[str, Any]) -> str:
  versions = {name: metadata.version(name) for name in _ARITHMETIC}
  content = [dataclasses.asdict(task), settings, versions, tasks.REVISION]
  text = json.dumps(content, sort_keys=True)
  return hashlib.sha256(text.encode()).hexdigest()


def _is_here(place: Place) -> bool:
  try:
    return (pathlib.Path(place.folder) / _TOKEN).read_text() == place.token
  except OSError:
    return False


def _path(folder: pathlib.Path, task: tasks.Task) -> pathlib.Path:
  name = task.bsuite_id.replace("/", "-")
  return folder / tasks.file_name(task.agent) / f"seed{task.seed}" / name
