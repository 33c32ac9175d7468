"""Random processes and policies are what their docstrings say."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax.papers.tabular import random_mdps


def test_processes_are_processes():
  keys = jax.random.split(jax.random.key(0), 50)
  draw = jax.jit(
    jax.vmap(lambda key, c: random_mdps.random_mdp(key, 4, 3, c), (0, None))
  )
  mdp = draw(keys, 0.1)
  assert mdp.transitions.shape == (50, 4, 3, 4) and mdp.rewards.shape == (50, 4, 3)
  assert np.all(mdp.transitions >= 0)
  np.testing.assert_allclose(jnp.sum(mdp.transitions, axis=-1), 1, atol=1e-5)
  assert np.all(np.abs(mdp.rewards) <= 1) and np.std(mdp.rewards) > 0.5
  # Concentrated: one successor has almost all.
  assert np.mean(np.max(mdp.transitions, axis=-1)) > 0.75
  np.testing.assert_allclose(draw(keys, 1e4).transitions, 0.25, atol=0.05)


def test_policies_keep_their_floor():
  policy = random_mdps.random_policy(jax.random.key(0), 500, 4, 0.2)
  np.testing.assert_allclose(jnp.sum(policy, axis=-1), 1, atol=1e-5)
  assert 0.05 - 1e-6 <= np.min(policy) < 0.06
  np.testing.assert_allclose(np.mean(policy, axis=0), 0.25, atol=0.05)


def test_epsilon_greedy_takes_the_first_of_the_best():
  q = jnp.array([[1.0, 3.0, 3.0], [0.0, 0.0, 0.0]])
  found = random_mdps.epsilon_greedy(q, 0.3)
  np.testing.assert_allclose(found, [[0.1, 0.8, 0.1], [0.8, 0.1, 0.1]], atol=1e-6)
  np.testing.assert_array_equal(random_mdps.epsilon_greedy(q), [[0, 1, 0], [1, 0, 0]])


@pytest.mark.parametrize("distance", [0.0, 0.5, 1.5])
def test_a_policy_is_as_far_away_as_asked_in_every_state(distance):
  policy = random_mdps.random_policy(jax.random.key(1), 200, 4)
  away = random_mdps.away_from(policy, distance)
  np.testing.assert_allclose(jnp.sum(away, axis=-1), 1, atol=1e-5)
  assert np.all(away >= -1e-6)
  found = np.sum(np.abs(away - policy), axis=-1)
  np.testing.assert_allclose(found, distance, atol=1e-5)
