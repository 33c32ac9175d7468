"""Choosing an action from action values: dithering, confidence bounds and votes.

Every function takes one state's action values: `[K, A]` from an ensemble's K
members, or `[A]` where the mean over the members is all that counts. Batches are
`jax.vmap`'s business. Nothing here carries a gradient.
"""

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp


class Choice(NamedTuple):
  """An action and how it came about.

  Attributes:
    action: int32 `[]`.
    prob: float32 `[]`, the probability with which the action was drawn.
    explored: bool `[]`, whether it was drawn uniformly, whatever its value.
  """

  action: jax.Array
  prob: jax.Array
  explored: jax.Array


def mean_over_members(q: jax.Array) -> jax.Array:
  """`[K, A]` → `[A]`, the mean over the members; `[A]` stays what it is."""
  chex.assert_rank(q, {1, 2})
  chex.assert_type(q, float)
  return jnp.mean(q, axis=0) if q.ndim == 2 else q


def dither(key: jax.Array, preferences: jax.Array, epsilon: chex.Numeric) -> Choice:
  """ε-greedy on `preferences`, with what is needed to correct for it later.

  With probability ε the action is uniform over all A; else it is uniform over the
  actions that share the greatest preference. Its probability is thus
  `ε/A + (1 − ε)·1[a is greatest]/ties`.

  Args:
    key: a random key.
    preferences: `[A]`, of any numeric type: values, bounds or votes.
    epsilon: scalar in [0, 1].
  """
  chex.assert_rank(preferences, 1)
  preferences = jax.lax.stop_gradient(preferences)
  num_actions = preferences.shape[0]
  # One draw of three numbers costs a third of three draws, and this runs each step.
  explore_draw, action_draw, tie_draw = jax.random.uniform(key, (3,))
  # A compiler may compute preferences again wherever they are read, and round them
  # otherwise there: compared with their own maximum they need not be equal to it. A
  # sort is computed once, and is stable, so that ties stay in the actions' order.
  places = jnp.arange(num_actions)
  ordered, order = jax.lax.sort((preferences, places), num_keys=1)
  num_tied = jnp.sum(ordered == ordered[-1])
  first_tied = num_actions - num_tied
  # The greedy action is the tied one of a uniformly drawn rank.
  rank = jnp.floor(tie_draw * num_tied).astype(jnp.int32)
  greedy_action = order[first_tied + rank]
  random_action = jnp.floor(action_draw * num_actions).astype(jnp.int32)
  explored = explore_draw < epsilon
  action = jnp.where(explored, random_action, greedy_action).astype(jnp.int32)
  is_greedy = jnp.any((order == action) & (places >= first_tied))
  prob = epsilon / num_actions + (1.0 - epsilon) * is_greedy / num_tied
  return Choice(action, jnp.asarray(prob, jnp.float32), explored)


def epsilon_greedy(key: jax.Array, q: jax.Array, epsilon: chex.Numeric) -> jax.Array:
  """Uniform with probability ε, else greedy on the mean over the members.

  Ties are broken at random, uniformly.

  Args:
    key: a random key.
    q: `[K, A]` or `[A]`, float.
    epsilon: scalar in [0, 1].

  Returns:
    The action, int32 `[]`.
  """
  return dither(key, mean_over_members(q), epsilon).action


def boltzmann_logits(q: jax.Array, temperature: chex.Numeric) -> jax.Array:
  """`log softmax(q̄ / T)`, `[A]`, of the mean q̄ over the members."""
  q = jax.lax.stop_gradient(mean_over_members(q))
  # The greatest value goes first: divided, great values would lose their differences.
  return jax.nn.log_softmax((q - jnp.max(q)) / temperature)


def boltzmann(key: jax.Array, q: jax.Array, temperature: chex.Numeric) -> jax.Array:
  """Draws an action from `softmax(q̄ / T)`, q̄ being the mean over the members.

  Args:
    key: a random key.
    q: `[K, A]` or `[A]`, float.
    temperature: T, positive scalar, in units of value.

  Returns:
    The action, int32 `[]`.
  """
  logits = boltzmann_logits(q, temperature)
  return jax.random.categorical(key, logits).astype(jnp.int32)


def upper_confidence_bounds(
  q: jax.Array, scale: chex.Numeric, ddof: int = 0
) -> jax.Array:
  """`mean_k q_k(a) + scale · std_k q_k(a)`, `[A]` (see `ucb`)."""
  chex.assert_rank(q, 2)
  chex.assert_type(q, float)
  return jnp.mean(q, axis=0) + scale * member_std(q, ddof)


def member_std(q: jax.Array, ddof: int) -> jax.Array:
  """The members' standard deviation, `[K, A]` → `[A]`, K − ddof in the denominator."""
  chex.assert_rank(q, 2)
  if q.shape[0] <= ddof:
    raise ValueError(
      f"a standard deviation with ddof={ddof} needs at least {ddof + 1} members, but "
      f"q has {q.shape[0]}; use a larger ensemble or ddof=0."
    )
  return jnp.std(q, axis=0, ddof=ddof)


def ucb(
  q: jax.Array, scale: chex.Numeric, *, ddof: int = 0, key: jax.Array | None = None
) -> jax.Array:
  """The action of the greatest upper confidence bound over an ensemble.

  `argmax_a mean_k q_k(a) + scale · std_k q_k(a)`: paper "UCB exploration via
  Q-ensembles" (Chen et al., 2017), algorithm 2, where scale is λ = 0.1.

  Args:
    q: `[K, A]`, float.
    scale: scalar; 0 is greedy on the mean.
    ddof: 0 for the population's standard deviation (the paper does not say which),
      1 for the sample's.
    key: breaks ties at random, uniformly; without one the lowest index wins.

  Returns:
    The action, int32 `[]`.

  Raises:
    ValueError: if there are too few members for `ddof`.
  """
  bounds = upper_confidence_bounds(q, scale, ddof)
  if key is None:
    return jnp.argmax(bounds).astype(jnp.int32)
  return dither(key, bounds, 0.0).action


def count_votes(q: jax.Array) -> jax.Array:
  """How many members each action is the greedy one of: `[K, A]` → int32 `[A]`.

  A member whose own best actions are tied votes for the one of the lowest index.
  """
  chex.assert_rank(q, 2)
  chex.assert_type(q, float)
  ballots = jax.nn.one_hot(jnp.argmax(q, axis=1), q.shape[1], dtype=jnp.int32)
  return jnp.sum(ballots, axis=0)


def majority_vote(key: jax.Array, q: jax.Array) -> jax.Array:
  """The action that most members think best; tied votes are broken at random.

  Paper "UCB exploration via Q-ensembles" (Chen et al., 2017), algorithm 1. The
  paper does not say how ties are broken; with as few members as ten they are common.

  Args:
    key: a random key.
    q: `[K, A]`, float.

  Returns:
    The action, int32 `[]`.
  """
  return dither(key, count_votes(q), 0.0).action
