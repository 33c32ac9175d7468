"""The results of tasks on disk, each complete or absent.

    FOLDER/NAME-DIGEST.npz          results, settings and versions
    FOLDER/NAME-DIGEST.failed.txt   why the task failed: the traceback

DIGEST is a hash of the settings, so that results of several settings can coexist.
"""

import hashlib
import io
import json

import numpy as np

from explorax.experiments import output
from explorax.papers import types

_META = "__task__"  # The entry that is not an array.
_DIGITS = 10  # Of a digest.


class Store:
  """The results of a figure's tasks."""

  def __init__(self, directory: output.RunDirectory, folder: str):
    self._directory = directory
    self._folder = folder

  def read(self, task: types.Task) -> types.CompletedTask | None:
    """The task's results; None if there are none."""
    path = self._directory.path / self._file(task, ".npz")
    if not path.exists():
      return None
    with np.load(path) as arrays:
      results = dict(arrays)
    meta = json.loads(str(results.pop(_META)))
    meta["results"] = {**meta["results"], **results}
    return types.CompletedTask(**{x: meta[x] for x in types.CompletedTask._fields})

  def write(self, task: types.Task, done: types.CompletedTask) -> None:
    """Saves a task's results, and removes an earlier failure.

    Raises:
      OutputError: if they cannot be written; earlier ones are intact.
    """
    arrays = {k: v for k, v in done.results.items() if isinstance(v, np.ndarray)}
    others = {k: v for k, v in done.results.items() if k not in arrays}
    meta = json.dumps({**done._asdict(), "results": others})
    content = io.BytesIO()
    np.savez_compressed(content, **{**arrays, _META: np.array(meta)})
    self._write(task, ".npz", content.getvalue())
    path = self._directory.path / self._file(task, ".failed.txt")
    path.unlink(missing_ok=True)

  def write_failure(self, task: types.Task, details: str) -> None:
    """Saves why a task failed."""
    self._write(task, ".failed.txt", details.encode())

  def _write(self, task: types.Task, suffix: str, content: bytes) -> None:
    name = self._file(task, suffix)
    self._directory.write(name, lambda file: file.write(content))

  def _file(self, task: types.Task, suffix: str) -> str:
    text = json.dumps(task.settings, sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
    return f"{self._folder}/{task.name}-{digest}{suffix}"
