"""Means and variances of returns, against plain loops along every path there is."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax.papers.tabular import operators, random_mdps

DISCOUNT = 0.9

every_kind = pytest.mark.parametrize("kind", operators.KINDS)


@pytest.fixture(autouse=True)
def _float64():
  jax.config.update("jax_enable_x64", True)
  yield
  jax.config.update("jax_enable_x64", False)


def draw(seed):
  """A process of two states and two actions, π, μ and Q."""
  rng = np.random.default_rng(seed)
  pi, mu = rng.dirichlet(np.ones(2), size=(2, 2))
  mdp = random_mdps.MDP(
    jnp.asarray(rng.dirichlet(np.ones(2), size=(2, 2))),
    jnp.asarray(rng.uniform(-1, 1, size=(2, 2))),
  )
  q = rng.normal(size=(2, 2))
  return mdp, *map(jnp.asarray, (pi, 0.8 * mu + 0.1, q))


def plain_trace(kind, lambda_, pi, mu):
  """c_s, by table 1."""
  return {
    "importance_sampling": pi / mu,
    "harutyunyan_q_lambda": lambda_,
    "tree_backup": lambda_ * pi,
    "retrace": lambda_ * min(1.0, pi / mu),
    "watkins_q_lambda": lambda_ * (pi == 1),
    "expected_sarsa_lambda": lambda_,
  }[kind]


def plain_return(kind, mdp, pi, mu, q, lambda_, states, actions):
  """Equation 4's sum along a path; λ-returns, of values, for expected SARSA(λ)."""
  length = len(states) - 1
  values = np.sum(pi * q, axis=1)
  if kind == "expected_sarsa_lambda":
    g = values[states[-1]]
    for t in reversed(range(length)):
      if t + 1 < length:
        g = (1 - lambda_) * values[states[t + 1]] + lambda_ * g
      g = mdp.rewards[states[t], actions[t]] + DISCOUNT * g
    return g
  total, product = q[states[0], actions[0]], 1.0
  for t in range(length):
    x, a = states[t], actions[t]
    if t > 0:
      product *= plain_trace(kind, lambda_, pi[x, a], mu[x, a])
    error = mdp.rewards[x, a] + DISCOUNT * values[states[t + 1]] - q[x, a]
    total += DISCOUNT**t * product * error
  return total


def plain_moments(kind, mdp, pi, mu, q, lambda_, length):
  """Mean and variance over every path, by its chance."""
  mdp, pi, mu, q = jax.tree.map(np.asarray, (mdp, pi, mu, q))
  num_states, num_actions = q.shape
  pairs = list(itertools.product(range(num_states), range(num_actions)))
  mean, square = np.zeros_like(q), np.zeros_like(q)
  for path in itertools.product(pairs, repeat=length + 1):
    states, actions = zip(*path, strict=True)
    chance = 1.0
    for t in range(length):
      chance *= mdp.transitions[states[t], actions[t], states[t + 1]]
      chance *= mu[states[t + 1], actions[t + 1]]
    g = plain_return(kind, mdp, pi, mu, q, lambda_, states, actions)
    mean[path[0]] += chance * g
    square[path[0]] += chance * g * g
  return mean, square - mean**2


@every_kind
def test_moments_are_those_over_all_paths_and_the_operator_is_their_limit(kind):
  mdp, pi, mu, q = draw(1)
  if kind == "watkins_q_lambda":
    pi = random_mdps.epsilon_greedy(pi)
  moments = jax.jit(functools.partial(operators.moments, kind))
  for length in (1, 4):
    found = moments(mdp, pi, mu, q, DISCOUNT, 0.8, length)
    mean, variance = plain_moments(kind, mdp, pi, mu, q, 0.8, length)
    np.testing.assert_allclose(found.mean, mean, atol=1e-12)
    np.testing.assert_allclose(found.variance, variance, atol=1e-12)
  limit = operators.apply(kind, mdp, pi, mu, q, DISCOUNT, 0.8)
  long = moments(mdp, pi, mu, q, DISCOUNT, 0.8, 400)
  np.testing.assert_allclose(long.mean, limit, atol=1e-10)
