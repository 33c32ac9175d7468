"""The interface of exploration rules, by which agents choose actions."""

from typing import Any, NamedTuple, Protocol, runtime_checkable

import chex
import jax

# A pytree of arrays of fixed shapes.
State = Any


class ActorIndex(NamedTuple):
  """The index of an actor among all actors; rules may treat actors differently.

  Attributes:
    actor_id: j, from 0; int.
    num_actors: J, int.
  """

  actor_id: chex.Numeric
  num_actors: chex.Numeric


# The index of a single actor.
SINGLE_ACTOR = ActorIndex(0, 1)


@runtime_checkable
class Rule(Protocol):
  """Chooses actions from the action values of an ensemble (a plain agent has K = 1).

  Every method is pure and can be jitted and vmapped. An actor calls `begin_episode`
  at each FIRST timestep, `observe` at each MID and LAST one, and then `select`.
  """

  def init(
    self,
    key: jax.Array,
    num_members: int,
    num_actions: int,
    actor: ActorIndex = SINGLE_ACTOR,
  ) -> State:
    """The state before the first episode, of fixed shapes.

    Args:
      key: a random key.
      num_members: K, how many members the ensemble has.
      num_actions: A.
      actor: which of the actors this is.

    Raises:
      ValueError: if the rule cannot work with that many members.
    """

  def begin_episode(self, key: jax.Array, state: State, env_steps: jax.Array) -> State:
    """The state at an episode's start.

    Args:
      key: a random key.
      state: the state at the end of the last episode.
      env_steps: int32 scalar, environment steps taken so far by all actors.
    """

  def select(
    self, key: jax.Array, q: jax.Array, state: State, env_steps: jax.Array
  ) -> tuple[jax.Array, jax.Array, State]:
    """Chooses an action.

    Args:
      key: a random key.
      q: `[K, A]`, each member's action values.
      state: the rule's state.
      env_steps: int32 scalar, environment steps taken so far by all actors.

    Returns:
      The action (int32 `[]`), the probability with which it was drawn given the
      rule's state (float32 `[]`), and the state.
    """

  def observe(self, reward: jax.Array, state: State) -> State:
    """Takes the reward (float32 `[]`) of the last step."""

  def policy(self, state: State) -> jax.Array:
    """The index of the member being followed (int32 `[]`); 0 if there is none."""
