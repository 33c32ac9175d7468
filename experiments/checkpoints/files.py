"""One checkpoint: a directory that is complete or absent.

    state.npz, replay.npz  arrays, one group each (`weights.save`)
    record.json            all small values, such as counters
    manifest.json          SHA-256 of every other file, written last

It is written under a temporary name, synced to disk and renamed, so that a run killed
at any moment leaves the earlier checkpoints intact. It contains no pickle.
"""

import dataclasses
import hashlib
import json
import os
import pathlib
import shutil
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np

from explorax.experiments import errors, weights

TEMPORARY = ".tmp"  # The end of the name of a checkpoint that is being written.
_FORMAT = 3
_RECORD, _MANIFEST, _ARRAYS = "record.json", "manifest.json", ".npz"


class DamagedCheckpointError(errors.OutputError):
  """It is not a complete checkpoint; the message says why."""


@dataclasses.dataclass(frozen=True)
class Checkpoint:
  """A checkpoint whose checksums were verified.

  Attributes:
    path: its directory.
    record: the record given to `write`.
  """

  path: pathlib.Path
  record: dict[str, Any]

  def has(self, group: str) -> bool:
    """Whether it has the arrays of this group."""
    return (self.path / (group + _ARRAYS)).exists()

  def arrays(self, group: str) -> dict[str, np.ndarray]:
    """Name → array of a group, on the host.

    Raises:
      DamagedCheckpointError: if they cannot be read.
    """
    try:
      return weights.load_arrays(self.path / (group + _ARRAYS))
    except (OSError, ValueError) as error:
      raise DamagedCheckpointError(str(error)) from error

  def folder(self, name: str) -> pathlib.Path | None:
    """The folder of this name that `write` created, or None."""
    path = self.path / name
    return path if path.is_dir() else None

  def restore(self, group: str, like: Any, *, pad: bool = False) -> Any:
    """A group's arrays as numpy arrays, in the structure of `like`.

    Args:
      group: its name.
      like: a pytree of arrays, or of anything with a shape and a dtype.
      pad: whether arrays that are smaller than in `like` are padded with zeros.

    Raises:
      OutputError: if the arrays differ in name, shape or dtype.
      DamagedCheckpointError: if they cannot be read.
    """
    refusal = f"another version of this program wrote {self.path}"
    arrays = self.arrays(group)
    if pad:
      shapes = {name: leaf.shape for name, leaf in weights.named(like)}
      arrays = {n: _padded(x, shapes.get(n, x.shape)) for n, x in arrays.items()}
    try:
      restored = weights.arranged(arrays, like, refusal)
    except ValueError as error:
      raise errors.OutputError(str(error)) from error
    for name, leaf in weights.named(like):
      if arrays[name].dtype != weights.stored_dtype(leaf.dtype):
        raise errors.OutputError(
          f"{refusal}: {name!r} is {arrays[name].dtype} there, {leaf.dtype} here."
        )
    return jax.tree.map(
      lambda array, leaf: array.astype(leaf.dtype, copy=False), restored, like
    )


def write(
  path: pathlib.Path,
  groups: Mapping[str, Any],
  record: Mapping[str, Any],
  folders: Mapping[str, Callable[[pathlib.Path], None]],
) -> None:
  """Writes a checkpoint to `path`, which does not exist yet.

  Args:
    path: of the directory.
    groups: name → a pytree of arrays.
    record: in JSON's types.
    folders: name → a function that writes files into a given empty folder.

  Raises:
    OutputError: if it cannot be written; nothing remains of it.
  """
  temporary = path.with_name(f".{path.name}{TEMPORARY}")
  try:
    temporary.mkdir(parents=True)
    for name, tree in groups.items():
      with (temporary / (name + _ARRAYS)).open("wb") as file:
        weights.save(file, jax.device_get(tree))
    for name, fill in folders.items():
      (temporary / name).mkdir()
      fill(temporary / name)
    content = {"format": _FORMAT, "record": record}
    (temporary / _RECORD).write_text(json.dumps(content), encoding="utf-8")
    manifest = {"files": _sums(temporary)}
    (temporary / _MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")
    for written in (*temporary.rglob("*"), temporary):
      _sync(written)
    os.rename(temporary, path)
    _sync(path.parent)
  except BaseException as error:
    shutil.rmtree(temporary, ignore_errors=True)
    if not isinstance(error, Exception):
      raise
    raise errors.OutputError(
      f"the checkpoint {path} could not be written ({_reason(error)})"
    ) from error


def read(path: pathlib.Path) -> Checkpoint:
  """The checkpoint at `path`, after comparing each file with its checksum.

  Raises:
    DamagedCheckpointError: if a file differs from what was written.
  """
  try:
    content = json.loads((path / _RECORD).read_text(encoding="utf-8"))
    if content["format"] != _FORMAT:
      raise DamagedCheckpointError(f"{path} has the format of another version")
    expected = json.loads((path / _MANIFEST).read_text(encoding="utf-8"))["files"]
    actual = _sums(path)
    for name in sorted({*expected, *actual}):
      if actual.get(name) != expected.get(name):
        raise DamagedCheckpointError(f"{path / name} is not as it was written")
  except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
    raise DamagedCheckpointError(f"{path} cannot be read ({error})") from error
  return Checkpoint(path, content["record"])


def _padded(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
  """The array at the beginning of zeros of this shape, if it fits there."""
  missing = [n - m for n, m in zip(shape, array.shape, strict=False)]
  if len(shape) != array.ndim or min(missing, default=0) < 0 or not any(missing):
    return array
  return np.pad(array, [(0, n) for n in missing])


def _sums(path: pathlib.Path) -> dict[str, str]:
  """The SHA-256 of each file except the manifest."""
  sums = {}
  for file in path.rglob("*"):
    if file.is_file() and file != path / _MANIFEST:
      with open(file, "rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
      sums[file.relative_to(path).as_posix()] = digest
  return sums


def _sync(path: pathlib.Path) -> None:
  """Waits until a file, or a directory's list of names, is on disk."""
  descriptor = os.open(path, os.O_RDONLY)
  try:
    os.fsync(descriptor)
  finally:
    os.close(descriptor)


def _reason(error: Exception) -> str:
  """The cause, in a few words; Reverb's errors quote those of the system."""
  text = " ".join(str(error).split()) or type(error).__name__
  full = ("No space left", "Disk quota exceeded", "File too large")
  return "the disk is full" if any(x in text for x in full) else text[:200]
