"""Visits in this episode: the acting half of RIDE and NovelD."""

from collections.abc import Callable

import dm_env
import jax

from explorax import exploration
from explorax.agents.bonuses import counts, types


def make_acting(
  observation_spec: dm_env.specs.Array,
  num_buckets: int,
  value: Callable[[jax.Array], jax.Array],
) -> types.Acting:
  """Stores a function of N(x_t), the visits to x_t in this episode, this one included.

  Args:
    observation_spec: of the encoded observations.
    num_buckets: states into which observations that are not one-hot are hashed.
    value: (N int32 `[]`) → float32 `[]`.
  """
  num_states, state_of = counts.make_states(observation_spec, num_buckets)

  def observe(
    weights: tuple[()],
    state: exploration.EpisodicCounts,
    observation: jax.Array,
    *_: jax.Array,
  ) -> tuple[jax.Array, exploration.EpisodicCounts]:
    visits, state = exploration.count_episodic_visit(state, state_of(observation))
    return value(visits), state

  return types.Acting(
    lambda: exploration.init_episodic_counts(num_states),
    exploration.clear_episodic_counts,
    observe,
  )
