"""The operators estimated from trajectories, with the targets of `explorax.losses`.

`operators` computes expectations exactly. Here a sampled trajectory is passed to the
function of `explorax.losses` with the operator's name.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from explorax import losses
from explorax.papers.tabular import operators, random_mdps

Array = jax.Array
_Pair = tuple[Array, Array]  # Of the state and of the action.

KINDS = (*operators.KINDS, "non_markov_retrace")


class Trajectory(NamedTuple):
  """States and actions at times [0, ..., T] of a trajectory that does not end.

  Attributes:
    states: x_t, int `[T + 1]`.
    actions: a_t, int `[T + 1]`; no return uses the last one.
    rewards: of the transitions from x_t to x_{t+1}, float `[T]`.
  """

  states: Array
  actions: Array
  rewards: Array


def sample_trajectory(
  key: Array,
  mdp: random_mdps.MDP,
  mu: Array,
  state: int | Array,
  action: int | Array,
  length: int,
) -> Trajectory:
  """Draws a trajectory that begins with a given pair.

  Args:
    key: a random key.
    mdp: the process.
    mu: the behaviour policy, `[S, A]`, which draws all actions but the first.
    state: x_0.
    action: a_0.
    length: T, the number of transitions.
  """
  key_states, key_actions = jax.random.split(key)
  num_states, num_actions = mdp.rewards.shape
  log_p, log_mu = jnp.log(mdp.transitions), jnp.log(mu)
  # Gumbel-max: the argmax of log-probabilities plus Gumbel noise has these
  # probabilities.
  noise = (
    jax.random.gumbel(key_states, (length, num_states), log_p.dtype),
    jax.random.gumbel(key_actions, (length, num_actions), log_mu.dtype),
  )

  def step(pair: _Pair, noise_t: _Pair) -> tuple[_Pair, _Pair]:
    noise_of_states, noise_of_actions = noise_t
    state = jnp.argmax(log_p[pair] + noise_of_states)
    action = jnp.argmax(log_mu[state] + noise_of_actions)
    return (state, action), (state, action)

  first = (jnp.asarray(state, int), jnp.asarray(action, int))
  _, (states, actions) = jax.lax.scan(step, first, noise)
  states = jnp.concatenate([first[0][None], states])
  actions = jnp.concatenate([first[1][None], actions])
  return Trajectory(states, actions, mdp.rewards[states[:-1], actions[:-1]])


def td_errors(
  kind: str,
  trajectory: Trajectory,
  pi: Array,
  mu: Array,
  q: Array,
  discount: float | Array,
  lambda_: float | Array,
  end: int | Array | None = None,
) -> Array:
  """ΔQ(x_t, a_t) at times [0, ..., T − 1], whose mean is RQ − Q for T → ∞.

  Args:
    kind: one of `KINDS`, the name of a function of `explorax.losses`.
    trajectory: T transitions.
    pi: the target policy, `[S, A]`; deterministic for Watkins's Q(λ).
    mu: the behaviour policy, `[S, A]`.
    q: Q, `[S, A]`.
    discount: γ.
    lambda_: λ; importance sampling ignores it.
    end: the time at which all returns that begin before it bootstrap; T by default.
      May be traced.

  Returns:
    `[T]`.

  Raises:
    ValueError: for a kind that is not in `KINDS`.
  """
  if kind not in KINDS:
    raise ValueError(f"kind is {kind!r}; it must be one of {', '.join(KINDS)}.")
  states, actions, r_t = trajectory
  length = r_t.shape[0]
  passes = jnp.arange(1, length + 1) != (length if end is None else end)
  x_t, a_t = states[1:], actions[1:]
  q_tm1, q_t, a_tm1 = q[states[:-1]], q[x_t], actions[:-1]
  pi_t, mu_t = pi[x_t], mu[x_t, a_t]
  discount_t = discount * jnp.ones_like(r_t)
  lambda_t = jnp.where(passes, lambda_, 0.0)
  stream = (q_tm1, q_t, a_tm1, a_t, r_t, discount_t)
  if kind == "expected_sarsa_lambda":
    return losses.expected_sarsa_lambda(
      q_tm1, a_tm1, r_t, discount_t, q_t, pi_t, lambda_t
    )
  if kind == "watkins_q_lambda":
    return losses.watkins_q_lambda(*stream, lambda_t, q_t_selector=pi_t)
  if kind == "importance_sampling":
    mu_t = jnp.where(passes, mu_t, 0.0)  # Cuts the trace, as λ = 0 does for others.
    return losses.importance_sampling(*stream, pi_t, mu_t)
  return getattr(losses, kind)(*stream, pi_t, mu_t, lambda_t)
