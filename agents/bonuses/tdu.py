"""The bonus of temporal difference uncertainties."""

import dataclasses
from typing import ClassVar

import dm_env

from explorax import losses
from explorax.agents.bonuses import types


@dataclasses.dataclass(frozen=True)
class TDUncertainty(types.Bonus):
  """σ(τ), the deviation of the members' TD errors (paper 4, equation 11)."""

  min_members: ClassVar[int] = 2  # A deviation over members.

  def build(
    self, observation_spec: dm_env.specs.Array, num_actions: int
  ) -> types.IntrinsicReward:
    return types.of_values("transition", lambda inputs: losses.tdu_bonus(inputs.td))
