"""Mountain Car, against gymnasium's and a plain loop."""

import math

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax.environments import mountain_car

CAR = mountain_car.MountainCar()
PARAMS = CAR.default_params()
step = jax.jit(CAR.step)
KEY = jax.random.PRNGKey(0)


def _state(position, velocity, time=0):
  return mountain_car.State(
    jnp.float32(position), jnp.float32(velocity), jnp.int32(time)
  )


@pytest.fixture
def theirs():
  environment = gymnasium.make("MountainCar-v0").unwrapped
  environment.reset(seed=0)
  return environment


def test_each_step_is_gymnasiums_wherever_the_car_is(theirs):
  """Except for the reward, which is 1 at the goal, and positions beyond the goal."""
  rng = np.random.default_rng(1)
  positions = rng.uniform(-1.2, 0.5, 500).astype(np.float32)
  velocities = rng.uniform(-0.07, 0.07, 500).astype(np.float32)
  positions[:50] = -1.2  # The left end; half of them drive on into it.
  actions = rng.integers(3, size=500)
  states = mountain_car.State(
    jnp.asarray(positions), jnp.asarray(velocities), jnp.zeros(500, jnp.int32)
  )
  many = jax.jit(jax.vmap(CAR.step, (None, 0, 0, None)))
  _, timestep = many(KEY, states, jnp.asarray(actions, jnp.int32), PARAMS)
  stopped, goals = 0, 0
  for i in range(500):
    theirs.state = np.array([positions[i], velocities[i]], np.float64)
    expected, _, terminated, _, _ = theirs.step(int(actions[i]))
    position, velocity = timestep.observation[i]
    assert position == pytest.approx(min(expected[0], 0.5), abs=3e-7)
    assert velocity == pytest.approx(expected[1], abs=3e-8)
    assert timestep.last()[i] == terminated
    assert timestep.reward[i] == float(terminated) == 1 - timestep.discount[i]
    goals += terminated
    stopped += position == np.float32(-1.2) and velocity == 0.0
  assert stopped > 20 and goals > 3


def test_starts_at_rest_in_the_valley():
  keys = jax.random.split(jax.random.PRNGKey(1), 4000)
  _, timestep = jax.vmap(CAR.reset, (0, None))(keys, PARAMS)
  position, velocity = np.asarray(timestep.observation).T
  assert (velocity == 0.0).all()
  assert -0.6 <= position.min() < -0.598 and -0.402 < position.max() < -0.4
  # The standard deviation of a uniform law over 0.2, and 5 standard errors.
  assert position.mean() == pytest.approx(-0.5, abs=5 * 0.0577 / 4000**0.5)
  assert position.std() == pytest.approx(0.2 / 12**0.5, abs=2e-3)


def test_noise_of_that_variance_is_on_the_force_which_is_clipped():
  keys = jax.random.split(jax.random.PRNGKey(2), 20_000)
  many = jax.jit(jax.vmap(CAR.step, (0, None, None, None)))
  slope = math.cos(3 * -0.5)
  for noise in (0.0, 0.09, 0.5):
    params = mountain_car.Params(noise=noise, time_limit=100)
    sigma = noise**0.5
    for action in range(3):
      _, timestep = many(keys, _state(-0.5, 0.0), jnp.int32(action), params)
      velocity = np.asarray(timestep.observation[:, 1], np.float64)
      force = (velocity + 0.0025 * slope) / 0.001
      assert np.abs(force).max() <= 1 + 1e-4
      if noise == 0.0:
        np.testing.assert_allclose(force, action - 1, atol=1e-4)
        continue
      # P(force = 1) and the median, by the normal law.
      at_end = 0.5 * math.erfc((2 - action) / (sigma * 2**0.5))
      assert (force > 1 - 1e-4).mean() == pytest.approx(at_end, abs=0.02)
      assert np.median(force) == pytest.approx(action - 1, abs=0.03)
      if action == 1:
        inside = 1 - 2 * at_end
        expected = math.erf(0.5 / (sigma * 2**0.5))
        assert (np.abs(force) < 0.5).mean() == pytest.approx(expected, abs=0.02)
        assert (np.abs(force) < 1 - 1e-4).mean() == pytest.approx(inside, abs=0.02)
