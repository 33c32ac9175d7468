"""The losses' targets are samples of the operators: their means and variances agree."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax.papers.tabular import operators, random_mdps, sampled_operators

DISCOUNT, LAMBDA, LENGTH = 0.9, 0.8, 5
NUM_TRAJECTORIES = 4000

every_kind = pytest.mark.parametrize("kind", sampled_operators.KINDS)
# The exact operator knows no trace that depends on the trajectory before.
exact_kinds = pytest.mark.parametrize("kind", operators.KINDS)


def draw(rng, num_states=2, num_actions=2):
  """A process, π, μ and Q; the ratios π/μ are below 3."""
  mdp = random_mdps.MDP(
    jnp.asarray(
      rng.dirichlet(np.ones(num_states), size=(num_states, num_actions)), jnp.float32
    ),
    jnp.asarray(rng.uniform(-1, 1, size=(num_states, num_actions)), jnp.float32),
  )
  pi, mu = rng.dirichlet(np.ones(num_actions), size=(2, num_states))
  mu = 0.3 * mu + 0.7 / num_actions
  q = rng.normal(size=pi.shape)
  return mdp, *(jnp.asarray(x, jnp.float32) for x in (pi, mu, q))


def for_kind(kind, pi):
  """Watkins's Q(λ) is for deterministic policies."""
  if kind != "watkins_q_lambda":
    return pi
  return random_mdps.epsilon_greedy(pi)


@functools.cache
def sampler(kind):
  """(keys, x_0, a_0, mdp, π, μ, q) → the first TD error of each trajectory."""

  def of_one(key, state, action, mdp, pi, mu, q):
    trajectory = sampled_operators.sample_trajectory(
      key, mdp, mu, state, action, LENGTH
    )
    return sampled_operators.td_errors(kind, trajectory, pi, mu, q, DISCOUNT, LAMBDA)[0]

  return jax.jit(jax.vmap(of_one, (0, None, None, None, None, None, None)))


@exact_kinds
def test_means_and_variances_are_those_of_the_exact_operator(kind):
  """Within five standard errors of each, at every pair."""
  mdp, pi, mu, q = draw(np.random.default_rng(0))
  pi = for_kind(kind, pi)
  mean, variance = operators.moments(kind, mdp, pi, mu, q, DISCOUNT, LAMBDA, LENGTH)
  for i, pair in enumerate(np.ndindex(*q.shape)):
    keys = jax.random.split(jax.random.key(i), NUM_TRAJECTORIES)
    errors = np.asarray(sampler(kind)(keys, *pair, mdp, pi, mu, q), np.float64)
    spread = np.var(errors)
    standard_error = np.sqrt(spread / NUM_TRAJECTORIES)
    assert spread > 1e-3
    assert abs(np.mean(errors) + q[pair] - mean[pair]) < 5 * standard_error
    fourth = np.mean((errors - np.mean(errors)) ** 4)
    standard_error = np.sqrt((fourth - spread**2) / NUM_TRAJECTORIES)
    assert abs(spread - variance[pair]) < 5 * standard_error


@functools.cache
def td_errors(kind):
  """(trajectory, π, μ, q, end) → the TD errors at all times."""

  def of_one(trajectory, pi, mu, q, end):
    return sampled_operators.td_errors(
      kind, trajectory, pi, mu, q, DISCOUNT, LAMBDA, end
    )

  return jax.jit(of_one)


def certain(rng):
  """A process and a μ without chance, and an arbitrary π and Q."""
  _, pi, _, q = draw(rng)
  mdp = random_mdps.MDP(
    jax.nn.one_hot(rng.integers(2, size=(2, 2)), 2),
    jnp.asarray(rng.uniform(-1, 1, size=(2, 2)), jnp.float32),
  )
  return mdp, pi, random_mdps.epsilon_greedy(-pi), q


@exact_kinds
def test_without_chance_each_target_is_the_operator(kind):
  mdp, pi, mu, q = certain(np.random.default_rng(1))
  pi = for_kind(kind, pi)
  moments = jax.jit(functools.partial(operators.moments, kind))
  for pair in [(0, 0), (1, 0)]:
    trajectory = sampled_operators.sample_trajectory(
      jax.random.key(0), mdp, mu, *pair, LENGTH
    )
    errors = td_errors(kind)(trajectory, pi, mu, q, LENGTH)
    for t in range(LENGTH):
      here = trajectory.states[t], trajectory.actions[t]
      args = mdp, pi, mu, q, DISCOUNT, LAMBDA, LENGTH - t
      mean, variance = moments(*args)
      assert variance[here] < 1e-10
      np.testing.assert_allclose(errors[t] + q[here], mean[here], atol=1e-5)


@every_kind
def test_returns_bootstrap_at_the_end_that_is_given(kind):
  mdp, pi, mu, q = draw(np.random.default_rng(2))
  pi = for_kind(kind, pi)
  states, actions, rewards = trajectory = sampled_operators.sample_trajectory(
    jax.random.key(0), mdp, mu, 1, 0, LENGTH
  )
  end = 3
  short = sampled_operators.Trajectory(states[:4], actions[:4], rewards[:3])
  expected = sampled_operators.td_errors(kind, short, pi, mu, q, DISCOUNT, LAMBDA)
  errors = td_errors(kind)(trajectory, pi, mu, q, end)
  np.testing.assert_allclose(errors[:end], expected, atol=1e-6)
  # What begins later does not know of it.
  whole = td_errors(kind)(trajectory, pi, mu, q, LENGTH)
  np.testing.assert_allclose(errors[end:], whole[end:], atol=1e-6)
  if kind != "watkins_q_lambda":  # Its trace may have been cut before.
    assert np.all(np.abs(errors[:end] - whole[:end]) > 1e-5)


def test_trajectories_are_drawn_from_the_process_and_the_policy():
  mdp, _, mu, _ = draw(np.random.default_rng(4), 3, 2)
  mu = mu.at[1].set(jnp.array([0.0, 1.0]))
  num, length = 300, 40
  sample = jax.jit(
    jax.vmap(
      lambda key: sampled_operators.sample_trajectory(key, mdp, mu, 2, 1, length)
    )
  )
  states, actions, rewards = map(
    np.asarray, sample(jax.random.split(jax.random.key(0), num))
  )
  assert states.shape == actions.shape == (num, length + 1)
  assert np.all(states[:, 0] == 2) and np.all(actions[:, 0] == 1)
  np.testing.assert_array_equal(
    rewards, np.asarray(mdp.rewards)[states[:, :-1], actions[:, :-1]]
  )
  for x, a in np.ndindex(3, 2):
    here = (states[:, :-1] == x) & (actions[:, :-1] == a)
    if (x, a) == (1, 0):
      assert not np.any(here)
      continue
    p, count = np.asarray(mdp.transitions[x, a]), np.sum(here)
    frequencies = np.bincount(states[:, 1:][here], minlength=3) / count
    assert np.all(np.abs(frequencies - p) < 5 * np.sqrt(p * (1 - p) / count) + 1e-6)
    later = states[:, 1:] == x
    p, count = float(mu[x, a]), np.sum(later)
    share = np.mean(actions[:, 1:][later] == a)
    assert abs(share - p) <= 5 * np.sqrt(p * (1 - p) / count) + 1e-6
