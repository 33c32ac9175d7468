"""The bonus of visit counts."""

import dataclasses

import dm_env
import jax
import jax.numpy as jnp

from explorax import exploration, networks, ranges
from explorax.agents.bonuses import types


@dataclasses.dataclass(frozen=True)
class Counts(types.Bonus):
  """(N(s, a) + 0.01)^{-1/2} with counts in a table (paper 4, appendix D.1).

  One-hot observations count exactly; others are hashed into `num_buckets` states,
  which is exact up to collisions.
  """

  # States; our choice, as the paper counts states exactly.
  num_buckets: ranges.PositiveInt = 1 << 16

  def build(
    self, observation_spec: dm_env.specs.Array, num_actions: int
  ) -> types.IntrinsicReward:
    inputs = networks.make_inputs(observation_spec)
    # One more state for the zeros at an episode's end, whose index is −1.
    num_states = inputs.num_rows + 1 if inputs.is_index else self.num_buckets

    def observe(
      weights: tuple[()],
      counts: jax.Array,
      observation: jax.Array,
      action: jax.Array,
      last: jax.Array,
    ) -> tuple[jax.Array, jax.Array]:
      del weights  # Nothing is trained.
      state = (
        observation + 1
        if inputs.is_index
        else exploration.hash_observation(observation, num_states)
      )
      counts = exploration.count_visit(counts, state, action, jnp.where(last, 0, 1))
      bonus = exploration.count_bonus(counts, state, action)
      return jnp.where(last, 0.0, bonus), counts

    acting = types.Acting(
      init=lambda: exploration.init_counts(num_states, num_actions),
      begin_episode=lambda counts: counts,
      observe=observe,
    )
    return types.IntrinsicReward("transition", acting)
