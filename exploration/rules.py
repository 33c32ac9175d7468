"""Building blocks of rules: score × dither × persistence (see `types.Rule`).

A *score* ranks the actions (`scores`, `following`); as a rule, it takes the best. A
*dither* (`dithering`) wraps a score and sometimes acts at random, and *persistence*
(`persistence`) wraps either and repeats random actions: `EzGreedy(0.1, of=Thompson())`.
A rule is a frozen dataclass of its parameters, which are checked when it is made; its
state is a pytree. Ties between actions are broken uniformly at random, unless a rule
says otherwise (`Greedy.ties`).
"""

import abc
from typing import Any

import jax
import jax.numpy as jnp

from explorax import ranges
from explorax.exploration import selection, types
from explorax.losses import checks

Selection = tuple[jax.Array, jax.Array, types.State]


class Base(ranges.Checked):
  """The methods of `types.Rule` other than `select`, for a rule without state."""

  def init(
    self,
    key: jax.Array,
    num_members: int,
    num_actions: int,
    actor: types.ActorIndex = types.SINGLE_ACTOR,
  ) -> types.State:
    del key, num_members, num_actions, actor
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


class Policy(Base, abc.ABC):
  """A rule that returns the probability of each action, so that others can wrap it."""

  @abc.abstractmethod
  def probs(
    self, key: jax.Array, q: jax.Array, state: Any, env_steps: jax.Array
  ) -> tuple[jax.Array, Any]:
    """The probability of each action in this step.

    Args:
      key: for draws other than the action. The action is drawn with this key itself, so
        derive other keys with `jax.random.fold_in`.
      q: `[K, A]`, each member's action values.
      state: the rule's state.
      env_steps: int32 scalar, environment steps taken so far by all actors.

    Returns:
      float32 `[A]` with sum 1, and the state after the step.
    """

  def select(
    self, key: jax.Array, q: jax.Array, state: types.State, env_steps: jax.Array
  ) -> Selection:
    check_members(self, q)
    probs, state = self.probs(key, q, state, env_steps)
    choice = selection.draw(key, probs)
    return choice.action, choice.prob, state


class Score(Policy):
  """A rule that ranks the actions, and takes the best."""

  ties = "random"  # See `selection.greedy_probs`.

  @abc.abstractmethod
  def score(
    self, key: jax.Array, q: jax.Array, state: Any, env_steps: jax.Array
  ) -> tuple[jax.Array, Any]:
    """The actions' scores, `[A]`, and the state after the step; see `probs`."""

  def probs(
    self, key: jax.Array, q: jax.Array, state: Any, env_steps: jax.Array
  ) -> tuple[jax.Array, Any]:
    scores, state = self.score(key, q, state, env_steps)
    return selection.greedy_probs(scores, self.ties), state


class Wrapper(Base):
  """A rule that wraps another rule, `of`, and shares its state."""

  of: Policy

  def init(
    self,
    key: jax.Array,
    num_members: int,
    num_actions: int,
    actor: types.ActorIndex = types.SINGLE_ACTOR,
  ) -> types.State:
    return self.of.init(key, num_members, num_actions, actor)

  def begin_episode(
    self, key: jax.Array, state: types.State, env_steps: jax.Array
  ) -> types.State:
    return self.of.begin_episode(key, state, env_steps)

  def observe(self, reward: jax.Array, state: types.State) -> types.State:
    return self.of.observe(reward, state)

  def policy(self, state: types.State) -> jax.Array:
    return self.of.policy(state)


def check_members(rule: Any, q: jax.Array) -> None:
  """Refuses a q that is not `[K, A]`, with the rule's name in the error."""
  checks.check(f"{type(rule).__name__}.select", q=(q, "float [K, A]"))
