"""Temporally extended ε-greedy: exploratory actions are repeated for several steps."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp

from explorax import ranges
from explorax.exploration import (
  dithering,
  durations,
  rules,
  schedules,
  scores,
  selection,
  types,
)

# Folded into a step's key to draw the duration.
_DURATION = 1


class EzState(NamedTuple):
  """The current repeat.

  Attributes:
    remaining: int32 `[]`, for how many more agent steps `action` is taken.
    action: int32 `[]`, the action being repeated.
  """

  remaining: jax.Array
  action: jax.Array


def init_ez_state() -> EzState:
  """No repeat: the state at an episode's start."""
  return EzState(jnp.zeros((), jnp.int32), jnp.zeros((), jnp.int32))


def _ez_step(
  key: jax.Array,
  probs: jax.Array,
  epsilon: chex.Numeric,
  state: EzState,
  sample_duration: Callable[[jax.Array], jax.Array],
) -> tuple[jax.Array, jax.Array, EzState]:
  """A step of `ez_greedy` whose policy is `probs`: (action, its probability, state)."""
  choice = selection.draw(key, probs, epsilon)
  # Folded in, not split: with durations of 1 the actions are those of ε-greedy.
  duration = sample_duration(jax.random.fold_in(key, _DURATION))
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
  sample_duration: Callable[[jax.Array], jax.Array] | None = None,
) -> tuple[jax.Array, EzState]:
  """Greedy, but with probability ε starts to repeat a random action.

  During a repeat, its action is taken. Otherwise, with probability ε, a duration n and
  a uniform action are drawn; the action is taken now and n − 1 more times. Otherwise
  the greedy action is taken, ties at random. With n = 1 this is `epsilon_greedy`: the
  same keys give the same actions.

  Paper "Temporally-extended ε-greedy exploration" (Dabney et al., 2021), section 4.

  Args:
    key: a random key.
    q: `[A]`, float; of an ensemble, the mean over its members.
    epsilon: scalar in [0, 1], the probability of starting a repeat.
    state: from `init_ez_state` at an episode's start, else from the last step.
    sample_duration: (key) → int32 `[]`, agent steps, at least 1, such as
      `UniformDuration(10)`; by default the paper's `ZetaDuration()`.

  Returns:
    The action (int32 `[]`) and the state.
  """
  selection.check_epsilon("ez_greedy", q, epsilon)
  probs = selection.greedy_probs(q)
  sample = sample_duration or durations.ZetaDuration()
  action, _, state = _ez_step(key, probs, epsilon, state, sample)
  return action, state


class EzGreedyState(NamedTuple):
  """The state of the wrapped rule, the power of ε, and the current repeat."""

  of: Any
  power: jax.Array
  repeat: EzState


@dataclasses.dataclass(frozen=True)
class EzGreedy(dithering.Epsilon):
  """With probability ε starts to repeat a uniform action, else follows another rule.

  The default rule is greedy on the mean over the members (Dabney et al., 2021; see
  `ez_greedy`). The drawn action is taken at once, as the first step of the duration; a
  repeat ends with its episode. The wrapped rule's state is updated in every step, also
  during repeats.
  """

  epsilon: schedules.Probability  # Of starting a repeat.
  of: rules.Policy = dataclasses.field(default_factory=scores.Greedy)
  duration: durations.Duration = dataclasses.field(
    default_factory=durations.ZetaDuration
  )
  ladder: ranges.NonNegativeFloat = 0.0  # As in EpsilonGreedy.

  def init(
    self,
    key: jax.Array,
    num_members: int,
    num_actions: int,
    actor: types.ActorIndex = types.SINGLE_ACTOR,
  ) -> EzGreedyState:
    inner = super().init(key, num_members, num_actions, actor)
    return EzGreedyState(inner.of, inner.power, init_ez_state())

  def begin_episode(
    self, key: jax.Array, state: EzGreedyState, env_steps: jax.Array
  ) -> EzGreedyState:
    begun = super().begin_episode(key, state, env_steps)
    return begun._replace(repeat=init_ez_state())

  def select(
    self, key: jax.Array, q: jax.Array, state: EzGreedyState, env_steps: jax.Array
  ) -> rules.Selection:
    rules.check_members(self, q)
    probs, inner = self.of.probs(key, q, state.of, env_steps)
    epsilon = self.actor_epsilon(state, env_steps)
    action, prob, repeat = _ez_step(key, probs, epsilon, state.repeat, self.duration)
    return action, prob, state._replace(of=inner, repeat=repeat)
