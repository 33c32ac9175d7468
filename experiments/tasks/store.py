"""The results of tasks on disk, each complete or absent.

    FOLDER/NAME-DIGEST.npz          results, settings and versions
    FOLDER/NAME-DIGEST.failed.txt   why the task failed: a sentence, and the traceback
    FOLDER/NAME-DIGEST.unfinished/  the state from which a running task can resume

DIGEST is a hash of the settings, so that results of several settings can coexist.
"""

import contextlib
import hashlib
import io
import json
import pathlib
import shutil
import zipfile
import zlib
from collections.abc import Mapping
from importlib import metadata
from typing import Any

import numpy as np

from explorax.experiments import output
from explorax.experiments.tasks import types

_META = "__task__"  # The entry that is not an array.
_DIGITS = 10  # Of a digest.

# Raised by numpy, zipfile and json for truncated or damaged files.
_UNREADABLE = (
  OSError,
  ValueError,
  KeyError,
  TypeError,
  EOFError,
  NotImplementedError,
  RuntimeError,
  zipfile.BadZipFile,
  zlib.error,
)


class Store:
  """The results of the tasks of one function.

  Attributes:
    directory: of the folder.
    made_by: what determines the results besides a task's settings; results with a
      different value are not used.
  """

  def __init__(
    self,
    directory: output.RunDirectory,
    folder: str = "tasks",
    made_by: Mapping[str, Any] | None = None,
  ):
    """Prepares the store; reads nothing yet.

    Args:
      directory: the directory of all results.
      folder: the folder of this store's files, relative to the directory.
      made_by: JSON values, for example a revision that increases when the tasks compute
        something else. The version of explorax is added.
    """
    self.directory = directory
    self.made_by = {"explorax": metadata.version("explorax"), **(made_by or {})}
    self._folder = folder
    self._path = directory.path / folder

  def read(self, task: types.Task) -> types.CompletedTask | None:
    """The task's results; None if there are none.

    Raises:
      UnusableResultsError: if they are damaged, or `made_by` differs.
    """
    path = self._file(task, ".npz")
    if not path.exists():
      return None
    done, made_by = _read(path)
    if made_by != self.made_by:
      raise types.UnusableResultsError(
        f"{path} is of another version ({difference(made_by, self.made_by)})"
      )
    return done

  def write(self, task: types.Task, done: types.CompletedTask) -> None:
    """Saves a task's results, and removes the state for resuming it.

    Raises:
      OutputError: if they cannot be written; earlier ones are intact.
    """
    meta = {**done._asdict(), "made_by": self.made_by}
    arrays = {k: v for k, v in done.results.items() if isinstance(v, np.ndarray)}
    meta["results"] = {k: v for k, v in done.results.items() if k not in arrays}
    arrays[_META] = np.array(json.dumps(meta))
    content = io.BytesIO()
    np.savez_compressed(content, **arrays)
    name = self._relative(task, ".npz")
    self.directory.write(name, lambda file: file.write(content.getvalue()))
    self._file(task, ".failed.txt").unlink(missing_ok=True)
    shutil.rmtree(self.unfinished(task), ignore_errors=True)

  def write_failure(self, task: types.Task, problem: str, details: str) -> pathlib.Path:
    """Saves why a task failed; returns the file.

    Raises:
      OutputError: if it cannot be written.
    """
    text = f"{problem}.\n\n{details}".encode()
    name = self._relative(task, ".failed.txt")
    self.directory.write(name, lambda file: file.write(text))
    return self.directory.path / name

  def unfinished(self, task: types.Task) -> pathlib.Path:
    """The folder for the state from which the task can resume.

    Its parent is created, so that processes can detect a shared directory.
    """
    path = self._file(task, ".unfinished").absolute()
    with contextlib.suppress(OSError):
      path.parent.mkdir(parents=True, exist_ok=True)
    return path

  def _relative(self, task: types.Task, suffix: str) -> str:
    text = json.dumps(_plain(task.settings), sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
    return str(pathlib.PurePosixPath(self._folder, f"{task.name}-{digest}{suffix}"))

  def _file(self, task: types.Task, suffix: str) -> pathlib.Path:
    return self.directory.path / self._relative(task, suffix)


def difference(old: Any, new: Any, name: str = "") -> str:
  """`batch_size was 32 and is 64`: the first setting that differs."""
  if isinstance(old, dict) and isinstance(new, dict):
    for key in (*old, *new):
      if old.get(key) != new.get(key):
        return difference(old.get(key), new.get(key), f"{name}.{key}".lstrip("."))
  return f"{name} was {old} and is {new}"


def _read(path: pathlib.Path) -> tuple[types.CompletedTask, dict[str, Any]]:
  """Reads results; raises an UnusableResultsError if the file is damaged."""
  try:
    # numpy does not close a file that it opened itself and cannot read.
    with open(path, "rb") as file, np.load(file, allow_pickle=False) as arrays:
      results = {name: arrays[name] for name in arrays.files}
    meta = json.loads(str(results.pop(_META)[()]))
    made_by = meta.pop("made_by")
    meta["results"] = {**meta["results"], **results}
    return types.CompletedTask(**meta), made_by
  except _UNREADABLE as error:
    raise types.UnusableResultsError(f"{path} cannot be read") from error


def _plain(settings: types.Settings) -> Any:
  """The settings after a round trip through JSON: tuples become lists."""
  return json.loads(json.dumps(dict(settings)))
