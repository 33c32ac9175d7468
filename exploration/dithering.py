"""Random exploration: ε-greedy and Boltzmann policies, on any score."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from explorax import ranges
from explorax.exploration import rules, schedules, scores, selection, types


class EpsilonState(NamedTuple):
  """The state of the wrapped rule, and the power of ε for this actor."""

  of: Any
  power: jax.Array


class Epsilon(rules.Wrapper):
  """A rule that explores with probability ε, wrapped around another.

  With a ladder, actor j of J uses ε to the power `1 + ladder · j / (J − 1)`, and a
  single actor uses ε. Ape-X and R2D2 have ε = 0.4 and a ladder of 7 (Kapturowski et
  al., 2019), so that few actors explore much and most explore little. The state has at
  least the fields of `EpsilonState`.
  """

  epsilon: schedules.Probability
  ladder: ranges.NonNegativeFloat

  def init(
    self,
    key: jax.Array,
    num_members: int,
    num_actions: int,
    actor: types.ActorIndex = types.SINGLE_ACTOR,
  ) -> Any:
    last = jnp.maximum(jnp.asarray(actor.num_actors, jnp.float32) - 1.0, 1.0)
    power = 1.0 + self.ladder * jnp.asarray(actor.actor_id, jnp.float32) / last
    return EpsilonState(super().init(key, num_members, num_actions, actor), power)

  def begin_episode(self, key: jax.Array, state: Any, env_steps: jax.Array) -> Any:
    return state._replace(of=super().begin_episode(key, state.of, env_steps))

  def observe(self, reward: jax.Array, state: Any) -> Any:
    return state._replace(of=super().observe(reward, state.of))

  def policy(self, state: Any) -> jax.Array:
    return super().policy(state.of)

  def actor_epsilon(self, state: Any, env_steps: jax.Array) -> jax.Array:
    """ε of this actor, float32 `[]`."""
    return jnp.power(schedules.at(self.epsilon, env_steps), state.power)


@dataclasses.dataclass(frozen=True)
class EpsilonGreedy(Epsilon, rules.Policy):
  """With probability ε a uniform action, else the wrapped rule's action.

  The default rule is greedy on the mean over the members.
  """

  epsilon: schedules.Probability  # Of a uniform action.
  of: rules.Policy = dataclasses.field(default_factory=scores.Greedy)
  ladder: ranges.NonNegativeFloat = 0.0  # 0: one ε for all actors; R2D2's 7.

  def probs(
    self, key: jax.Array, q: jax.Array, state: EpsilonState, env_steps: jax.Array
  ) -> tuple[jax.Array, EpsilonState]:
    probs, inner = self.of.probs(key, q, state.of, env_steps)
    mixed = selection.mix_uniform(probs, self.actor_epsilon(state, env_steps))
    return mixed, state._replace(of=inner)

  def select(
    self, key: jax.Array, q: jax.Array, state: EpsilonState, env_steps: jax.Array
  ) -> rules.Selection:
    rules.check_members(self, q)
    probs, inner = self.of.probs(key, q, state.of, env_steps)
    choice = selection.draw(key, probs, self.actor_epsilon(state, env_steps))
    return choice.action, choice.prob, state._replace(of=inner)


@dataclasses.dataclass(frozen=True)
class Boltzmann(rules.Wrapper, rules.Policy):
  """Draws from the softmax of a score over a temperature.

  The default score is the mean over the members.
  """

  temperature: schedules.Positive  # In units of the score.
  of: rules.Score = dataclasses.field(default_factory=scores.Greedy)

  def probs(
    self, key: jax.Array, q: jax.Array, state: Any, env_steps: jax.Array
  ) -> tuple[jax.Array, Any]:
    score, state = self.of.score(key, q, state, env_steps)
    temperature = schedules.at(self.temperature, env_steps)
    return selection.boltzmann_probs(score, temperature), state
