"""The bonus of the TD error's size."""

import dataclasses

import dm_env
import jax.numpy as jnp

from explorax.agents.bonuses import types


@dataclasses.dataclass(frozen=True)
class AbsoluteTDError(types.Bonus):
  """|δ|, the mean over the members that never see the bonus (QEX has one).

  Source: Simmons-Edler et al. (2019), QXplore; QEX in paper 4, appendix D.1.
  """

  def build(
    self, observation_spec: dm_env.specs.Array, num_actions: int
  ) -> types.IntrinsicReward:
    return types.of_values(
      "transition", lambda inputs: jnp.mean(jnp.abs(inputs.td), axis=0)
    )
