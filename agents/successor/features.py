"""The networks of the features φ(x, a) and of the successor features ψ(x, a)."""

from collections.abc import Sequence
from typing import NamedTuple

import dm_env
import haiku as hk
import jax
import jax.numpy as jnp

from explorax import networks
from explorax.agents.successor import config as config_lib


class Features(NamedTuple):
  """φ and ψ: observations `[B, ...]` → float32 `[B, A, D]`; they share no parameters.

  The values of φ are not negative; the values of ψ have any sign.
  """

  phi: networks.Network
  psi: networks.Network


def make_features(
  config: config_lib.SuccessorConfig,
  observation_spec: dm_env.specs.Array,
  num_actions: int,
) -> Features:
  """Torsos and a linear layer on each; φ ends in a ReLU (Janz et al., 2019).

  Without hidden layers or convolutions, the weights of ψ are initially 1: for one-hot
  observations ψ is a table, and unvisited states have different features.
  """

  def make(
    hidden_sizes: Sequence[int], w_init: hk.initializers.Initializer | None
  ) -> networks.Network:
    make_torso = networks.make_torso(config.torso, observation_spec, hidden_sizes)

    def forward(x: jax.Array) -> jax.Array:
      linear = hk.Linear(num_actions * config.feature_size, w_init=w_init)
      outputs = linear(make_torso()(x))
      return jnp.reshape(outputs, (outputs.shape[0], num_actions, config.feature_size))

    return networks.from_haiku(lambda: forward, observation_spec)

  torso = networks.resolve_torso(config.torso, observation_spec)
  is_linear = torso == "mlp" and not config.psi_hidden_sizes
  phi = make(config.hidden_sizes, None)
  ones = hk.initializers.Constant(1.0)
  psi = make(config.psi_hidden_sizes, ones if is_linear else None)
  positive = phi._replace(apply=lambda params, x: jax.nn.relu(phi.apply(params, x)))
  return Features(positive, psi)
