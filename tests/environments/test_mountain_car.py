"""Mountain Car, against gymnasium's and a plain loop."""

import itertools
import math

import gymnasium
import jax
import numpy as np
import pytest
import scipy

from explorax.environments import mountain_car

CAR = mountain_car.MountainCar()
PARAMS = CAR.default_params()
KEY = jax.random.PRNGKey(0)


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
  states = mountain_car.State(positions, velocities, np.zeros(500, np.int32))
  many = jax.jit(jax.vmap(CAR.step, (None, 0, 0, None)))
  timestep = jax.device_get(many(KEY, states, actions.astype(np.int32), PARAMS)[1])
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
  _, timestep = jax.jit(jax.vmap(CAR.reset, (0, None)))(keys, PARAMS)
  position, velocity = np.asarray(timestep.observation).T
  assert (velocity == 0.0).all()
  assert -0.6 <= position.min() < -0.598 and -0.402 < position.max() < -0.4
  # The standard deviation of a uniform law over 0.2, and 5 standard errors.
  assert position.mean() == pytest.approx(-0.5, abs=5 * 0.0577 / 4000**0.5)
  assert position.std() == pytest.approx(0.2 / 12**0.5, abs=2e-3)


def test_noise_of_that_variance_is_on_the_force_which_is_clipped():
  keys, rng = jax.random.split(jax.random.PRNGKey(2), 20_000), np.random.default_rng(0)
  many = jax.jit(jax.vmap(CAR.step, (0, None, None, None)))
  at_rest = mountain_car.State(np.float32(-0.5), np.float32(0), np.int32(0))
  for noise, action in itertools.product((0.0, 0.09, 0.5), range(3)):
    params = mountain_car.Params(noise=noise, time_limit=100)
    _, timestep = many(keys, at_rest, np.int32(action), params)
    velocity = np.asarray(timestep.observation[:, 1], np.float64)
    force = (velocity + 0.0025 * math.cos(3 * -0.5)) / 0.001
    expected = np.clip(action - 1 + noise**0.5 * rng.normal(size=20_000), -1, 1)
    # The greatest distance of the distribution functions; 0.016 one time in a hundred.
    gap = scipy.stats.ks_2samp(force.round(2), expected.round(2)).statistic
    assert gap < (0.025 if noise else 1e-9)
