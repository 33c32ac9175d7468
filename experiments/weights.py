"""Weights as one `.npz` file: an array per leaf, named by its path; no pickle."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, BinaryIO

import jax
import numpy as np

from explorax.experiments import checkpoint, config

if TYPE_CHECKING:
  from explorax.agents import types


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
  checkpoint.dump(file, weights, settings)


def load_arrays(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
  """Name → array of a file that `save` wrote, without the settings.

  Raises:
    ValueError: if `save` did not write the file.
  """
  return _load(path)[0]


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
  arrays, settings = _load(path)
  if not config.is_record(settings):
    raise ValueError(
      f"{path} holds weights without settings that can be read; give the run's "
      "directory."
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
  refusal = f"{path} holds the weights of an agent with other settings"
  tree = checkpoint.arranged(arrays, like, refusal)
  for name, leaf in checkpoint.named(tree):
    if arrays[name].dtype.kind == "f" and not np.isfinite(leaf).all():
      raise ValueError(f"{path} cannot be used: {name!r} is not finite.")
  return tree


def sources(learner: "types.LearnerCore") -> dict[str, str]:
  """The name of each of an agent's weights → its name in the learner's state."""
  state = jax.eval_shape(learner.init, jax.random.PRNGKey(0))
  names = [name for name, _ in checkpoint.named(state)]
  tree = jax.tree.unflatten(jax.tree.structure(state), names)
  return dict(checkpoint.named(learner.params(tree)))


def _load(path: str | os.PathLike[str]) -> tuple[dict[str, np.ndarray], Any]:
  try:
    return checkpoint.load(path)
  except checkpoint.DamagedError as error:
    raise ValueError(f"{path} holds no weights ({error.__cause__}).") from error
