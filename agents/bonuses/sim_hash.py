"""The bonus of counts of hash codes."""

import dataclasses
from typing import Any

import dm_env
import jax
import jax.numpy as jnp

from explorax import exploration, networks, ranges
from explorax.agents.bonuses import types


@dataclasses.dataclass(frozen=True)
class SimHash(types.Bonus):
  """N(c)^{-1/2} of the code c = sign(A x'), A random, over all of an actor's episodes.

  Similar observations share a code; more bits distinguish them. This visit is
  included in N. Codes are hashed into a table.

  Source: Tang et al. (2017), #Exploration; for DQN their code rewards the arrival. They
  count the codes of all workers together; here each actor has its counts.
  """

  num_bits: ranges.PositiveInt = 128  # Of a code (rllab's `HashingBonusEvaluator`).
  num_buckets: ranges.PositiveInt = 1 << 20  # Of the table (about the same source's).

  def build(
    self, observation_spec: dm_env.specs.Array, num_actions: int
  ) -> types.IntrinsicReward:
    projection = networks.make_random_features(
      observation_spec, (), self.num_bits, "mlp"
    )

    def observe(
      weights: Any, counts: jax.Array, observation: jax.Array, *_: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
      code = projection.apply(weights, observation[None])[0] > 0
      bucket = exploration.hash_observation(code, self.num_buckets)
      counts = exploration.count_visit(counts, bucket, jnp.int32(0))
      return exploration.count_bonus(counts, bucket, jnp.int32(0), 0.0), counts

    acting = types.Acting(
      lambda: exploration.init_counts(self.num_buckets, 1),
      begin_episode=None,
      observe=observe,
      training=types.untrained(projection.init),
    )
    return types.IntrinsicReward("destination", acting)
