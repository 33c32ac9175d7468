"""The bonus of the values' uncertainty."""

import dataclasses
from typing import ClassVar

import dm_env
import jax
import jax.numpy as jnp

from explorax import losses
from explorax.agents.bonuses import types


@dataclasses.dataclass(frozen=True)
class QUncertainty(types.Bonus):
  """σ over the members' values of the action taken (paper 4's ablation QU)."""

  min_members: ClassVar[int] = 2  # A deviation over members.

  def build(
    self, observation_spec: dm_env.specs.Array, num_actions: int
  ) -> types.IntrinsicReward:
    def compute(inputs: types.Inputs) -> jax.Array:
      taken = inputs.a_tm1[None, :, None]
      q_a = jnp.take_along_axis(inputs.q_tm1, taken, axis=-1)[..., 0]
      return losses.q_uncertainty(q_a)

    return types.of_values("transition", compute)
