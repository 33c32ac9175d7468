"""The bonus of rewarding impact."""

import dataclasses

import dm_env
import jax
import jax.numpy as jnp

from explorax import ranges
from explorax.agents.bonuses import dynamics, episodic_counts, types


@dataclasses.dataclass(frozen=True)
class RIDE(types.Bonus):
  """‖φ(x') − φ(x)‖₂ / √N(x'), with N the visits in this episode, this one included.

  The actor stores 1 / √N of each observation, an episode's last one included; the
  learner computes the impact on φ, which it trains by inverse and forward dynamics.

  Source: Raileanu and Rocktäschel (2020), and its code (impact-driven-exploration,
  `src/algos/ride.py`). There, an episode's first observation is counted in the episode
  before, and an episode's last impact is that on the first observation of the next.
  """

  # 128 features, forward loss × 10, inverse loss × 0.1, learning rate 1e-4 (the code,
  # whose optimiser is RMSProp).
  model: dynamics.Dynamics = dataclasses.field(
    default_factory=lambda: dynamics.Dynamics(
      inverse_weight=0.1, forward_weight=10.0, forward_error="distance"
    )
  )
  num_buckets: ranges.PositiveInt = 1 << 16  # States; see `counts.Counts`.

  def build(
    self, observation_spec: dm_env.specs.Array, num_actions: int
  ) -> types.IntrinsicReward:
    models = self.model.build(observation_spec, num_actions)

    def compute(
      state: dynamics.State, inputs: types.Inputs
    ) -> tuple[jax.Array, dynamics.State]:
      errors, state = models.update(state, *inputs.transitions)
      impact = jnp.linalg.norm(errors.embedding_t - errors.embedding_tm1, axis=-1)
      return impact * inputs.stored, state

    return types.IntrinsicReward(
      "destination",
      episodic_counts.make_acting(
        observation_spec,
        self.num_buckets,
        lambda visits: jax.lax.rsqrt(visits.astype(jnp.float32)),
      ),
      types.Learning(models.init, compute),
    )
