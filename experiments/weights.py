"""Weights as one `.npz` file: an array per leaf, named by its path; no pickle."""

import json
import os
import zipfile
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, BinaryIO

import jax
import numpy as np

from explorax.experiments import config

if TYPE_CHECKING:
  from explorax.agents import types

# The settings of a run, as the bytes of their JSON, are an array of this name.
SETTINGS = "explorax/config.json"


def save(
  file: BinaryIO, weights: Any, settings: Mapping[str, Any] | None = None
) -> None:
  """Writes a pytree of arrays, each under its path (`mlp/~/linear_0/w`).

  Args:
    file: open for bytes.
    weights: the pytree.
    settings: the config.json of the training run, which the file will contain too.

  Raises:
    ValueError: if two leaves have the same path.
  """
  arrays = named(weights)
  if settings is not None:
    arrays.append((SETTINGS, np.frombuffer(json.dumps(settings).encode(), np.uint8)))
  # np.savez leaves the archive open if the disk is full.
  with zipfile.ZipFile(file, "w") as archive:
    for name, leaf in arrays:
      array = np.asarray(leaf)
      stored = array.astype(stored_dtype(array.dtype), copy=False)
      with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
        np.lib.format.write_array(entry, stored, allow_pickle=False)


def stored_dtype(dtype: Any) -> np.dtype:
  """float32 for bfloat16 and similar types, which npz lacks; the type of others."""
  # 1 for numpy's own, 0 for those of unpickled arrays, 2 for those of other packages.
  return np.dtype(np.float32 if np.dtype(dtype).isbuiltin == 2 else dtype)


def load_arrays(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
  """Name → array of a file that `save` wrote, without the settings.

  Raises:
    ValueError: if `save` did not write the file.
  """
  arrays = _load(path)
  arrays.pop(SETTINGS, None)
  return arrays


def load_settings(path: str | os.PathLike[str]) -> dict[str, Any]:
  """The settings in a file that `save` wrote.

  Raises:
    ValueError: if `save` did not write the file, or wrote it without settings.
  """
  return load_with_settings(path)[1]


def load_with_settings(
  path: str | os.PathLike[str],
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
  """The arrays, as `load_arrays`, and the settings, as `load_settings`."""
  arrays = _load(path)
  if SETTINGS not in arrays:
    raise ValueError(
      f"{path} holds weights without settings; give the run's directory."
    )
  try:
    settings = json.loads(arrays.pop(SETTINGS).tobytes())
  except ValueError:
    settings = None
  if not config.is_record(settings):
    raise ValueError(
      f"{path} holds settings that cannot be read; give the run's directory."
    )
  return arrays, settings


def load(path: str | os.PathLike[str], like: Any) -> Any:
  """Reads weights that `save` wrote, into the structure and dtypes of `like`.

  Args:
    path: of the file.
    like: a pytree of arrays (or of anything with a shape and a dtype), for instance
      `agent.learner.params(agent.learner.init(key))`.

  Raises:
    ValueError: if `save` did not write the file, or if its arrays differ from those
      of `like` in name, shape or kind, or are not finite.
  """
  return fitted(path, load_arrays(path), like)


def fitted(
  path: str | os.PathLike[str], arrays: Mapping[str, np.ndarray], like: Any
) -> Any:
  """As `load`, for the arrays that a file, or a checkpoint, has given."""
  arrays = dict(arrays)
  refusal = f"{path} holds the weights of an agent with other settings"
  arranged(arrays, like, refusal)
  for name, leaf in named(like):
    array = arrays[name]
    if not np.can_cast(array.dtype, leaf.dtype, "same_kind"):
      raise ValueError(
        f"{path} cannot be used: {name!r} is of {array.dtype}, not {leaf.dtype}."
      )
    with np.errstate(over="ignore"):
      arrays[name] = array.astype(leaf.dtype)
    if array.dtype.kind == "f" and not np.isfinite(arrays[name]).all():
      raise ValueError(f"{path} cannot be used: {name!r} is not finite.")
  return arranged(arrays, like, refusal)


def sources(learner: "types.LearnerCore") -> dict[str, str]:
  """The name of each of an agent's weights → its name in the learner's state."""
  state = jax.eval_shape(learner.init, jax.random.PRNGKey(0))
  names = [name for name, _ in named(state)]
  tree = jax.tree.unflatten(jax.tree.structure(state), names)
  return dict(named(learner.params(tree)))


def named(tree: Any) -> list[tuple[str, Any]]:
  """The leaves of a pytree, in order, as (path as a name, leaf).

  Raises:
    ValueError: if two leaves have the same path.
  """
  leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
  pairs = [(_name(path), leaf) for path, leaf in leaves]
  seen: set[str] = set()
  for name, _ in pairs:
    if name in seen:
      raise ValueError(f"two arrays have the same name, {name!r}.")
    seen.add(name)
  return pairs


def arranged(arrays: Mapping[str, np.ndarray], like: Any, refusal: str) -> Any:
  """Puts named arrays into a pytree's structure.

  Args:
    arrays: name → array.
    like: a pytree of arrays, or of anything with a shape.
    refusal: the start of the error message.

  Raises:
    ValueError: if the names or shapes differ from those of `like`.
  """
  pairs = named(like)
  if odd := sorted({name for name, _ in pairs} ^ set(arrays)):
    where = "is only in" if odd[0] in arrays else "is missing from"
    raise ValueError(f"{refusal}: {odd[0]!r} {where} the file.")
  for name, leaf in pairs:
    if arrays[name].shape != tuple(leaf.shape):
      raise ValueError(
        f"{refusal}: {name!r} has the shape {arrays[name].shape} in the file and "
        f"{tuple(leaf.shape)} here."
      )
  ordered = [arrays[name] for name, _ in pairs]
  return jax.tree.unflatten(jax.tree.structure(like), ordered)


def _load(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
  try:
    with np.load(path, allow_pickle=False) as file:
      return dict(file)
  except (ValueError, EOFError, TypeError, zipfile.BadZipFile) as error:
    raise ValueError(f"{path} holds no weights ({error}).") from error


def _name(path: tuple[Any, ...]) -> str:
  parts = []
  for entry in path:
    for attribute in ("key", "idx", "name"):
      if hasattr(entry, attribute):
        parts.append(str(getattr(entry, attribute)))
        break
  return "/".join(parts) or "weights"
