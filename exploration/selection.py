"""Choosing an action from action values: dithering, confidence bounds and votes.

Every function takes one state's action values: `[A]` or, for ensembles, `[K, A]` of K
members; use `jax.vmap` for batches. No gradient passes. The rules (`rules.Rule`) use
the same parts: scores of actions, their probabilities (`greedy_probs`,
`boltzmann_probs`), and `draw`.
"""

from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from explorax.exploration import sums
from explorax.losses import checks

TIES = ("random", "first")  # How the greedy policy breaks ties.


class Choice(NamedTuple):
  """An action and how it was chosen.

  Attributes:
    action: int32 `[]`.
    prob: float32 `[]`, the probability with which the action was drawn.
    explored: bool `[]`, whether it was drawn uniformly.
  """

  action: jax.Array
  prob: jax.Array
  explored: jax.Array


@checks.arguments(probs="float [A]", epsilon="number []")
def draw(key: jax.Array, probs: jax.Array, epsilon: chex.Numeric = 0.0) -> Choice:
  """Draws from `probs`, or with probability ε uniformly from all A actions.

  Action a is thus drawn with the probability `ε/A + (1 − ε) probs[a]`.

  Args:
    key: a random key.
    probs: `[A]`, float.
    epsilon: scalar in [0, 1]; values outside are clipped. If it is NaN, the action's
      probability is NaN.
  """
  probs = jax.lax.stop_gradient(probs)
  num_actions = probs.shape[0]
  # One draw of three numbers costs a third of three draws, and runs in each step.
  explore_draw, uniform_draw, policy_draw = jax.random.uniform(key, (3,), jnp.float32)
  uniform_action = jnp.floor(uniform_draw * num_actions).astype(jnp.int32)
  cumulative = sums.cumulative(probs)
  policy_action = jnp.sum(cumulative <= policy_draw * cumulative[-1])
  # Rounding must not select a trailing action of probability 0.
  last = jnp.max(jnp.where(probs > 0.0, jnp.arange(num_actions), 0))
  explored = explore_draw < epsilon
  action = jnp.where(explored, uniform_action, jnp.minimum(policy_action, last))
  prob = mix_uniform(probs, epsilon)[action]
  return Choice(action.astype(jnp.int32), prob, explored)


def mix_uniform(probs: jax.Array, epsilon: chex.Numeric) -> jax.Array:
  """`ε/A + (1 − ε) probs`, float32 `[A]`."""
  epsilon = jnp.clip(epsilon, 0.0, 1.0)
  mixed = epsilon / probs.shape[0] + (1.0 - epsilon) * probs
  return jnp.asarray(mixed, jnp.float32)


@checks.arguments(scores="number [A]")
def greedy_probs(scores: jax.Array, ties: str = "random") -> jax.Array:
  """The greedy policy on scores `[A]` of any numeric type.

  Args:
    scores: `[A]`.
    ties: of `TIES`. "random": uniform over the greatest, `1[a is greatest] / ties`;
      "first": the one of the lowest index, like `arg max`.

  Returns:
    float32 `[A]`; NaN if a score is.
  """
  scores = jax.lax.stop_gradient(jnp.asarray(scores))
  is_action = jnp.eye(scores.shape[0], dtype=bool)
  if ties == "first":
    return is_action[jnp.argmax(scores)].astype(jnp.float32)
  # Not `scores == max(scores)`: a compiler may compute scores again where they are
  # used, and round them differently. Each row of this reduction, that of one action,
  # compares only scores that it has computed itself.
  is_float = jnp.issubdtype(scores.dtype, jnp.floating)
  least = jnp.array(-jnp.inf if is_float else jnp.iinfo(scores.dtype).min, scores.dtype)
  rows = jnp.broadcast_to(scores, is_action.shape), is_action
  _, is_greatest = jax.lax.reduce(rows, (least, np.False_), _greater, (1,))
  probs = is_greatest.astype(jnp.float32)
  return probs / jnp.sum(probs)


def _greater(a: Any, b: Any) -> Any:
  """(The greater score, whether the action is among those that have it)."""
  (x, in_a), (y, in_b) = a, b
  return jnp.maximum(x, y), (in_a & (x >= y)) | (in_b & (y >= x))


@checks.arguments(scores="number [A]", temperature="number []")
def boltzmann_probs(scores: jax.Array, temperature: chex.Numeric) -> jax.Array:
  """`softmax(scores / T)`, float32 `[A]`, and NaN unless T is positive."""
  temperature = jnp.where(temperature > 0, temperature, jnp.nan)
  scores = jax.lax.stop_gradient(scores)
  # Subtract the maximum first: dividing large scores would lose their differences.
  probs = jax.nn.softmax((scores - jnp.max(scores)) / temperature)
  return jnp.asarray(probs, jnp.float32)


@checks.arguments(q="float [K, A]")
def mean_over_members(q: jax.Array) -> jax.Array:
  """`[K, A]` → `[A]`, the mean over the members."""
  return jnp.mean(q, axis=0)


@checks.arguments(q="float [K, A]")
def member_std(q: jax.Array, ddof: int = 0) -> jax.Array:
  """The members' standard deviation, `[K, A]` → `[A]`, with denominator K − ddof."""
  if q.shape[0] <= ddof:
    raise ValueError(
      f"a standard deviation with ddof={ddof} needs at least {ddof + 1} members, but "
      f"q has {q.shape[0]}; use a larger ensemble or ddof=0."
    )
  return jnp.std(q, axis=0, ddof=ddof)


@checks.arguments(q="float [K, A]")
def count_votes(q: jax.Array) -> jax.Array:
  """The number of members for which each action is greedy: `[K, A]` → int32 `[A]`.

  A member with tied actions votes for the one of the lowest index.
  """
  ballots = jax.nn.one_hot(jnp.argmax(q, axis=1), q.shape[1], dtype=jnp.int32)
  return jnp.sum(ballots, axis=0)


def check_epsilon(function: str, q: jax.Array, epsilon: chex.Numeric) -> None:
  """Refuses a q that is not `[A]`, and an ε outside [0, 1] where it can be seen."""
  checks.check(function, q=(q, "float [A]"), epsilon=(epsilon, "number []"))
  checks.check_in_range(function, "epsilon", epsilon, 0, 1)


def epsilon_greedy(key: jax.Array, q: jax.Array, epsilon: chex.Numeric) -> jax.Array:
  """Uniform with probability ε, else greedy.

  Ties are broken at random, uniformly.

  Args:
    key: a random key.
    q: `[A]`, float; of an ensemble, the mean over its members.
    epsilon: scalar in [0, 1]. A value outside is refused, unless it is traced: then it
      is clipped, and NaN counts as 0.

  Returns:
    The action, int32 `[]`.
  """
  check_epsilon("epsilon_greedy", q, epsilon)
  return draw(key, greedy_probs(q), epsilon).action


@checks.arguments(q="float [A]", temperature="number []")
def boltzmann(key: jax.Array, q: jax.Array, temperature: chex.Numeric) -> jax.Array:
  """Draws an action from `softmax(q / T)`.

  Args:
    key: a random key.
    q: `[A]`, float; of an ensemble, the mean over its members.
    temperature: T, positive scalar, in units of value. Other values are refused, unless
      they are traced: then the result is action 0.

  Returns:
    The action, int32 `[]`.
  """
  checks.check_positive("boltzmann", "temperature", temperature)
  return draw(key, boltzmann_probs(q, temperature)).action


@checks.arguments(q="float [K, A]", scale="number []")
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
  bounds = mean_over_members(q) + scale * member_std(q, ddof)
  if key is None:
    return jnp.argmax(bounds).astype(jnp.int32)
  return draw(key, greedy_probs(bounds)).action


@checks.arguments(q="float [K, A]")
def majority_vote(key: jax.Array, q: jax.Array) -> jax.Array:
  """The action with the most votes of members; tied votes are broken at random.

  Paper "UCB exploration via Q-ensembles" (Chen et al., 2017), algorithm 1. The
  paper does not say how ties are broken; with as few members as ten they are common.

  Args:
    key: a random key.
    q: `[K, A]`, float.

  Returns:
    The action, int32 `[]`.
  """
  return draw(key, greedy_probs(count_votes(q))).action
