"""The bonus of the difference of novelties."""

import dataclasses
from typing import Annotated

import dm_env
import jax
import jax.numpy as jnp

from explorax import losses, networks, ranges
from explorax.agents.bonuses import episodic_counts, rnd, types
from explorax.exploration import schedules


@dataclasses.dataclass(frozen=True)
class NovelD(types.Bonus):
  """max(n(x') − α n(x), 0) on the first visit to x' in an episode, else 0.

  n(x) = ‖ĝ(x) − g(x)‖₂ of random network distillation. The actor stores whether the
  visit is the first; the learner computes n of both ends, and trains ĝ on x'.

  Source: Zhang et al. (2021), and its code (NovelD, `src/algos/bebold.py`).
  """

  alpha: ranges.NonNegativeFloat = 0.5  # α (the code; E3B's repository has 0.1).
  num_buckets: ranges.PositiveInt = 1 << 16  # States; see `counts.Counts`.
  # Of ĝ and g.
  torso: Annotated[str, ranges.OneOf(networks.TORSOS)] = "auto"
  hidden_sizes: tuple[ranges.PositiveInt, ...] = (50, 50)  # As of `rnd.RND`.
  output_size: ranges.PositiveInt = 128  # m.
  learning_rate: schedules.LearningRate = 1e-4  # Adam's (the code).
  max_gradient_norm: ranges.PositiveFloat | None = 40.0  # (The code.)

  def build(
    self, observation_spec: dm_env.specs.Array, num_actions: int
  ) -> types.IntrinsicReward:
    settings = rnd.RND(
      hidden_sizes=self.hidden_sizes,
      output_size=self.output_size,
      torso=self.torso,
      learning_rate=self.learning_rate,
      max_gradient_norm=self.max_gradient_norm,
      normalisation="none",
      end="destination",
    )
    distillation = settings.build(observation_spec, num_actions).learning
    assert distillation is not None
    nets = settings.make_networks(observation_spec)
    train = distillation.compute

    def compute(
      state: rnd.RNDState, inputs: types.Inputs
    ) -> tuple[jax.Array, rnd.RNDState]:
      error_tm1 = losses.rnd_error(
        nets.predictor.apply(state.predictor, inputs.observation_tm1),
        nets.target.apply(state.target, inputs.observation_tm1),
      )
      error_t, state = train(state, inputs)
      rise = losses.novel_d(jnp.sqrt(error_tm1), jnp.sqrt(error_t), self.alpha)
      return rise * inputs.stored, state

    return types.IntrinsicReward(
      "destination",
      episodic_counts.make_acting(
        observation_spec,
        self.num_buckets,
        lambda visits: (visits == 1).astype(jnp.float32),
      ),
      types.Learning(distillation.init, compute),
    )
