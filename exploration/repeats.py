"""Temporally extended ε-greedy: an exploratory action is repeated for a while."""

from collections.abc import Callable
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

from explorax.exploration import durations, selection


class EzState(NamedTuple):
  """The repeat under way.

  Attributes:
    remaining: int32 `[]`, for how many more agent steps `action` is taken.
    action: int32 `[]`, the action being repeated.
  """

  remaining: jax.Array
  action: jax.Array


def init_ez_state() -> EzState:
  """No repeat under way: the state at an episode's start."""
  return EzState(jnp.zeros((), jnp.int32), jnp.zeros((), jnp.int32))


def _default_duration(key: jax.Array) -> jax.Array:
  return durations.sample_zeta(key, mu=2.0, cap=10_000)


def ez_step(
  key: jax.Array,
  q: jax.Array,
  epsilon: chex.Numeric,
  state: EzState,
  sample_duration: Callable[[jax.Array], jax.Array],
) -> tuple[jax.Array, jax.Array, EzState]:
  """As `ez_greedy`, with the action's probability between the action and the state."""
  choice = selection.dither(key, selection.mean_over_members(q), epsilon)
  # Folded in, not split off: with durations of 1 the actions are ε-greedy's own.
  duration = sample_duration(jax.random.fold_in(key, 1))
  repeating = state.remaining > 0
  action = jnp.where(repeating, state.action, choice.action)
  started = jnp.where(choice.explored, duration - 1, 0)
  remaining = jnp.where(repeating, state.remaining - 1, started)
  prob = jnp.where(repeating, 1.0, choice.prob)
  return action, prob, EzState(remaining.astype(jnp.int32), action)


def ez_greedy(
  key: jax.Array,
  q: jax.Array,
  epsilon: chex.Numeric,
  state: EzState,
  sample_duration: Callable[[jax.Array], jax.Array] = _default_duration,
) -> tuple[jax.Array, EzState]:
  """Greedy, but with probability ε starts to repeat a random action for a while.

  While a repeat lasts its action is taken. Otherwise, with probability ε, a
  duration n is drawn and a uniform action, which is taken now and n − 1 times more;
  else the greedy action on the mean over the members is taken, ties at random.
  n = 1 is exactly `epsilon_greedy`: the same keys give the same actions.

  Paper "Temporally-extended ε-greedy exploration" (Dabney et al., 2021), section 4.

  Args:
    key: a random key.
    q: `[K, A]` or `[A]`, float.
    epsilon: scalar in [0, 1], the probability of starting a repeat.
    state: from `init_ez_state` at an episode's start, else from the last step.
    sample_duration: (key) → int32 `[]`, agent steps, at least 1; by default the
      paper's zeta law with an exponent of 2 and a cap of 10 000.

  Returns:
    The action (int32 `[]`) and the state.
  """
  action, _, state = ez_step(key, q, epsilon, state, sample_duration)
  return action, state
