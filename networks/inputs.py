"""How encoded observations enter a network's first linear layer."""

import math
from collections.abc import Callable
from typing import NamedTuple

import chex
import dm_env
import jax
import jax.numpy as jnp
import numpy as np

Dense = Callable[[jax.Array], jax.Array]
Linear = Callable[[jax.Array, jax.Array], jax.Array]


class Inputs(NamedTuple):
  """Observations of one spec as vectors of D features.

  Attributes:
    num_features: D.
    is_index: whether an observation is the index of a one-hot vector.
    dense: observation `[B, ...]` → float32 `[B, D]`.
    linear: (observation `[B, ...]`, w `[D, F]`) → `[B, F]`, which is
      `dense(observation) @ w`, computed in the cheapest way.
    example: zeros in the shape of a batch of one observation.
  """

  num_features: int
  is_index: bool
  dense: Dense
  linear: Linear
  example: np.ndarray


def make_inputs(spec: dm_env.specs.Array) -> Inputs:
  """How observations of `spec` become vectors.

  Three kinds are supported (see `environments.specs` for the encodings):

  - an int32 scalar bounded by −1 and D − 1 is the index of a one-hot vector of size D,
    where −1 means all zeros; the product with w is then a gather of rows;
  - uint8 arrays are flattened and scaled to [0, 1];
  - floating-point arrays are flattened.

  A spec with an `image_spec` is an image with a row of numbers below it, which is
  removed: networks do not see it.

  Args:
    spec: of the encoded observations.

  Raises:
    ValueError: for other observations, or observations without elements.
  """
  example = np.zeros((1, *spec.shape), spec.dtype)
  if np.issubdtype(spec.dtype, np.integer) and spec.dtype != np.uint8:
    num_values = _num_values(spec)
    dense, linear = _make_index(num_values)
    return Inputs(num_values, True, dense, linear, example)
  if spec.dtype != np.uint8 and not np.issubdtype(spec.dtype, np.floating):
    raise ValueError(
      f"networks do not support observations of dtype {spec.dtype}; encode them as "
      "floats, as uint8 or as the int32 index of a one-hot vector."
    )
  num_features = math.prod(visible_spec(spec).shape)
  if num_features < 1:
    raise ValueError(
      f"observations of shape {spec.shape} have no elements; a network needs at least "
      "one feature."
    )
  dense, linear = _make_dense(spec)
  return Inputs(num_features, False, dense, linear, example)


def _num_values(spec: dm_env.specs.Array) -> int:
  """The size D of the one-hot vector of an index."""
  if (
    spec.shape != ()
    or spec.dtype != np.int32
    or not isinstance(spec, dm_env.specs.BoundedArray)
    or spec.minimum != -1
    or spec.maximum < 0
  ):
    raise ValueError(
      f"integer observations must be the index of a one-hot vector, that is an int32 "
      f"scalar with bounds −1 and D − 1, but the spec is {spec!r}; encode them as "
      "one-hot indices or as floats."
    )
  return int(spec.maximum) + 1


def _make_index(num_values: int) -> tuple[Dense, Linear]:
  def dense(observation: jax.Array) -> jax.Array:
    chex.assert_rank(observation, 1)
    chex.assert_type(observation, jnp.int32)
    return jax.nn.one_hot(observation, num_values, dtype=jnp.float32)

  def linear(observation: jax.Array, w: jax.Array) -> jax.Array:
    chex.assert_rank([observation, w], [1, 2])
    chex.assert_type(observation, jnp.int32)
    rows = jnp.take(w, jnp.maximum(observation, 0), axis=0)
    return rows * (observation >= 0).astype(w.dtype)[:, None]

  return dense, linear


def visible_spec(spec: dm_env.specs.Array) -> dm_env.specs.Array:
  """The spec of the part of an observation that networks see: all of it, or its image.

  A spec with an `image_spec` is an image with a row of numbers below it
  (`environments.specs.ImageWithState`).
  """
  return getattr(spec, "image_spec", spec)


def _make_dense(spec: dm_env.specs.Array) -> tuple[Dense, Linear]:
  scale = 1 / 255 if spec.dtype == np.uint8 else 1.0
  visible = visible_spec(spec).shape

  def dense(observation: jax.Array) -> jax.Array:
    chex.assert_shape(observation, (None, *spec.shape))
    if visible != spec.shape:
      observation = observation[:, : visible[0]]
    flat = jnp.reshape(observation, (observation.shape[0], -1))
    return flat.astype(jnp.float32) * scale

  def linear(observation: jax.Array, w: jax.Array) -> jax.Array:
    return dense(observation) @ w

  return dense, linear
