"""Weights as one `.npz` file: an array per leaf, named by its path; no pickle."""

import os
import zipfile
from collections.abc import Mapping
from typing import Any, BinaryIO

import jax
import numpy as np


def save(file: BinaryIO, weights: Any) -> None:
  """Writes a pytree of arrays, each under its path (`mlp/~/linear_0/w`).

  Raises:
    ValueError: if two leaves have the same path.
  """
  np.savez(file, **{name: _portable(np.asarray(x)) for name, x in named(weights)})


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
  try:
    with np.load(path, allow_pickle=False) as file:
      arrays = dict(file)
  except (ValueError, zipfile.BadZipFile) as error:
    raise ValueError(f"{path} holds no weights ({error}).") from error
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
