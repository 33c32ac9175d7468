"""Weights as one `.npz` file: an array per leaf, named by its path; no pickle."""

import json
import os
import zipfile
from collections.abc import Mapping
from typing import Any, BinaryIO

import jax
import numpy as np

# What the settings of a run are called among the arrays: the bytes of their JSON.
SETTINGS = "explorax/config.json"


def save(
  file: BinaryIO, weights: Any, settings: Mapping[str, Any] | None = None
) -> None:
  """Writes a pytree of arrays, each under its path (`mlp/~/linear_0/w`).

  Args:
    file: open for bytes.
    weights: the pytree.
    settings: the config.json that they were learnt with, to be in the file as well.

  Raises:
    ValueError: if two leaves have the same path.
  """
  arrays = {name: _portable(np.asarray(leaf)) for name, leaf in named(weights)}
  if settings is not None:
    arrays[SETTINGS] = np.frombuffer(json.dumps(settings).encode(), np.uint8)
  np.savez(file, **arrays)


def load_arrays(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
  """Name → array, of a file that `save` wrote; the settings left out.

  Raises:
    ValueError: if it is no such file.
  """
  arrays = _load(path)
  arrays.pop(SETTINGS, None)
  return arrays


def load_settings(path: str | os.PathLike[str]) -> dict[str, Any]:
  """The settings in a file that `save` wrote with them.

  Raises:
    ValueError: if it is no such file, or there are none in it.
  """
  arrays = _load(path)
  if SETTINGS not in arrays:
    raise ValueError(
      f"{path} holds weights without settings; have it written by "
      "explorax.experiments.export."
    )
  return json.loads(arrays[SETTINGS].tobytes())


def load(path: str | os.PathLike[str], like: Any) -> Any:
  """Reads weights that `save` wrote, into the structure and dtypes of `like`.

  Args:
    path: of the file.
    like: a pytree of arrays (or of anything with a shape and a dtype), for instance
      `agent.learner.params(agent.learner.init(key))`.

  Raises:
    ValueError: if the file is no such file, or its arrays differ from those of
      `like` in name or shape.
  """
  arrays = load_arrays(path)
  restored = arranged(arrays, like, f"{path} holds the weights of another agent")
  return jax.tree.map(lambda array, leaf: array.astype(leaf.dtype), restored, like)


def named(tree: Any) -> list[tuple[str, Any]]:
  """A pytree's leaves in their order, each with its path as a name.

  Raises:
    ValueError: if two leaves have the same path.
  """
  leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
  pairs = [(_name(path), leaf) for path, leaf in leaves]
  seen: set[str] = set()
  for name, _ in pairs:
    if name in seen:
      raise ValueError(f"two of the arrays are both called {name!r}.")
    seen.add(name)
  return pairs


def arranged(arrays: Mapping[str, np.ndarray], like: Any, refusal: str) -> Any:
  """Arrays by name, in the structure that these names come from.

  Args:
    arrays: name → array.
    like: a pytree of arrays, or of anything with a shape.
    refusal: how the sentence begins that refuses other names or shapes.

  Raises:
    ValueError: if the names or shapes are not those of `like`.
  """
  pairs = named(like)
  if odd := sorted({name for name, _ in pairs} ^ set(arrays)):
    where = "is only in" if odd[0] in arrays else "is missing from"
    raise ValueError(f"{refusal}: {odd[0]!r} {where} the file.")
  for name, leaf in pairs:
    if arrays[name].shape != tuple(leaf.shape):
      raise ValueError(
        f"{refusal}: {name!r} has the shape {arrays[name].shape} there, and "
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


def _portable(array: np.ndarray) -> np.ndarray:
  """bfloat16 and its like, which npz cannot name, as float32, which holds them."""
  return array if array.dtype.isbuiltin == 1 else array.astype(np.float32)
