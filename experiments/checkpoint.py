"""A tree of arrays in one file, and the checkpoints of a run.

A file is an npz archive: an array per leaf, named by its path (`mlp/~/linear_0/w`), and
values in JSON's types. It contains no pickle, and zip's checksums reveal damage. A
checkpoint is a folder that is complete or absent:

    step_000000001000/state.npz   the runner's arrays, its counters, and the recorder's
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

from explorax.experiments import errors

EXTRA = "explorax.json"  # The name of the bytes of the JSON.
_BARE = "weights"  # That of a pytree that is a single array.
_STATE, _REPLAY = "state.npz", "replay"
_DAMAGED, _UNFINISHED = "damaged_", ".unfinished"
# What numpy, zipfile and json raise for files that are not as they were written.
_UNREADABLE = (
  *(OSError, ValueError, KeyError, TypeError, AttributeError, EOFError, RuntimeError),
  zipfile.BadZipFile,
)


class DamagedError(errors.OutputError):
  """A file cannot be read; the message names it."""


def write(path: pathlib.Path, tree: Any, extra: Any = None) -> None:
  """Writes arrays and values in JSON's types, or leaves the old file as it is.

  Args:
    path: of the file.
    tree: a pytree of arrays.
    extra: the values.
  """
  temporary = path.with_name(f".{path.name}.tmp")
  try:
    with open(temporary, "wb") as file:
      dump(file, tree, extra)
      file.flush()
      os.fsync(file.fileno())
    os.replace(temporary, path)
  finally:
    temporary.unlink(missing_ok=True)


def dump(file: BinaryIO, tree: Any, extra: Any = None) -> None:
  """As `write`, into a file that is open for bytes."""
  arrays = named(tree)
  if extra is not None:
    arrays.append((EXTRA, np.frombuffer(json.dumps(extra).encode(), np.uint8)))
  # np.savez leaves the archive open if the disk is full.
  with zipfile.ZipFile(file, "w") as archive:
    for name, leaf in arrays:
      with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
        np.lib.format.write_array(entry, _plain(leaf), allow_pickle=False)


def load(path: str | os.PathLike[str]) -> tuple[dict[str, np.ndarray], Any]:
  """Name → array, and the values or None, of a file of `write` or `dump`.

  Raises:
    DamagedError: if it cannot be read.
  """
  try:
    with np.load(path, allow_pickle=False) as file:
      arrays = dict(file)
    extra = arrays.pop(EXTRA, None)
    return arrays, None if extra is None else json.loads(extra.tobytes())
  except _UNREADABLE as error:
    raise DamagedError(f"{path} cannot be read ({error})") from error


def read(path: str | os.PathLike[str], like: Any) -> tuple[Any, Any]:
  """The arrays of a file, arranged as `like`, and its values; errors of both."""
  arrays, extra = load(path)
  return arranged(
    arrays, like, f"{path} is of other settings or another version"
  ), extra


def arranged(arrays: Mapping[str, np.ndarray], like: Any, refusal: str) -> Any:
  """Puts named arrays into the structure of `like`, with its dtypes.

  Args:
    arrays: name → array.
    like: a pytree of arrays, or of anything with a shape and a dtype.
    refusal: the start of the error message.

  Raises:
    ValueError: if the arrays differ from `like` in name, shape or kind.
  """
  pairs = named(like)
  if odd := sorted({name for name, _ in pairs} ^ set(arrays)):
    where = "is only in" if odd[0] in arrays else "is missing from"
    raise ValueError(f"{refusal}: {odd[0]!r} {where} the file.")
  leaves = [_fitted(arrays[name], leaf, name, refusal) for name, leaf in pairs]
  return jax.tree.unflatten(jax.tree.structure(like), leaves)


def _fitted(array: np.ndarray, leaf: Any, name: str, refusal: str) -> Any:
  if _is_key(leaf):
    return jax.random.wrap_key_data(jnp.asarray(array))
  if array.shape != tuple(leaf.shape):
    raise ValueError(
      f"{refusal}: {name!r} has the shape {array.shape} in the file and "
      f"{tuple(leaf.shape)} here."
    )
  if not np.can_cast(array.dtype, leaf.dtype, "same_kind"):
    raise ValueError(f"{refusal}: {name!r} is of {array.dtype}, not {leaf.dtype}.")
  with np.errstate(over="ignore"):
    return array.astype(leaf.dtype, copy=False)


def named(tree: Any) -> list[tuple[str, Any]]:
  """The leaves of a pytree, in order, as (path as a name, leaf).

  Raises:
    ValueError: if two leaves have the same path.
  """
  leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
  pairs = [(_name(path), leaf) for path, leaf in leaves]
  names = [name for name, _ in pairs]
  if len(set(names)) < len(names):
    twice = next(name for name in names if names.count(name) > 1)
    raise ValueError(f"two arrays have the same name, {twice!r}.")
  return pairs


def _name(path: tuple[Any, ...]) -> str:
  parts = []
  for entry in path:
    for attribute in ("key", "idx", "name"):
      if hasattr(entry, attribute):
        parts.append(str(getattr(entry, attribute)))
        break
  return "/".join(parts) or _BARE


def _is_key(leaf: Any) -> bool:
  """Whether it is a typed random key."""
  return jnp.issubdtype(getattr(leaf, "dtype", float), jax.dtypes.prng_key)


def _plain(leaf: Any) -> np.ndarray:
  """An array of a dtype that npz has: float32 instead of bfloat16 and the like."""
  array = np.asarray(jax.random.key_data(leaf) if _is_key(leaf) else leaf)
  # 1 for numpy's own, 0 for those of unpickled arrays, 2 for those of other packages.
  return array.astype(np.float32) if array.dtype.isbuiltin == 2 else array


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
    record: `env_steps`, `seconds`, `counts` (the runner's), `recorder`, and `weights`
      (the name of each of the agent's weights → its name in the learner's state).
  """

  path: pathlib.Path
  record: dict[str, Any]

  def arrays(self, group: str) -> dict[str, np.ndarray]:
    """Name → array of a group, on the host."""
    prefix = f"{group}/"
    with np.load(self.path / _STATE, allow_pickle=False) as file:
      if group in file.files:
        return {_BARE: file[group]}
      names = [name for name in file.files if name.startswith(prefix)]
      return {name.removeprefix(prefix): file[name] for name in names}

  def restore(self, group: str, like: Any, *, pad: bool = False) -> Any:
    """A group's arrays in the structure of `like`.

    Args:
      group: its name.
      like: a pytree of arrays, or of anything with a shape and a dtype.
      pad: whether arrays that are smaller than in `like` are padded with zeros.

    Raises:
      OutputError: if the arrays differ in name, shape or kind.
    """
    arrays = self.arrays(group)
    if pad:
      shapes = {name: leaf.shape for name, leaf in named(like)}
      arrays = {n: _padded(x, shapes.get(n, x.shape)) for n, x in arrays.items()}
    try:
      return arranged(arrays, like, f"{self.path} is of another version")
    except ValueError as error:
      raise errors.OutputError(str(error)) from error

  @property
  def replay_folder(self) -> pathlib.Path | None:
    """The folder that `Snapshot.save_replay` has filled, or None."""
    path = self.path / _REPLAY
    return path if path.is_dir() else None


def newest(
  directory: pathlib.Path,
) -> tuple[Checkpoint | None, list[DamagedError]]:
  """The newest good checkpoint of a run, or None, and the damaged ones after it."""
  damaged: list[DamagedError] = []
  for path in reversed(_paths(directory)):
    try:
      return Checkpoint(path, _checked_record(path / _STATE)), damaged
    except DamagedError as error:
      damaged.append(error)
  return None, damaged


def _checked_record(path: pathlib.Path) -> dict[str, Any]:
  """Compares all of a file with its checksums; returns the values in it."""
  try:
    with zipfile.ZipFile(path) as archive:
      if (bad := archive.testzip()) is not None:
        raise DamagedError(f"{path} is damaged (in {bad!r})")
    with np.load(path, allow_pickle=False) as file:
      return json.loads(file[EXTRA].tobytes())
  except _UNREADABLE as error:
    raise DamagedError(f"{path} is damaged ({error})") from error


def _paths(directory: pathlib.Path) -> list[pathlib.Path]:
  """The checkpoints, oldest first."""
  return sorted(directory.glob("step_*"))


class Checkpointer:
  """Decides when a checkpoint is due, writes it, keeps two, and finds the newest.

  Times are measured by the monotonic clock, summed over the processes of the run.

  Attributes:
    directory: of the checkpoints.
    restored: the checkpoint from which the run resumes; None if it starts.
    with_replay: whether checkpoints contain replay.
    recorder_state: returns the recorder's state; None after a write failure.
    on_saved: called with each checkpoint's directory and environment steps.
    problem: why the newest state could not be written; '' if it was.
  """

  def __init__(
    self,
    directory: pathlib.Path,
    *,
    with_replay: bool,
    weights: Callable[[], Mapping[str, str]] = dict,
    every: int | None = None,
    minutes: float = math.inf,
    warn: Callable[[str], None] = lambda text: None,
    clock: Callable[[], float] = time.monotonic,
  ):
    """Finds the newest good checkpoint; damaged ones after it get another name.

    Args:
      directory: see the attributes; it may not exist yet.
      with_replay: see the attributes.
      weights: returns the name of each of the agent's weights → its name in the
        learner's state, so that they can be read without the agent.
      every: a checkpoint is due when a multiple of this number of environment steps was
        passed; None: only by time.
      minutes: one is due this long after the last one.
      warn: receives messages about failed writes and damaged checkpoints.
      clock: seconds.

    Raises:
      OutputError: if there are checkpoints, and all are damaged; nothing is changed.
    """
    self.directory = directory
    self.with_replay = with_replay
    self.recorder_state: Callable[[], Mapping[str, Any] | None] = dict
    self.on_saved: Callable[[pathlib.Path, int], None] = lambda path, env_steps: None
    self.problem = ""
    self._weights = weights
    self._every = every
    self._minutes = minutes
    self._warn = warn
    self._clock = clock
    self.restored, damaged = newest(directory)
    if self.restored is None and any(directory.glob("*step_*[0-9]")):
      why = f" ({damaged[0]})" if damaged else ""
      raise errors.OutputError(
        f"none of the checkpoints in {directory} is good{why}; choose another "
        "--output, or delete the run's directory if you do not need the run."
      )
    for path, error in zip(reversed(_paths(directory)), damaged, strict=False):
      aside = path.with_name(_DAMAGED + path.name)
      path.rename(aside)
      warn(f"{error}; it is {aside.name} now, and the one before it is used.")
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
    """Writes a checkpoint and deletes older ones, or warns that this failed.

    Returns:
      Whether it was written.
    """
    recorder_state = self.recorder_state()
    if recorder_state is None:
      return False
    extra = {
      "env_steps": env_steps,
      "seconds": self.seconds,
      "counts": snapshot.counts,
      "recorder": recorder_state,
      "weights": self._weights(),
    }
    path, previous = self.directory / f"step_{env_steps:012d}", _paths(self.directory)
    while path in previous:  # At the same step.
      path = path.with_name(f"{path.name}_1")
    self.problem = ""
    # After a failure, do not try again at every step.
    self._saved_steps, self._saved_at = env_steps, self._clock()
    try:
      with _new_folder(path) as folder:
        if snapshot.save_replay is not None:
          (folder / _REPLAY).mkdir()
          snapshot.save_replay(folder / _REPLAY)
        write(folder / _STATE, jax.device_get(snapshot.groups), extra)
    except Exception as error:  # Reverb's are of many types.
      self.problem = f"the checkpoint {path} could not be written ({_reason(error)})"
      self._warn(f"{self.problem}; the run continues, and earlier ones are intact.")
      return False
    for old in previous[:-1]:
      shutil.rmtree(old, ignore_errors=True)
    self.on_saved(path, env_steps)
    return True


def _padded(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
  """The array at the beginning of zeros of this shape, if it fits there."""
  missing = [n - m for n, m in zip(shape, array.shape, strict=False)]
  if len(shape) != array.ndim or min(missing, default=0) < 0:
    return array
  return np.pad(array, [(0, n) for n in missing])


@contextlib.contextmanager
def _new_folder(path: pathlib.Path) -> Iterator[pathlib.Path]:
  """A folder to be filled, which gets the name `path` if that succeeds."""
  temporary = path.parent / _UNFINISHED
  shutil.rmtree(temporary, ignore_errors=True)
  try:
    temporary.mkdir(parents=True)
    yield temporary
    os.rename(temporary, path)
  finally:
    shutil.rmtree(temporary, ignore_errors=True)


def _reason(error: Exception) -> str:
  """The cause, in a few words; Reverb's errors quote those of the system."""
  text = " ".join(str(error).split()) or type(error).__name__
  full = ("No space left", "Disk quota exceeded", "File too large")
  return "the disk is full" if any(x in text for x in full) else text[:200]
