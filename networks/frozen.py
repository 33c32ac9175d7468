"""Networks that are never trained, evaluated as a table if possible."""

from typing import TypeVar

import dm_env
import jax
import jax.numpy as jnp

from explorax.networks import inputs as inputs_lib
from explorax.networks import types

AnyNetwork = TypeVar("AnyNetwork", types.Network, types.Ensemble)


def freeze(network: AnyNetwork, observation_spec: dm_env.specs.Array) -> AnyNetwork:
  """The same function of observations, for a network that is never trained.

  A function of a one-hot index is a table. For such observations, `init` evaluates the
  network on all R of them once, and its parameters are this table, `[R + 1, ...]`,
  whose first row is that of −1, all zeros; `apply` is a lookup. For other observations,
  the network is returned unchanged. Useful for the priors of an ensemble and for the
  target of random network distillation.

  Args:
    network: to freeze.
    observation_spec: of the encoded observations.

  Raises:
    ValueError: if networks do not support observations of this spec.
  """
  inputs = inputs_lib.make_inputs(observation_spec)
  if not inputs.is_index:
    return network
  members_lead: bool = isinstance(network, types.Ensemble)
  batch_axis = 1 if members_lead else 0

  def init(key: jax.Array) -> jax.Array:
    every_index = jnp.arange(-1, inputs.num_rows, dtype=jnp.int32)
    outputs = network.apply(network.init(key), every_index)
    return jnp.moveaxis(outputs, batch_axis, 0)

  def apply(
    table: jax.Array, observation: jax.Array, key: jax.Array | None = None
  ) -> jax.Array:
    del key  # A table has no noise.
    # Indices out of range give NaN, as in `Inputs.linear`.
    rows = jnp.take(table, jnp.maximum(observation, -1) + 1, axis=0)
    return jnp.moveaxis(rows, 0, batch_axis)

  return type(network)(init, apply)
