"""The results of tasks on disk, each complete or absent.

    FOLDER/NAME-DIGEST.npz          results, settings and versions
    FOLDER/NAME-DIGEST.failed.txt   why the task failed: a sentence, and the traceback

DIGEST is a hash of the settings, so that results of several settings can coexist.
"""

import hashlib
import io
import json
import pathlib
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

  def read(self, task: types.Task) -> types.CompletedTask | None:
    """The task's results; None if there are none, or if they are damaged or differ in
    `made_by`."""
    try:
      # numpy does not close a file that it opened itself and cannot read.
      with open(self._file(task, ".npz"), "rb") as file, np.load(file) as arrays:
        results = {name: arrays[name] for name in arrays.files}
      meta = json.loads(str(results.pop(_META)[()]))
      made_by = meta.pop("made_by")
      meta["results"] = {**meta["results"], **results}
      done = types.CompletedTask(**meta)
    except _UNREADABLE:
      return None
    return done if made_by == self.made_by else None

  def write(self, task: types.Task, done: types.CompletedTask) -> None:
    """Saves a task's results, and removes an earlier failure.

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

  def write_failure(self, task: types.Task, failure: types.Failure) -> pathlib.Path:
    """Saves why a task failed; returns the file.

    Raises:
      OutputError: if it cannot be written.
    """
    name = self._relative(task, ".failed.txt")
    write_failure(self.directory, name, failure)
    return self.directory.path / name

  def _relative(self, task: types.Task, suffix: str) -> str:
    text = json.dumps(_plain(task.settings), sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
    return str(pathlib.PurePosixPath(self._folder, f"{task.name}-{digest}{suffix}"))

  def _file(self, task: types.Task, suffix: str) -> pathlib.Path:
    return self.directory.path / self._relative(task, suffix)


def write_failure(
  directory: output.RunDirectory, name: str, failure: types.Failure
) -> None:
  """Writes a file: a sentence, and the traceback."""
  text = f"{failure.problem}.\n\n{failure.details}".encode()
  directory.write(name, lambda file: file.write(text))


def _plain(settings: types.Settings) -> Any:
  """The settings after a round trip through JSON: tuples become lists."""
  return json.loads(json.dumps(dict(settings)))
