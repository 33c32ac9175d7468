"""The results of a figure's tasks, kept on disk as they are computed."""

import hashlib
import json
import pathlib
import zipfile
import zlib
from importlib import metadata
from typing import NamedTuple

import numpy as np

from explorax.experiments import output
from explorax.experiments.figures import types

_META = "__task__"  # The name of the array that says where the others are from.
_DIGITS = 10  # Of the settings' digest in a file's name.


# What numpy, zipfile and json raise at files that are cut short or damaged.
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


class Found(NamedTuple):
  """What the cache holds for a task.

  Attributes:
    done: the results; None where there are none to be used.
    problem: why what is there cannot be used; '' where there is nothing.
  """

  done: types.Done | None
  problem: str


class Cache:
  """The tasks of one figure: `raw/ez_fig3/NAME.npz`, each complete or absent."""

  def __init__(self, directory: output.RunDirectory, figure: types.Figure):
    self._directory = directory
    self._folder = f"raw/{file_name(figure.name)}"
    self._made_by = {
      "figure": figure.name,
      "revision": figure.revision,
      "explorax": metadata.version("explorax"),
    }

  def read(self, task: types.Task) -> Found:
    """The task's results, if they were made by this version with these settings."""
    path = self._directory.path / self._file(task)
    if not path.exists():
      others = sorted(path.parent.glob(f"{task.name}-{'?' * _DIGITS}.npz"))
      kept = f"{others[0]} has other settings, and is kept" if others else ""
      return Found(None, kept)
    try:
      # numpy leaves a file open that it opened itself and cannot read.
      with open(path, "rb") as file, np.load(file, allow_pickle=False) as arrays:
        results = {name: arrays[name] for name in arrays.files}
      meta = json.loads(str(results.pop(_META)[()]))
      made_by, settings = meta["made_by"], meta["settings"]
      seconds = float(meta["seconds"])
    except _UNREADABLE:
      return Found(None, f"{path} cannot be read")
    if made_by != self._made_by:
      return Found(None, f"{path} is of another version")
    if settings != _plain(task.settings):
      return Found(None, f"{path} has other settings")
    return Found(types.Done(task.settings, results, seconds), "")

  def write(self, task: types.Task, done: types.Done) -> None:
    """Keeps a task's results.

    Raises:
      OutputError: if they cannot be written; what was there is intact.
    """
    meta = {
      "made_by": self._made_by,
      "settings": _plain(task.settings),
      "seconds": done.seconds,
    }
    arrays = {**done.results, _META: np.array(json.dumps(meta))}
    self._directory.write(
      self._file(task), lambda file: np.savez_compressed(file, **arrays)
    )

  def _file(self, task: types.Task) -> str:
    # Quick versions and others live side by side.
    text = json.dumps(_plain(task.settings), sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
    return str(pathlib.PurePosixPath(self._folder, f"{task.name}-{digest}.npz"))


def file_name(figure_name: str) -> str:
  """`ez_fig3`, for `ez/fig3`."""
  return figure_name.replace("/", "_")


def _plain(settings: types.Settings) -> dict:
  """The settings as JSON gives them back: tuples are lists."""
  return json.loads(json.dumps(dict(settings)))
