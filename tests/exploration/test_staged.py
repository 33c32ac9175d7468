"""ε in stages: the schedule, and what it has in common with its relatives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax import exploration

pytestmark = pytest.mark.ops

RULE = exploration.StagedEpsilonGreedy((1.0, 0.1, 0.01), (100, 500))
Q = jnp.array([[1.0, 3.0, 0.0, 2.0], [0.0, 1.0, 2.0, 0.0]])


@jax.jit
@jax.vmap
def select(key, env_steps):
  state = RULE.init(key, 2, 4)
  return RULE.select(key, Q, state, env_steps)


@pytest.mark.parametrize(
  ("env_steps", "epsilon"),
  [(0, 1.0), (50, 0.55), (100, 0.1), (300, 0.055), (500, 0.01), (10**7, 0.01)],
)
def test_epsilon_after_so_many_steps(env_steps, epsilon):
  keys = jax.random.split(jax.random.key(0), 4000)
  action, prob, _ = select(keys, jnp.full(4000, env_steps, jnp.int32))
  action, prob = np.asarray(action), np.asarray(prob)
  # The mean over the members is greatest for action 1.
  expected = np.where(action == 1, 1 - epsilon + epsilon / 4, epsilon / 4)
  np.testing.assert_allclose(prob, expected, rtol=1e-5)
  np.testing.assert_allclose(
    np.mean(action != 1), 0.75 * epsilon, atol=3 * np.sqrt(0.25 / 4000)
  )


def test_one_stage_is_the_linear_schedule():
  linear = exploration.EpsilonGreedy(0.8, final_epsilon=0.2, decay_steps=10)
  staged = exploration.StagedEpsilonGreedy((0.8, 0.2), (10,))
  for env_steps in (0, 3, 10, 11):
    for seed in range(4):
      key, steps = jax.random.key(seed), jnp.int32(env_steps)
      a = linear.select(key, Q, linear.init(key, 2, 4), steps)
      b = staged.select(key, Q, staged.init(key, 2, 4), steps)
      assert a[0] == b[0]
      np.testing.assert_allclose(a[1], b[1], rtol=1e-6)


@pytest.mark.parametrize(
  ("epsilons", "steps", "message"),
  [
    ((1.0, 1.1), (5,), "StagedEpsilonGreedy.epsilon is 1.1"),
    ((1.0,), (), "one step at least, and one epsilon more than steps"),
    ((1.0, 0.5), (5, 6), "one step at least, and one epsilon more than steps"),
    ((1.0, 0.5), (0,), r"steps are \(0,\); they must be positive and increase"),
    ((1.0, 0.5, 0.1), (5, 5), r"steps are \(5, 5\); they must be positive"),
  ],
)
def test_refuses(epsilons, steps, message):
  with pytest.raises(ValueError, match=message):
    exploration.StagedEpsilonGreedy(epsilons, steps)
