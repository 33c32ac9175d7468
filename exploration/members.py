"""Which member of an ensemble to follow: Thompson sampling, and a bandit."""

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

from explorax.exploration import selection


class ThompsonState(NamedTuple):
  """The member being followed.

  Attributes:
    member: int32 `[]`.
    steps: int32 `[]`, agent steps taken with it.
  """

  member: jax.Array
  steps: jax.Array


def init_thompson(key: jax.Array, num_members: chex.Numeric) -> ThompsonState:
  """Draws a member uniformly: the state at an episode's start."""
  member = jax.random.randint(key, (), 0, num_members, jnp.int32)
  return ThompsonState(member, jnp.zeros((), jnp.int32))


def redraw_member(
  key: jax.Array, state: ThompsonState, num_members: int, period_steps: int | None
) -> ThompsonState:
  """Counts a step, first drawing a new member if `period_steps` have been taken."""
  if period_steps is None:
    return state._replace(steps=state.steps + 1)
  drawn = init_thompson(key, num_members)
  due = state.steps >= period_steps
  member = jnp.where(due, drawn.member, state.member)
  return ThompsonState(member, jnp.where(due, 0, state.steps) + 1)


def thompson(
  key: jax.Array,
  q: jax.Array,
  state: ThompsonState,
  period_steps: int | None = None,
) -> tuple[jax.Array, ThompsonState]:
  """Follows one member greedily, ties at random, until another is drawn.

  A member drawn uniformly at each episode's start is Bootstrapped DQN (Osband et
  al., 2016); a new one every `period_steps` is what "Temporal Difference
  Uncertainties" (Flennerhag et al., 2020) does on Atari, with 100 agent steps.

  Args:
    key: a random key.
    q: `[K, A]`, float.
    state: from `init_thompson` at an episode's start, else from the last step.
    period_steps: agent steps after which a new member is drawn; None for never
      within an episode.

  Returns:
    The action (int32 `[]`) and the state.
  """
  chex.assert_rank(q, 2)
  chex.assert_type(q, float)
  key_member, key_action = jax.random.split(key)
  state = redraw_member(key_member, state, q.shape[0], period_steps)
  return selection.dither(key_action, q[state.member], 0.0).action, state


class Ucb1State(NamedTuple):
  """What a bandit knows of its arms.

  Attributes:
    values: float32 `[K]`, V_k, the mean reward per environment step under arm k.
    counts: int32 `[K]`, n(k), environment steps taken under arm k.
  """

  values: jax.Array
  counts: jax.Array


def init_ucb1(num_arms: int) -> Ucb1State:
  """No arm tried yet."""
  return Ucb1State(
    jnp.zeros((num_arms,), jnp.float32), jnp.zeros((num_arms,), jnp.int32)
  )


def ucb1(key: jax.Array, state: Ucb1State, scale: chex.Numeric) -> jax.Array:
  """Chooses the arm to follow: `argmax_k V_k + scale · sqrt(log n / n(k))`.

  n is `Σ_k n(k)`. Arms not tried yet come first; ties are broken at random. "Temporal
  Difference Uncertainties" (Flennerhag et al., 2020), appendix D.2: an arm is a
  member, followed for an episode, and scale is η = 8.

  Args:
    key: a random key.
    state: the arms' statistics.
    scale: scalar, in units of reward per environment step.

  Returns:
    The arm, int32 `[]`.
  """
  counts = state.counts.astype(jnp.float32)
  total = jnp.maximum(jnp.sum(counts), 1.0)
  width = jnp.sqrt(jnp.log(total) / jnp.maximum(counts, 1.0))
  bounds = jnp.where(state.counts == 0, jnp.inf, state.values + scale * width)
  return selection.dither(key, bounds, 0.0).action


def update_ucb1(state: Ucb1State, arm: jax.Array, reward: jax.Array) -> Ucb1State:
  """Takes in the reward (float32 `[]`) of an environment step under `arm`."""
  counts = state.counts.at[arm].add(1)
  step = (reward - state.values[arm]) / counts[arm]
  return Ucb1State(state.values.at[arm].add(step), counts)
