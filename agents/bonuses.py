"""Intrinsic rewards as parts that an engine plugs in.

A bonus says where it is computed, in the learner or in the actor, and which end of
the transition it speaks of. It returns r_int; β multiplies it in the learner and
nowhere else.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import dm_env
import jax
import jax.numpy as jnp
import optax

from explorax import exploration, losses, networks


class Inputs(NamedTuple):
  """What a bonus in the learner sees of a batch of transitions.

  Attributes:
    td: `[K, B]`, TD errors on the extrinsic reward of the members that never see the
      bonus (of all members where all see it).
    q_tm1: `[K, B, A]`, those members' values at the source.
    a_tm1: int32 `[B]`.
    observation_tm1: `[B, ...]`, encoded.
    mask: float32 `[B]`, 1 where the transition is a real one that is trained on.
  """

  td: jax.Array
  q_tm1: jax.Array
  a_tm1: jax.Array
  observation_tm1: jax.Array
  mask: jax.Array


class LearnerBonus(NamedTuple):
  """A bonus computed in the learner, from the networks as they are now.

  Attributes:
    end: `source`, `transition` or `destination`.
    init: (key) → state.
    compute: (state, Inputs) → (r_int `[B]` without gradient, state).
  """

  end: str
  init: Callable[[jax.Array], Any]
  compute: Callable[[Any, Inputs], tuple[jax.Array, Any]]


class Training(NamedTuple):
  """What a learner trains for a bonus that is computed while acting.

  Attributes:
    init: (key) → state.
    update: (state, observation `[B, R, ...]`, action `[B, R]`, number of transitions
      int32 `[B]`) → (state, metrics), on windows of rows: row i of a window is
      followed by row i + 1, for i below that number; what comes after is padding.
    weights: (state) → what the actor's half needs.
  """

  init: Callable[[jax.Array], Any]
  update: Callable[
    [Any, jax.Array, jax.Array, jax.Array], tuple[Any, dict[str, jax.Array]]
  ]
  weights: Callable[[Any], Any]


class ActorBonus(NamedTuple):
  """A bonus computed while acting, and stored with each row as `r_int`.

  Attributes:
    end: `source`, `transition` or `destination`.
    init: () → state.
    begin_episode: (state) → state.
    observe: (weights, state, x_t, a_t, last) → (r_int of row t, state); `last` is true
      on an episode's last row, whose action is drawn but never taken. Without
      training, weights are `()`.
    training: what a learner trains for it; None: nothing.
    refresh: (held, fresh) → the weights to go on with in mid-episode. At an episode's
      start they are the fresh ones.
  """

  end: str
  init: Callable[[], Any]
  begin_episode: Callable[[Any], Any]
  observe: Callable[[Any, Any, jax.Array, jax.Array, jax.Array], tuple[jax.Array, Any]]
  training: Training | None = None
  refresh: Callable[[Any, Any], Any] = lambda held, fresh: fresh


class Bonus(Protocol):
  """A frozen dataclass of a bonus's settings, which builds it."""

  def build(
    self, observation_spec: dm_env.specs.Array, num_actions: int
  ) -> LearnerBonus | ActorBonus:
    """The bonus for encoded observations of this spec."""
    ...


def _stateless(end: str, compute: Callable[[Inputs], jax.Array]) -> LearnerBonus:
  return LearnerBonus(
    end=end,
    init=lambda key: (),
    compute=lambda state, inputs: (compute(inputs), state),
  )


@dataclasses.dataclass(frozen=True)
class NoBonus:
  """r_int = 0."""

  def build(
    self, observation_spec: dm_env.specs.Array, num_actions: int
  ) -> LearnerBonus:
    return _stateless("transition", lambda inputs: jnp.zeros_like(inputs.td[0]))


@dataclasses.dataclass(frozen=True)
class TDUncertainty:
  """σ(τ), the deviation of the members' TD errors (paper 4, equation 11)."""

  def build(
    self, observation_spec: dm_env.specs.Array, num_actions: int
  ) -> LearnerBonus:
    return _stateless("transition", lambda inputs: losses.tdu_bonus(inputs.td))


@dataclasses.dataclass(frozen=True)
class QUncertainty:
  """σ over the members' values of the action taken (paper 4's ablation QU)."""

  def build(
    self, observation_spec: dm_env.specs.Array, num_actions: int
  ) -> LearnerBonus:
    def compute(inputs: Inputs) -> jax.Array:
      taken = inputs.a_tm1[None, :, None]
      q_a = jnp.take_along_axis(inputs.q_tm1, taken, axis=-1)[..., 0]
      return losses.q_uncertainty(q_a)

    return _stateless("transition", compute)


@dataclasses.dataclass(frozen=True)
class AbsoluteTDError:
  """|δ|, averaged over the members that never see the bonus, of which QEX has one.

  Source: Simmons-Edler et al. (2019), QXplore; QEX in paper 4, appendix D.1.
  """

  def build(
    self, observation_spec: dm_env.specs.Array, num_actions: int
  ) -> LearnerBonus:
    return _stateless("transition", lambda inputs: jnp.mean(jnp.abs(inputs.td), axis=0))


@dataclasses.dataclass(frozen=True)
class InfoGain:
  """Information gain over the members' Boltzmann policies (paper 3, algorithm 3)."""

  temperature: float = 1.0  # T; paper 3's reported runs.

  def __post_init__(self):
    if not self.temperature > 0:
      raise ValueError(
        f"InfoGain.temperature is {self.temperature}; it must be positive."
      )

  def build(
    self, observation_spec: dm_env.specs.Array, num_actions: int
  ) -> LearnerBonus:
    per_row = jax.vmap(losses.infogain_bonus, in_axes=(1, None))
    return _stateless("source", lambda inputs: per_row(inputs.q_tm1, self.temperature))


def _over_deviation(
  moments: exploration.Moments, errors: jax.Array, power: int
) -> jax.Array:
  """e / σ^power, and 0 where errors do not differ: they tell nothing apart then."""
  deviation = jnp.sqrt(moments.variance)
  differ = deviation > 1e-4 * jnp.abs(moments.mean)
  return jnp.where(differ, errors / jnp.where(differ, deviation, 1.0) ** power, 0.0)


_RND_NORMALISATIONS: dict[str, Callable[..., jax.Array]] = {
  "centred": exploration.normalise,
  "deviation": functools.partial(_over_deviation, power=1),
  "variance": functools.partial(_over_deviation, power=2),
  "none": lambda moments, errors: errors,
}


class RNDState(NamedTuple):
  """The predictor being trained, the fixed target, and the running moments."""

  predictor: Any
  target: Any
  opt_state: Any
  moments: Any


@dataclasses.dataclass(frozen=True)
class RND:
  """‖ĝ(x) − g(x)‖², g random and fixed, ĝ trained on it (paper 4, appendix D.1).

  The batch's errors are brought to scale by moving moments μ and σ, in one of these
  ways: `centred`, (e − μ)/σ, as paper 4 does on bsuite; `deviation`, e/σ, which is
  never negative (Burda et al., 2018); `variance`, e/σ², as paper 1 prints; `none`, e.
  """

  hidden_sizes: tuple[int, ...] = (50, 50)  # The Q-network's (paper 4, appendix D.1).
  output_size: int = 64  # m, of {10, 64, 128} (paper 4, Table 3, best one unknown).
  learning_rate: float = 1e-3  # Adam's; the agent's own (paper 4, Table 2).
  decay: float = 0.99  # α of the moments, of {0.9, 0.99, 0.999} (Table 3, likewise).
  normalisation: str = "centred"  # Or not (paper 4, Table 3, likewise).

  def __post_init__(self):
    if not 0 <= self.decay < 1:
      raise ValueError(f"RND.decay is {self.decay}; it must be in [0, 1).")
    if not self.learning_rate > 0:
      raise ValueError(f"RND.learning_rate is {self.learning_rate}; make it positive.")
    if self.normalisation not in _RND_NORMALISATIONS:
      raise ValueError(
        f"RND.normalisation is {self.normalisation!r}; use one of "
        f"{', '.join(_RND_NORMALISATIONS)}."
      )

  def build(
    self, observation_spec: dm_env.specs.Array, num_actions: int
  ) -> LearnerBonus:
    nets = networks.make_rnd_networks(
      observation_spec, self.hidden_sizes, self.output_size
    )
    optimizer = optax.adam(self.learning_rate)

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
      return jnp.sum(mask * errors) / jnp.maximum(jnp.sum(mask), 1.0), errors

    def compute(state: RNDState, inputs: Inputs) -> tuple[jax.Array, RNDState]:
      gradients, errors = jax.grad(loss, has_aux=True)(
        state.predictor, state.target, inputs.observation_tm1, inputs.mask
      )
      updates, opt_state = optimizer.update(gradients, state.opt_state)
      predictor = optax.apply_updates(state.predictor, updates)
      errors = jax.lax.stop_gradient(errors)
      moments = exploration.update_ema_moments(
        state.moments, errors, self.decay, inputs.mask
      )
      r_int = _RND_NORMALISATIONS[self.normalisation](moments, errors)
      return r_int, RNDState(predictor, state.target, opt_state, moments)

    return LearnerBonus("source", init, compute)


@dataclasses.dataclass(frozen=True)
class Counts:
  """(N(s, a) + 0.01)^{-1/2} with counts in a table (paper 4, appendix D.1).

  One-hot observations count exactly; others are hashed into `num_buckets` states,
  which is exact up to collisions.
  """

  num_buckets: int = 1 << 16  # States; ours, since the paper counts states exactly.

  def __post_init__(self):
    if self.num_buckets < 1:
      raise ValueError(f"Counts.num_buckets is {self.num_buckets}; use at least 1.")

  def build(self, observation_spec: dm_env.specs.Array, num_actions: int) -> ActorBonus:
    inputs = networks.make_inputs(observation_spec)
    # One more state for the zeros after an episode's end, whose index is −1.
    num_states = inputs.num_features + 1 if inputs.is_index else self.num_buckets

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

    return ActorBonus(
      "transition",
      init=lambda: exploration.init_counts(num_states, num_actions),
      begin_episode=lambda counts: counts,
      observe=observe,
    )
