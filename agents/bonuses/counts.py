"""The bonus of visit counts."""

import dataclasses
from collections.abc import Callable

import dm_env
import jax
import jax.numpy as jnp

from explorax import exploration, networks, ranges
from explorax.agents.bonuses import types


def make_states(
  observation_spec: dm_env.specs.Array, num_buckets: int
) -> tuple[int, Callable[[jax.Array], jax.Array]]:
  """The number of states, and (encoded observation) → its state, int32 `[]`.

  One-hot observations are states; others are hashed into `num_buckets` of them.
  """
  inputs = networks.make_inputs(observation_spec)
  if inputs.is_index:
    # One more state for the zeros at an episode's end, whose index is −1.
    return inputs.num_rows + 1, lambda observation: observation + 1
  return num_buckets, lambda x: exploration.hash_observation(x, num_buckets)


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
    num_states, state_of = make_states(observation_spec, self.num_buckets)

    def observe(
      weights: tuple[()],
      counts: jax.Array,
      observation: jax.Array,
      action: jax.Array,
      last: jax.Array,
    ) -> tuple[jax.Array, jax.Array]:
      state = state_of(observation)
      counts = exploration.count_visit(counts, state, action, jnp.where(last, 0, 1))
      bonus = exploration.count_bonus(counts, state, action)
      return jnp.where(last, 0.0, bonus), counts

    acting = types.Acting(
      init=lambda: exploration.init_counts(num_states, num_actions),
      begin_episode=None,
      observe=observe,
    )
    return types.IntrinsicReward("transition", acting)
