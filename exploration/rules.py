"""The rules that need one value per action (see `types.Rule` for the seam).

A rule is a frozen dataclass of its parameters, checked when it is made; its state is
a pytree. An ensemble acts by the mean over its members. Ties between actions are
always broken at random, uniformly.
"""

import abc
import dataclasses
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

from explorax.exploration import (
  durations,
  repeats,
  schedules,
  selection,
  types,
)

_Selection = tuple[jax.Array, jax.Array, types.State]


class Stateless:
  """The parts of `types.Rule` that a rule without a memory has no use for."""

  def init(
    self,
    key: jax.Array,
    num_members: int,
    num_actions: int,
    place: types.Place = types.ALONE,
  ) -> types.State:
    del key, num_members, num_actions, place
    return ()

  def begin_episode(
    self, key: jax.Array, state: types.State, env_steps: jax.Array
  ) -> types.State:
    del key, env_steps
    return state

  def observe(self, reward: jax.Array, state: types.State) -> types.State:
    del reward
    return state

  def policy(self, state: types.State) -> jax.Array:
    del state
    return jnp.zeros((), jnp.int32)


@dataclasses.dataclass(frozen=True)
class Greedy(Stateless):
  """Greedy on the mean over the members, or over the first few of them.

  This is how agents are evaluated, which the literature does with a small ε.
  """

  num_members: int | None = None  # How many are averaged; None: all.
  epsilon: float = 0.0  # Probability of a uniform action all the same.

  def __post_init__(self):
    schedules.check_epsilon("Greedy", self.epsilon)
    if self.num_members is not None and self.num_members < 1:
      raise ValueError(
        f"Greedy.num_members is {self.num_members}; use at least 1, or None for all."
      )

  def init(
    self,
    key: jax.Array,
    num_members: int,
    num_actions: int,
    place: types.Place = types.ALONE,
  ) -> types.State:
    if self.num_members is not None and self.num_members > num_members:
      raise ValueError(
        f"Greedy.num_members is {self.num_members}, but the ensemble has only "
        f"{num_members} members; use at most that many."
      )
    return super().init(key, num_members, num_actions, place)

  def select(
    self, key: jax.Array, q: jax.Array, state: types.State, env_steps: jax.Array
  ) -> _Selection:
    del env_steps
    chex.assert_rank(q, 2)
    mean = selection.mean_over_members(q[: self.num_members])
    choice = selection.dither(key, mean, self.epsilon)
    return choice.action, choice.prob, state


class Dithering(Stateless, abc.ABC):
  """ε-greedy on the mean over the members, ε being a function of time alone."""

  @abc.abstractmethod
  def epsilon_at(self, env_steps: jax.Array) -> chex.Numeric:
    """ε after so many environment steps of all actors (int32 scalar)."""

  def select(
    self, key: jax.Array, q: jax.Array, state: types.State, env_steps: jax.Array
  ) -> _Selection:
    chex.assert_rank(q, 2)
    epsilon = self.epsilon_at(env_steps)
    choice = selection.dither(key, selection.mean_over_members(q), epsilon)
    return choice.action, choice.prob, state


@dataclasses.dataclass(frozen=True)
class EpsilonGreedy(Dithering):
  """ε-greedy on the mean over the members, ε fixed or falling linearly.

  With a ladder, actor j of J takes the power `1 + ladder · j / (J − 1)` of ε.
  """

  epsilon: float  # Probability of a uniform action (at first, with a schedule).
  final_epsilon: float | None = None  # Probability, once decayed; None: fixed.
  decay_steps: int = 0  # Environment steps, of all actors, from the one to the other.
  ladder: float = 0.0  # 0: one ε for all actors; R2D2's 7.

  def __post_init__(self):
    schedules.check_epsilon(
      "EpsilonGreedy", self.epsilon, self.final_epsilon, self.decay_steps, self.ladder
    )

  def init(
    self,
    key: jax.Array,
    num_members: int,
    num_actions: int,
    place: types.Place = types.ALONE,
  ) -> jax.Array:
    del key, num_members, num_actions
    return schedules.ladder_power(self.ladder, place.actor_id, place.num_actors)

  def epsilon_at(self, env_steps: jax.Array) -> chex.Numeric:
    """ε of the first actor, the ladder's lowest rung."""
    return schedules.linear_epsilon(
      self.epsilon, self.final_epsilon, self.decay_steps, env_steps
    )

  def select(
    self, key: jax.Array, q: jax.Array, state: jax.Array, env_steps: jax.Array
  ) -> _Selection:
    chex.assert_rank(q, 2)
    epsilon = jnp.power(self.epsilon_at(env_steps), state)
    choice = selection.dither(key, selection.mean_over_members(q), epsilon)
    return choice.action, choice.prob, state


class EzGreedyState(NamedTuple):
  """The repeat under way, and the power of ε that this actor explores with."""

  repeat: repeats.EzState
  power: jax.Array


@dataclasses.dataclass(frozen=True)
class EzGreedy(Stateless):
  """Temporally extended ε-greedy (Dabney et al., 2021) on the mean over the members.

  The drawn action is taken at once and counts as one of the duration's steps, and no
  repeat outlives its episode.
  """

  epsilon: float  # Probability of starting a repeat (at first, with a schedule).
  final_epsilon: float | None = None  # Probability, once decayed; None: fixed.
  decay_steps: int = 0  # Environment steps, of all actors, from the one to the other.
  duration: str = "zeta"  # The durations' law: zeta, exponential or uniform.
  mu: float = 2.0  # The zeta law's exponent (section 4: 2 unless stated).
  decay: float | None = None  # The exponential law's λ, in [0, 1); None with others.
  cap: int = 10_000  # Longest duration, agent steps (appendix; Rainbow's is 100).
  ladder: float = 0.0  # As in EpsilonGreedy.

  def __post_init__(self):
    schedules.check_epsilon(
      "EzGreedy", self.epsilon, self.final_epsilon, self.decay_steps, self.ladder
    )
    if self.duration not in ("zeta", "exponential", "uniform"):
      raise ValueError(
        f"EzGreedy.duration is {self.duration!r}; use 'zeta', 'exponential' or "
        "'uniform'."
      )
    if (self.duration == "exponential") != (self.decay is not None):
      raise ValueError(
        f"EzGreedy.decay is {self.decay} with duration={self.duration!r}; the "
        "exponential law needs it and the others have none."
      )
    if self.decay is not None and not 0.0 <= self.decay < 1.0:
      raise ValueError(f"EzGreedy.decay is {self.decay}; use a value in [0, 1).")
    if not 0.0 <= self.mu < float("inf"):
      raise ValueError(
        f"EzGreedy.mu is {self.mu}; a zeta exponent is finite and at least 0."
      )
    if self.cap < 1:
      raise ValueError(
        f"EzGreedy.cap is {self.cap} agent steps, but a duration is at least 1."
      )

  def init(
    self,
    key: jax.Array,
    num_members: int,
    num_actions: int,
    place: types.Place = types.ALONE,
  ) -> "EzGreedyState":
    del key, num_members, num_actions
    power = schedules.ladder_power(self.ladder, place.actor_id, place.num_actors)
    return EzGreedyState(repeats.init_ez_state(), power)

  def begin_episode(
    self, key: jax.Array, state: "EzGreedyState", env_steps: jax.Array
  ) -> "EzGreedyState":
    del key, env_steps
    return state._replace(repeat=repeats.init_ez_state())

  def select(
    self, key: jax.Array, q: jax.Array, state: "EzGreedyState", env_steps: jax.Array
  ) -> _Selection:
    chex.assert_rank(q, 2)
    epsilon = schedules.linear_epsilon(
      self.epsilon, self.final_epsilon, self.decay_steps, env_steps
    )
    action, prob, repeat = repeats.ez_step(
      key, q, jnp.power(epsilon, state.power), state.repeat, self.sample_duration
    )
    return action, prob, state._replace(repeat=repeat)

  def sample_duration(self, key: jax.Array) -> jax.Array:
    """Draws how long a repeat lasts (int32 `[]`, agent steps)."""
    if self.duration == "zeta":
      return durations.sample_zeta(key, self.mu, self.cap)
    if self.decay is not None:
      return durations.sample_exponential(key, self.decay, self.cap)
    return durations.sample_uniform(key, self.cap)


@dataclasses.dataclass(frozen=True)
class Boltzmann(Stateless):
  """Draws from the softmax of the mean over the members, over a temperature."""

  temperature: float  # In units of value; positive.

  def __post_init__(self):
    if not self.temperature > 0.0:
      raise ValueError(
        f"Boltzmann.temperature is {self.temperature}; it must be positive (use the "
        "Greedy rule for its limit at 0)."
      )

  def select(
    self, key: jax.Array, q: jax.Array, state: types.State, env_steps: jax.Array
  ) -> _Selection:
    del env_steps
    chex.assert_rank(q, 2)
    action = selection.boltzmann(key, q, self.temperature)
    logits = selection.boltzmann_logits(q, self.temperature)
    return action, jnp.exp(logits[action]).astype(jnp.float32), state
