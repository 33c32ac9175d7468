"""Catch, against bsuite's."""

import jax
import jax.numpy as jnp
import numpy as np
from bsuite.environments import catch as bsuite_catch

from explorax.environments import catch

CATCH = catch.Catch()
PARAMS = CATCH.default_params()
reset, step = jax.jit(CATCH.reset), jax.jit(CATCH.step)


def test_whole_episodes_are_bsuites():
  rng, returns = np.random.default_rng(0), []
  for seed in range(40):
    key = jax.random.key(seed)
    state, ours = reset(key, PARAMS)
    theirs = bsuite_catch.Catch(seed=seed)
    theirs.reset()
    theirs._ball_x = int(state.ball)
    np.testing.assert_array_equal(ours.observation, theirs._observation())
    while not ours.last():
      action = rng.integers(3)
      state, ours = step(key, state, jnp.int32(action), PARAMS)
      expected = theirs.step(action)
      np.testing.assert_array_equal(ours.observation, expected.observation)
      assert ours.reward == expected.reward
      assert ours.discount == expected.discount
      assert ours.step_type == expected.step_type
    returns.append(float(ours.reward))
  assert {1.0, -1.0} == set(returns)


def test_the_ball_starts_in_any_column():
  keys = jax.random.split(jax.random.key(1), 5000)
  state, _ = jax.jit(jax.vmap(CATCH.reset, (0, None)))(keys, PARAMS)
  counts = np.bincount(state.ball, minlength=catch.COLUMNS)
  # Five standard errors of a count.
  np.testing.assert_allclose(counts, 1000, atol=5 * (5000 * 0.2 * 0.8) ** 0.5)
