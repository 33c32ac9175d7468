"""Cart-pole, against gymnasium's."""

import gymnasium
import jax
import numpy as np

from explorax.environments import cartpole

CARTPOLE = cartpole.Cartpole()
PARAMS = CARTPOLE.default_params()
KEY = jax.random.key(0)


def test_the_observations_are_gymnasiums():
  ours, theirs = CARTPOLE.observation_spec(), gymnasium.make("CartPole-v1")
  np.testing.assert_array_equal(ours.minimum, theirs.observation_space.low)
  np.testing.assert_array_equal(ours.maximum, theirs.observation_space.high)
  assert PARAMS.time_limit == theirs.spec.max_episode_steps


def test_each_step_is_gymnasiums():
  theirs = gymnasium.make("CartPole-v1").unwrapped
  rng = np.random.default_rng(1)
  values = rng.uniform(-1, 1, (400, 4)).astype(np.float32) * [2.5, 3.0, 0.25, 3.0]
  actions = rng.integers(2, size=400)
  states = cartpole.State(values.astype(np.float32), np.zeros(400, np.int32))
  many = jax.jit(jax.vmap(CARTPOLE.step, (None, 0, 0, None)))
  timestep = jax.device_get(many(KEY, states, actions.astype(np.int32), PARAMS)[1])
  fallen = 0
  for i in range(400):
    theirs.reset()
    theirs.state = states.values[i].astype(np.float64)
    expected, reward, terminated, _, _ = theirs.step(int(actions[i]))
    np.testing.assert_allclose(timestep.observation[i], expected, rtol=1e-5, atol=1e-6)
    assert timestep.last()[i] == terminated == 1 - timestep.discount[i]
    assert timestep.reward[i] == reward == 1.0
    fallen += terminated
  assert 50 < fallen < 350


def test_starts_almost_upright_and_at_rest():
  keys = jax.random.split(KEY, 4000)
  _, timestep = jax.jit(jax.vmap(CARTPOLE.reset, (0, None)))(keys, PARAMS)
  values = np.asarray(timestep.observation, np.float64)
  assert (np.abs(values) <= 0.05).all()
  # Independent and uniform over 0.1.
  np.testing.assert_allclose(values.mean(axis=0), 0.0, atol=5 * 0.0289 / 4000**0.5)
  np.testing.assert_allclose(12 * np.cov(values.T) / 0.1**2, np.eye(4), atol=0.1)
