"""The values of the actions chosen, in several equivalent ways.

An action outside [0, A) gives NaN, which a learner detects, rather than another
action's value.
"""

import jax
import jax.numpy as jnp

Array = jax.Array


def _or_nan(chosen: Array, actions: Array, num_actions: int) -> Array:
  return jnp.where((actions >= 0) & (actions < num_actions), chosen, jnp.nan)


def index(values: Array, action: Array) -> Array:
  """values[action], of one action. `[A, ...]` → `[...]`."""
  values, action = jnp.asarray(values), jnp.asarray(action)
  return _or_nan(values[action], action, values.shape[0])


def gather(values: Array, actions: Array) -> Array:
  """values[..., actions], if no gradient is needed. `[..., A]` → `[...]`."""
  values, actions = jnp.asarray(values), jnp.asarray(actions)
  chosen = jnp.take_along_axis(values, actions[..., None], axis=-1, mode="clip")
  return _or_nan(chosen[..., 0], actions, values.shape[-1])


def select(values: Array, actions: Array) -> Array:
  """values[..., actions], if a gradient is needed. `[..., A]` → `[...]`.

  A gather's gradient is a scatter, several times slower than the rest of a loss; this
  function's gradient is a mask.
  """
  values, actions = jnp.asarray(values), jnp.asarray(actions)
  is_taken = jax.nn.one_hot(actions, values.shape[-1], dtype=bool)
  chosen = jnp.sum(jnp.where(is_taken, values, 0.0), axis=-1)
  return _or_nan(chosen, actions, values.shape[-1])
