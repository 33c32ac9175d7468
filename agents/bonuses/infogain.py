"""The bonus of the information gain over the members' policies."""

import dataclasses

import dm_env
import jax

from explorax import losses, ranges
from explorax.agents.bonuses import types


@dataclasses.dataclass(frozen=True)
class InfoGain(types.Bonus):
  """Information gain over the members' Boltzmann policies (paper 3, algorithm 3)."""

  temperature: ranges.PositiveFloat = 1.0  # T; paper 3's reported runs.

  def build(
    self, observation_spec: dm_env.specs.Array, num_actions: int
  ) -> types.IntrinsicReward:
    per_row = jax.vmap(losses.infogain_bonus, in_axes=(1, None))
    return types.of_values("source", lambda inputs: per_row(inputs.q, self.temperature))
