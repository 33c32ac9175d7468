"""What rules are made of: score × dither × persistence (see `types.Rule` for the seam).

A *score* ranks the actions (`scores`, `following`); by itself, it is a rule that takes
the best. A *dither* (`dithering`) wraps a score and acts at random at times, and
*persistence* (`persistence`) wraps either and repeats what was drawn at random:
`EzGreedy(0.1, of=Thompson())`.

A rule is a frozen dataclass of its parameters, checked when it is made; its state is a
pytree. Ties between actions are broken at random, uniformly, unless a rule says
otherwise (`Greedy.ties`).
"""

import abc
from typing import Any

import jax
import jax.numpy as jnp

from explorax.exploration import selection, types
from explorax.losses import checks

Selection = tuple[jax.Array, jax.Array, types.State]


class Base:
  """`types.Rule`'s methods beside `select`, for a rule without a memory."""

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
  """A rule that knows how likely each action is, so that another rule can wrap it."""

  @abc.abstractmethod
  def probs(
    self, key: jax.Array, q: jax.Array, state: Any, env_steps: jax.Array
  ) -> tuple[jax.Array, Any]:
    """How likely each action is in this step.

    Args:
      key: for what is drawn besides the action. The action itself is drawn with this
        key; use another, from `jax.random.fold_in`.
      q: `[K, A]`, each member's action values.
      state: the rule's state.
      env_steps: int32 scalar, environment steps taken so far by all actors.

    Returns:
      float32 `[A]`, which adds up to 1, and the state after the step.
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

  @abc.abstractmethod
  def score(
    self, key: jax.Array, q: jax.Array, state: Any, env_steps: jax.Array
  ) -> tuple[jax.Array, Any]:
    """The actions' scores, `[A]`, and the state after the step; see `probs`."""

  def probs(
    self, key: jax.Array, q: jax.Array, state: Any, env_steps: jax.Array
  ) -> tuple[jax.Array, Any]:
    scores, state = self.score(key, q, state, env_steps)
    return selection.greedy_probs(scores), state


class Wrapper(Base):
  """A rule that wraps another, `of`, and has its state."""

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
  """Refuses a q that is not `[K, A]`, in the name of the rule."""
  checks.check(f"{type(rule).__name__}.select", q=(q, "float [K, A]"))


def check_of(rule: Any, kind: Any) -> None:
  """Refuses to wrap what is no `kind`.

  Raises:
    ValueError: naming both rules.
  """
  if not isinstance(rule.of, kind):
    raise ValueError(
      f"{type(rule).__name__}.of is {rule.of}, which has no {kind.__name__.lower()}; "
      f"use a rules.{kind.__name__}."
    )
