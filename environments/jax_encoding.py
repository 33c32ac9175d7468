"""Encodings of observations within jitted functions."""

import jax
import jax.numpy as jnp
import numpy as np


def one_hot_index(observation: jax.Array, index: np.ndarray) -> jax.Array:
  """`index` at the position of the 1 of a one-hot array; −1 for all zeros."""
  flat = jnp.ravel(observation)
  position = jnp.argmax(flat)
  return jnp.where(flat[position] == 0.0, -1, jnp.asarray(index)[position])
