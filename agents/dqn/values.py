"""The members' action values, priors included."""

from typing import Any, NamedTuple

import dm_env

from explorax import networks
from explorax.agents.dqn import config as config_lib


class Weights(NamedTuple):
  """What an actor needs: the trained parameters and the fixed priors'."""

  params: Any
  prior_params: Any


def make_values(
  config: config_lib.DQNConfig, observation_spec: dm_env.specs.Array, num_actions: int
) -> networks.PriorQNetworks:
  """Q_k = Q_θk + λ P_k for encoded observations of `observation_spec`."""
  q_networks = networks.make_ensemble_mlp(
    observation_spec,
    num_actions,
    config.ensemble_size,
    config.hidden_sizes,
    config.shared_torso,
  )
  prior = networks.freeze(q_networks, observation_spec)
  return networks.with_prior(q_networks, config.prior_scale, prior)
