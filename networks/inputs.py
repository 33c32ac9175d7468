"""How encoded observations enter a network's first linear layer."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import chex
import dm_env
import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np

Dense = Callable[[jax.Array], jax.Array]
Linear = Callable[[jax.Array, jax.Array], jax.Array]


class Inputs(NamedTuple):
  """Observations of one spec as vectors of D features.

  Only R of the features can be other than 0, and the weights w of a first layer have
  rows for these only. R < D for a one-hot vector with entries that are never 1
  (`environments.specs.OneHotArray`).

  Attributes:
    num_features: D.
    num_rows: R.
    is_index: whether an observation is the index, from 0 to R − 1, of a one-hot vector.
    dense: observation `[B, ...]` → float32 `[B, D]`.
    linear: (observation `[B, ...]`, w `[R, F]`) → `[B, F]`, computed in the cheapest
      way; `linear(x, rows(v))` is `dense(x) @ v` for v `[D, F]`.
    rows: `[D, ...]` → `[R, ...]`, the rows of the features that can be other than 0.
    example: zeros in the shape of a batch of one observation.
  """

  num_features: int
  num_rows: int
  is_index: bool
  dense: Dense
  linear: Linear
  rows: Callable[[jax.Array], jax.Array]
  example: np.ndarray

  def weights(
    self, name: str, size: int, init: hk.initializers.Initializer
  ) -> jax.Array:
    """A Haiku module's parameter w `[R, size]`; `init` draws D rows, and R are kept."""
    shape = (self.num_features, size)
    return hk.get_parameter(
      name,
      (self.num_rows, size),
      jnp.float32,
      lambda _, dtype: self.rows(init(shape, dtype)),
    )


def make_inputs(spec: dm_env.specs.Array) -> Inputs:
  """How observations of `spec` become vectors.

  Three kinds are supported (see `environments.specs` for the encodings):

  - an int32 scalar bounded by −1 and R − 1 is the index of a one-hot vector, where −1
    means all zeros; the product with w is then a gather of rows. D = R, unless the spec
    has the `num_entries` D and the positions `entries` `[R]` of the indices
    (`environments.specs.IndexArray`);
  - uint8 arrays are flattened and scaled to [0, 1], or, if the spec has
    `num_categories` of their channels, one-hot (`environments.specs.CategoricalImage`);
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
    return _make_index(_num_values(spec), spec, example)
  if spec.dtype != np.uint8 and not np.issubdtype(spec.dtype, np.floating):
    raise ValueError(
      f"networks do not support observations of dtype {spec.dtype}; encode them as "
      "floats, as uint8 or as the int32 index of a one-hot vector."
    )
  num_features = math.prod(one_hot_spec(visible_spec(spec)).shape)
  if num_features < 1:
    raise ValueError(
      f"observations of shape {spec.shape} have no elements; a network needs at least "
      "one feature."
    )
  dense, linear = _make_dense(spec)
  return Inputs(num_features, num_features, False, dense, linear, lambda w: w, example)


def _num_values(spec: dm_env.specs.Array) -> int:
  """The number R of values of an index."""
  if (
    spec.shape != ()
    or spec.dtype != np.int32
    or not isinstance(spec, dm_env.specs.BoundedArray)
    or spec.minimum != -1
    or spec.maximum < 0
  ):
    raise ValueError(
      f"integer observations must be the index of a one-hot vector, that is an int32 "
      f"scalar with bounds −1 and R − 1, but the spec is {spec!r}; encode them as "
      "one-hot indices or as floats."
    )
  return int(spec.maximum) + 1


def _make_index(num_rows: int, spec: dm_env.specs.Array, example: np.ndarray) -> Inputs:
  num_features = getattr(spec, "num_entries", num_rows)
  entries = np.asarray(getattr(spec, "entries", np.arange(num_rows)))
  # The index −1, and any that is too large, is of no entry: all zeros.
  positions = np.append(entries, -1)

  def dense(observation: jax.Array) -> jax.Array:
    chex.assert_rank(observation, 1)
    chex.assert_type(observation, jnp.int32)
    position = jnp.asarray(positions)[observation]
    return jax.nn.one_hot(position, num_features, dtype=jnp.float32)

  def linear(observation: jax.Array, w: jax.Array) -> jax.Array:
    chex.assert_rank([observation, w], [1, 2])
    chex.assert_type(observation, jnp.int32)
    of_index = jnp.take(w, jnp.maximum(observation, 0), axis=0)
    return of_index * (observation >= 0).astype(w.dtype)[:, None]

  def rows(w: jax.Array) -> jax.Array:
    return w[entries] if num_rows < num_features else w

  return Inputs(num_features, num_rows, True, dense, linear, rows, example)


def visible_spec(spec: dm_env.specs.Array) -> dm_env.specs.Array:
  """The spec of the part of an observation that networks see: all of it, or its image.

  A spec with an `image_spec` is an image with a row of numbers below it
  (`environments.specs.ImageWithState`).
  """
  return getattr(spec, "image_spec", spec)


def one_hot_spec(spec: dm_env.specs.Array) -> dm_env.specs.Array:
  """Of the arrays of `one_hot_channels`, `[..., Σ n_c]`; others stay as they are."""
  if not hasattr(spec, "num_categories"):
    return spec
  shape = (*spec.shape[:-1], sum(spec.num_categories))
  return dm_env.specs.Array(shape, np.float32, spec.name)


def one_hot_channels(
  observation: jax.Array, num_categories: Sequence[int]
) -> jax.Array:
  """Category numbers `[..., C]` → one-hot float32 `[..., Σ n_c]`."""
  one_hot = (
    jax.nn.one_hot(observation[..., c], number, dtype=jnp.float32)
    for c, number in enumerate(num_categories)
  )
  return jnp.concatenate([*one_hot], axis=-1)


def _make_dense(spec: dm_env.specs.Array) -> tuple[Dense, Linear]:
  categories = getattr(spec, "num_categories", None)
  scale = 1 / 255 if spec.dtype == np.uint8 and categories is None else 1.0
  visible = visible_spec(spec).shape

  def dense(observation: jax.Array) -> jax.Array:
    chex.assert_shape(observation, (None, *spec.shape))
    if visible != spec.shape:
      observation = observation[:, : visible[0]]
    if categories is not None:
      observation = one_hot_channels(observation, categories)
    flat = jnp.reshape(observation, (observation.shape[0], -1))
    return flat.astype(jnp.float32) * scale

  def linear(observation: jax.Array, w: jax.Array) -> jax.Array:
    return dense(observation) @ w

  return dense, linear
