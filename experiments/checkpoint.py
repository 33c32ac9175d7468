"""A tree of arrays in one file, and the checkpoints of a run.

A file is an npz archive: an array per leaf, named by its path (`mlp/~/linear_0/w`), and
values in JSON's types. It contains no pickle, and zip's checksums reveal damage. A
checkpoint is a folder that is complete or absent:

    step_000000001000/state.npz   the runner's arrays and its counters
    step_000000001000/replay/     Reverb's own files, if replay is in Reverb
"""

import contextlib
import dataclasses
import json
import math
import os
import pathlib
import shutil
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from typing import Any, BinaryIO, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from explorax.experiments import errors, output
from explorax.experiments.recording import console

EXTRA = "explorax.json"  # The name of the bytes of the JSON.
_BARE = "weights"  # That of a pytree that is a single array.
_STATE, _REPLAY = "state.npz", "replay"
_DAMAGED, _UNFINISHED = "damaged_", ".unfinished"


def write(path: pathlib.Path, tree: Any, extra: Any) -> None:
  """Writes a pytree of arrays and values in JSON's types, or leaves the old file."""
  arrays = [*named(tree), (EXTRA, np.frombuffer(json.dumps(extra).encode(), np.uint8))]

  def dump(file: BinaryIO) -> None:
    # np.savez leaves the archive open if the disk is full.
    with zipfile.ZipFile(file, "w") as archive:
      for name, leaf in arrays:
        array = np.asarray(jax.random.key_data(leaf) if _is_key(leaf) else leaf)
        with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
          np.lib.format.write_array(entry, array, allow_pickle=False)

  output.write_whole(path, dump)


def load(path: str | os.PathLike[str]) -> tuple[dict[str, np.ndarray], Any]:
  """Name → array, and the values, of a file of `write`.

  Raises:
    OutputError: if it cannot be read.
  """
  try:
    with _opened(path) as file:
      arrays = dict(file)
    return arrays, json.loads(arrays.pop(EXTRA).tobytes())
  except Exception as error:  # Of numpy, zipfile or json.
    raise errors.OutputError(f"{path} cannot be read ({error})") from error


@contextlib.contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[Any]:
  """A file of `write`; np.load alone would leave a damaged one open."""
  with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
    yield archive


def arranged(arrays: Mapping[str, np.ndarray], like: Any, refusal: str) -> Any:
  """Puts arrays by name into the structure of `like`, of leaves with shape and dtype.

  Raises:
    ValueError: if they differ in name, shape or kind; it starts with `refusal`.
  """
  pairs = named(like)
  if odd := sorted({name for name, _ in pairs} ^ set(arrays)):
    where = "is only in" if odd[0] in arrays else "is missing from"
    raise ValueError(f"{refusal}: {odd[0]!r} {where} the file.")
  leaves = []
  for name, leaf in pairs:
    array = arrays[name]
    if _is_key(leaf):
      leaves.append(jax.random.wrap_key_data(jnp.asarray(array)))
      continue
    is_alike = np.can_cast(array.dtype, leaf.dtype, "same_kind")
    if array.shape != tuple(leaf.shape) or not is_alike:
      raise ValueError(
        f"{refusal}: {name!r} has the shape {array.shape} of {array.dtype} in the file "
        f"and {tuple(leaf.shape)} of {leaf.dtype} here."
      )
    with np.errstate(over="ignore"):
      leaves.append(array.astype(leaf.dtype, copy=False))
  return jax.tree.unflatten(jax.tree.structure(like), leaves)


def named(tree: Any) -> list[tuple[str, Any]]:
  """The leaves of a pytree, in order, as (path as a name, leaf)."""
  leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
  return [("/".join(map(_part, path)) or _BARE, leaf) for path, leaf in leaves]


def _part(entry: Any) -> str:
  kinds = (kind for kind in ("key", "idx", "name") if hasattr(entry, kind))
  return str(getattr(entry, next(kinds)))


def _is_key(leaf: Any) -> bool:
  """Whether it is a typed random key."""
  return jnp.issubdtype(getattr(leaf, "dtype", float), jax.dtypes.prng_key)


class Snapshot(NamedTuple):
  """A runner's state, without the state of the rest of the program.

  Attributes:
    groups: name → a pytree of arrays.
    counts: values in JSON's types.
    save_replay: writes replay's own files into an empty folder; None if it has none.
  """

  groups: Mapping[str, Any]
  counts: Mapping[str, Any]
  save_replay: Callable[[pathlib.Path], None] | None = None


@dataclasses.dataclass(frozen=True)
class Checkpoint:
  """A checkpoint whose checksums are right.

  Attributes:
    path: its directory.
    record: `env_steps`, and `counts` of the runner.
  """

  path: pathlib.Path
  record: dict[str, Any]

  def arrays(self, group: str) -> dict[str, np.ndarray]:
    """Name → array of a group, on the host."""
    with _opened(self.path / _STATE) as file:
      names = [name for name in file.files if f"{name}/".startswith(f"{group}/")]
      return {name[len(group) + 1 :] or _BARE: file[name] for name in names}

  def restore(self, group: str, like: Any, *, pad: bool = False) -> Any:
    """A group's arrays in the structure of `like`, as `arranged` puts them there.

    With `pad`, smaller arrays are padded with zeros.

    Raises:
      OutputError: if the arrays differ in name, shape or kind.
    """
    arrays = self.arrays(group)
    try:
      for name, leaf in named(like) if pad else ():
        shapes = zip(leaf.shape, arrays[name].shape, strict=True)
        arrays[name] = np.pad(arrays[name], [(0, max(n - m, 0)) for n, m in shapes])
      return arranged(arrays, like, f"{self.path} is of another version")
    except (KeyError, ValueError) as error:
      raise errors.OutputError(str(error)) from error

  @property
  def replay_folder(self) -> pathlib.Path | None:
    """The folder that `Snapshot.save_replay` has filled, or None."""
    path = self.path / _REPLAY
    return path if path.is_dir() else None


def recover(directory: pathlib.Path) -> Checkpoint | None:
  """The newest good checkpoint of a run; damaged ones after it are renamed, and named.

  Raises:
    OutputError: if there are checkpoints, and all are damaged; nothing is changed.
  """
  damaged: dict[pathlib.Path, str] = {}
  for path in sorted(directory.glob("step_*"), reverse=True):
    try:
      with _opened(path / _STATE) as file:
        if (bad := file.zip.testzip()) is not None:
          raise zipfile.BadZipFile(f"in {bad!r}")
        restored = Checkpoint(path, json.loads(file[EXTRA].tobytes()))
    except Exception as error:  # Of numpy, zipfile or json.
      damaged[path] = f"{path / _STATE} is damaged ({error})"
      continue
    for other, problem in damaged.items():
      aside = other.rename(other.with_name(_DAMAGED + other.name))
      console.print_error(
        f"{problem}; it is {aside.name} now, and the one before it is used."
      )
    return restored
  if any(directory.glob("*step_*[0-9]")):
    why = f" ({next(iter(damaged.values()))})" if damaged else ""
    raise errors.OutputError(
      f"none of the checkpoints in {directory} is good{why}; choose another "
      "--output, or delete the run's directory if you do not need the run."
    )
  return None


class Checkpointer:
  """Decides when a checkpoint is due, writes it, and keeps two.

  Attributes:
    restored: the checkpoint from which the run resumes; None if it starts.
    with_replay: whether checkpoints contain replay.
  """

  def __init__(
    self,
    directory: pathlib.Path,
    restored: Checkpoint | None = None,
    *,
    with_replay: bool,
    every: int | None = None,
    minutes: float = math.inf,
  ):
    """Starts or resumes.

    A checkpoint is due when a multiple of `every` environment steps was passed, and
    `minutes` after the last one.
    """
    self.restored, self.with_replay = restored, with_replay
    self._directory, self._every, self._minutes = directory, every, minutes
    self._saved_steps = restored.record["env_steps"] if restored else 0
    self._saved_at = time.monotonic()

  def is_due(self, env_steps: int) -> bool:
    """Whether a checkpoint is due."""
    every = self._every
    if every is not None and env_steps // every > self._saved_steps // every:
      return True
    return time.monotonic() - self._saved_at >= 60 * self._minutes

  def save(self, env_steps: int, snapshot: Snapshot) -> pathlib.Path:
    """Writes a checkpoint, deletes all older ones but one, and returns its directory.

    Raises:
      OutputError: if it cannot be written; the older ones stay.
    """
    extra = {"env_steps": env_steps, "counts": snapshot.counts}
    previous = sorted(self._directory.glob("step_*"))
    path = self._directory / f"step_{env_steps:012d}"
    while path in previous:  # At the same step.
      path = path.with_name(f"{path.name}_1")
    folder = self._directory / _UNFINISHED
    shutil.rmtree(folder, ignore_errors=True)
    try:
      folder.mkdir(parents=True)
      if snapshot.save_replay is not None:
        (folder / _REPLAY).mkdir()
        snapshot.save_replay(folder / _REPLAY)
      write(folder / _STATE, jax.device_get(snapshot.groups), extra)
      os.rename(folder, path)
    except BaseException:
      shutil.rmtree(folder, ignore_errors=True)
      raise
    for old in previous[:-1]:
      shutil.rmtree(old, ignore_errors=True)
    self._saved_steps, self._saved_at = env_steps, time.monotonic()
    return path
