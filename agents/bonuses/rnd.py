"""The bonus of random network distillation."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Annotated, Any, Literal, NamedTuple

import dm_env
import jax
import optax

from explorax import exploration, losses, networks, ranges
from explorax.agents import updates
from explorax.agents.bonuses import types
from explorax.exploration import schedules

_RND_NORMALISATIONS: dict[str, Callable[..., jax.Array]] = {
  "centred": exploration.normalise,
  "deviation": exploration.over_deviation,
  "variance": functools.partial(exploration.over_deviation, power=2),
  "none": lambda moments, errors: errors,
}


class RNDState(NamedTuple):
  """The trained predictor, the fixed target, and the running moments."""

  predictor: Any
  target: Any
  opt_state: Any
  moments: Any


@dataclasses.dataclass(frozen=True)
class RND(types.Bonus):
  """‖ĝ(x) − g(x)‖², g random and fixed, ĝ trained on it (paper 4, appendix D.1).

  The batch's errors are normalised by moments μ and σ: `centred`, (e − μ)/σ, as in
  paper 4 on bsuite; `deviation`, e/σ, which is never negative (Burda et al., 2018, who
  take the σ of discounted sums of e); `variance`, e/σ², as printed in paper 1; or
  `none`, e.

  e/σ² depends on the scale of e: where all errors are c times as small, it is c times
  as large. With moments that decay, it therefore grows without bound as novelty
  vanishes.
  """

  # The Q-network's (paper 4, appendix D.1).
  hidden_sizes: tuple[ranges.PositiveInt, ...] = (50, 50)
  # m, of {10, 64, 128} (paper 4, Table 3, best one unknown).
  output_size: ranges.PositiveInt = 64
  # Adam's; the agent's own (paper 4, Table 2). A schedule's time is in learner updates.
  learning_rate: schedules.LearningRate = 1e-3
  # α of the moments, of {0.9, 0.99, 0.999} (Table 3, likewise); None: all errors since
  # the start weigh the same (Burda et al., 2018; papers 1 and 2).
  decay: ranges.BelowOne | None = 0.99
  # Or not (paper 4, Table 3, best unknown).
  normalisation: Annotated[str, ranges.OneOf(_RND_NORMALISATIONS)] = "centred"
  # Before the linear layers (`networks.make_torso`).
  torso: Annotated[str, ranges.OneOf(networks.TORSOS)] = "auto"
  # Adam's ε (optax's; paper 4 prints none).
  optimizer_eps: ranges.PositiveFloat = 1e-8
  max_gradient_norm: ranges.PositiveFloat | None = None  # None: not clipped (paper 4).
  # The observation of a transition whose novelty counts (paper 4: the source).
  end: Literal["source", "destination"] = "source"
  # The predictor is trained on this many last transitions of a window; None: all.
  num_trained: ranges.PositiveInt | None = None

  def make_networks(self, observation_spec: dm_env.specs.Array) -> networks.RNDNetworks:
    """ĝ and g, for encoded observations of this spec."""
    return networks.make_rnd_networks(
      observation_spec, self.hidden_sizes, self.output_size, self.torso
    )

  def build(
    self, observation_spec: dm_env.specs.Array, num_actions: int
  ) -> types.IntrinsicReward:
    nets = self.make_networks(observation_spec)
    optimizer = updates.clipped(
      optax.adam(self.learning_rate, eps=self.optimizer_eps), self.max_gradient_norm
    )

    def init(key: jax.Array) -> RNDState:
      predictor_key, target_key = jax.random.split(key)
      predictor = nets.predictor.init(predictor_key)
      return RNDState(
        predictor,
        nets.target.init(target_key),
        optimizer.init(predictor),
        exploration.init_moments(),
      )

    def loss(
      predictor: Any, target: Any, observation: jax.Array, mask: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
      errors = jax.vmap(losses.rnd_error)(
        nets.predictor.apply(predictor, observation),
        nets.target.apply(target, observation),
      )
      return updates.masked_mean(errors, mask), errors

    def compute(state: RNDState, inputs: types.Inputs) -> tuple[jax.Array, RNDState]:
      trained = inputs.mask
      if self.num_trained is not None:
        trained *= inputs.num_later < self.num_trained
      step = updates.step(
        optimizer,
        loss,
        state.predictor,
        state.opt_state,
        state.target,
        inputs.observation,
        trained,
      )
      errors = jax.lax.stop_gradient(step.aux)
      if self.decay is None:
        moments = exploration.update_moments(state.moments, errors, inputs.mask)
      else:
        moments = exploration.update_ema_moments(
          state.moments, errors, self.decay, inputs.mask
        )
      r_int = _RND_NORMALISATIONS[self.normalisation](moments, errors)
      return r_int, RNDState(step.params, state.target, step.opt_state, moments)

    return types.IntrinsicReward(self.end, learning=types.Learning(init, compute))
