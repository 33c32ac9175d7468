"""The members' action values, priors included."""

from collections.abc import Callable
from typing import Any, NamedTuple

import dm_env
import jax

from explorax import networks
from explorax.agents.dqn import config as config_lib


class Weights(NamedTuple):
  """What an actor needs: the trained parameters and the fixed priors'."""

  params: Any
  prior_params: Any


class Values(NamedTuple):
  """Q_k = Q_θk + λ P_k as pure functions.

  Attributes:
    init: (key) → params of all members.
    init_prior: (key) → prior_params; empty where there are no priors.
    apply: (params, prior_params, observation `[B, ...]`) → q `[M, B, A]`.
  """

  init: Callable[[jax.Array], Any]
  init_prior: Callable[[jax.Array], Any]
  apply: Callable[[Any, Any, jax.Array], jax.Array]


def make_values(
  config: config_lib.DQNConfig, observation_spec: dm_env.specs.Array, num_actions: int
) -> Values:
  """The values of a config, for encoded observations of `observation_spec`."""
  q_networks = networks.make_ensemble_mlp(
    observation_spec,
    num_actions,
    config.ensemble_size,
    config.hidden_sizes,
    config.shared_torso,
  )
  if config.prior_scale == 0:
    return Values(
      q_networks.init,
      lambda key: (),
      lambda params, prior_params, observation: q_networks.apply(params, observation),
    )
  return Values(*networks.with_prior(q_networks, config.prior_scale))
