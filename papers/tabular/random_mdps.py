"""Small random decision processes and policies, for exact computations.

All functions are pure, and `jax.vmap` batches them over keys and values. Episodes never
end; returns are discounted.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

Array = jax.Array


class MDP(NamedTuple):
  """A finite Markov decision process.

  Attributes:
    transitions: p(y|x, a), float `[S, A, S]`.
    rewards: r(x, a), float `[S, A]`.
  """

  transitions: Array
  rewards: Array


def random_mdp(
  key: Array, num_states: int, num_actions: int, concentration: float | Array = 1.0
) -> MDP:
  """Draws transitions from a Dirichlet distribution, and rewards uniform in [−1, 1).

  Args:
    key: a random key.
    num_states: S.
    num_actions: A.
    concentration: of the Dirichlet distribution: near 0, each pair has a single
      successor; far above 1, all successors are about equally likely. `[]`.
  """
  key_transitions, key_rewards = jax.random.split(key)
  alpha = jnp.full(num_states, concentration, float)
  transitions = jax.random.dirichlet(
    key_transitions, alpha, shape=(num_states, num_actions)
  )
  rewards = jax.random.uniform(
    key_rewards, (num_states, num_actions), minval=-1.0, maxval=1.0
  )
  return MDP(transitions, rewards)


def random_policy(
  key: Array, num_states: int, num_actions: int, floor: float | Array = 0.0
) -> Array:
  """Draws each state's probabilities uniformly from the simplex.

  Args:
    key: a random key.
    num_states: S.
    num_actions: A.
    floor: the weight of the uniform policy in the mixture, so that no probability is
      below floor/A. `[]`.

  Returns:
    π(a|x), `[S, A]`.
  """
  exponential = jax.random.exponential(key, (num_states, num_actions))
  policy = exponential / jnp.sum(exponential, axis=-1, keepdims=True)
  return (1 - floor) * policy + floor / num_actions


def epsilon_greedy(q: Array, epsilon: float | Array = 0.0) -> Array:
  """(1 − ε) on the first of the greedy actions, and ε over all. `[S, A]` → `[S, A]`."""
  num_actions = q.shape[-1]
  greedy = jax.nn.one_hot(jnp.argmax(q, axis=-1), num_actions, dtype=q.dtype)
  return (1 - epsilon) * greedy + epsilon / num_actions


def away_from(policy: Array, distance: float | Array) -> Array:
  """A policy whose ‖π(·|x) − μ(·|x)‖₁ is the same in every state.

      μ = (1 − κ) π + κ δ(the least likely action),    κ = distance / (2 (1 − min π))

  Args:
    policy: π, `[S, A]`.
    distance: ‖π − μ‖₁. Every π allows up to 2 (1 − 1/A); above, a state gets at most
      the largest distance that its π allows. `[]`.

  Returns:
    μ, `[S, A]`.
  """
  least = jnp.min(policy, axis=-1, keepdims=True)
  share = jnp.minimum(1.0, distance / (2 * (1 - least)))
  target = jax.nn.one_hot(
    jnp.argmin(policy, axis=-1), policy.shape[-1], dtype=policy.dtype
  )
  return (1 - share) * policy + share * target
