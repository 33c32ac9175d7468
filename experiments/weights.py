"""Weights as one `.npz` file: an array per leaf, named by its path; no pickle."""

import os
import zipfile
from typing import Any, BinaryIO

import jax
import numpy as np


def save(file: BinaryIO, weights: Any) -> None:
  """Writes a pytree of arrays, each under its path (`mlp/~/linear_0/w`).

  Raises:
    ValueError: if two leaves have the same path.
  """
  leaves, _ = jax.tree_util.tree_flatten_with_path(weights)
  arrays: dict[str, np.ndarray] = {}
  for path, leaf in leaves:
    name = _name(path)
    if name in arrays:
      raise ValueError(f"two arrays among the weights are both called {name!r}.")
    arrays[name] = _portable(np.asarray(leaf))
  np.savez(file, **arrays)


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
  leaves, treedef = jax.tree_util.tree_flatten_with_path(like)
  names = [_name(leaf_path) for leaf_path, _ in leaves]
  if set(names) != set(arrays):
    odd = sorted(set(names) ^ set(arrays))[0]
    where = "is missing from" if odd in names else "is only in"
    raise ValueError(
      f"{path} holds the weights of another agent: {odd!r} {where} the file."
    )
  restored = []
  for name, (_, leaf) in zip(names, leaves, strict=True):
    if arrays[name].shape != tuple(leaf.shape):
      raise ValueError(
        f"{path} holds the weights of another agent: {name!r} has the shape "
        f"{arrays[name].shape} there, and {tuple(leaf.shape)} here."
      )
    restored.append(arrays[name].astype(leaf.dtype))
  return jax.tree_util.tree_unflatten(treedef, restored)


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
