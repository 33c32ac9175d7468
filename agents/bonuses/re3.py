"""The bonus of state entropy, by random encoders."""

import dataclasses
from typing import Annotated, Any

import dm_env
import jax
import jax.numpy as jnp

from explorax import exploration, networks, ranges
from explorax.agents.bonuses import types


@dataclasses.dataclass(frozen=True)
class RE3(types.Bonus):
  """log(1 + ‖y − y_k‖₂ / σ), y = f(x') random features, y_k the k-th nearest earlier.

  The actor stores the distance to its last `memory_capacity` observations, of all
  episodes; the learner divides by σ, the deviation of distances since the start, and
  takes the logarithm. Nothing is trained.

  Source: Seo et al. (2021), and its code (RE3). For A2C on MiniGrid it compares with
  the last 10,000 observations, and for RAD with all of replay, whenever it learns; that
  is the least stale, but the learner sees no more than its batch. It rewards the
  transition out of x.
  """

  num_neighbors: ranges.PositiveInt = 3  # k, without x' itself (the code).
  memory_capacity: ranges.PositiveInt = 10_000  # Agent steps (the code for A2C).
  embedding_size: ranges.PositiveInt = 64  # Of f (the code for A2C).
  # Of f, before its last layer.
  torso: Annotated[str, ranges.OneOf(networks.TORSOS)] = "auto"
  hidden_sizes: tuple[ranges.PositiveInt, ...] = ()  # Of f, likewise.

  def build(
    self, observation_spec: dm_env.specs.Array, num_actions: int
  ) -> types.IntrinsicReward:
    features = networks.make_random_features(
      observation_spec, self.hidden_sizes, self.embedding_size, self.torso
    )

    def observe(
      weights: Any,
      memory: exploration.EpisodicMemory,
      observation: jax.Array,
      *_: jax.Array,
    ) -> tuple[jax.Array, exploration.EpisodicMemory]:
      embedding = features.apply(weights, observation[None])[0]
      return exploration.nearest_distance(memory, embedding, self.num_neighbors)

    def compute(
      moments: exploration.Moments, inputs: types.Inputs
    ) -> tuple[jax.Array, exploration.Moments]:
      moments = exploration.update_moments(moments, inputs.stored, inputs.mask)
      return jnp.log1p(exploration.over_deviation(moments, inputs.stored)), moments

    acting = types.Acting(
      lambda: exploration.init_episodic_memory(
        self.memory_capacity, self.embedding_size
      ),
      begin_episode=None,
      observe=observe,
      training=types.untrained(features.init),
    )
    learning = types.Learning(lambda key: exploration.init_moments(), compute)
    return types.IntrinsicReward("destination", acting, learning)
