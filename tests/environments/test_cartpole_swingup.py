"""The cart-pole's swing-up, against dm_control's.

data/cartpole_swingup.npz holds what dm_control 1.0.20 with MuJoCo 3.1.6 did:

  starts = [  # x, θ and their velocities.
    (0, np.pi, 0, 0.1), (0, 0.02, 0, 0), (1.6, np.pi, 1, 0), (-1.7, 1, -3, 2),
    (0.5, 2, 0, 6),
  ]
  rng = np.random.default_rng(0)
  for start in starts:
    environment = suite.load("cartpole", "swingup_sparse")
    environment.reset()
    with environment.physics.reset_context():
      environment.physics.set_state(np.array(start))
    action = 1
    for _ in range(400):
      if rng.random() < 0.07:
        action = rng.integers(3)
      timestep = environment.step([action - 1.0])

and of it `start` float64 `[5, 4]`, `action` int8 and `reward` int8 `[5, 400]`, and
`observation` float32 `[5, 400, 5]`, its arrays joined. Compared with the unrounded
states, `integrate` in double precision was within 2e-12 rad or m and 2e-10 of the
velocities in each step, and within 1e-10 and 3e-10 over all 400.
"""

import math
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax.environments import cartpole_swingup

CARTPOLE = cartpole_swingup.CartpoleSwingup()
PARAMS = CARTPOLE.default_params()
KEY = jax.random.PRNGKey(0)
step = jax.jit(CARTPOLE.step)


@pytest.fixture(scope="module")
def reference():
  path = pathlib.Path(__file__).parent / "data" / "cartpole_swingup.npz"
  with np.load(path) as arrays:
    return dict(arrays)


@pytest.fixture
def double_precision():
  jax.config.update("jax_enable_x64", True)
  yield
  jax.config.update("jax_enable_x64", False)


def _state(x, angle, time=0):
  return cartpole_swingup.State(
    jnp.asarray([x, angle], jnp.float32), jnp.zeros(2, jnp.float32), jnp.int32(time)
  )


def _episodes(start, actions):
  """States after each step, `[episodes, steps, 2]` each, of the dtype of `start`."""

  def episode(start, actions):
    controls = jnp.asarray(cartpole_swingup.CONTROLS, start.dtype)[actions]

    def move(state, control):
      state = cartpole_swingup.integrate(*state, control)
      return state, state

    return jax.lax.scan(move, (start[:2], start[2:]), controls)[1]

  return jax.jit(jax.vmap(episode))(jnp.asarray(start), jnp.asarray(actions, jnp.int32))


def _observations(position, velocity):
  x, angle = np.asarray(position[..., 0]), np.asarray(position[..., 1])
  return np.concatenate(
    [np.stack([x, np.cos(angle), np.sin(angle)], axis=-1), velocity], axis=-1
  )


def test_whole_episodes_are_dm_controls(reference, double_precision):
  """400 steps of five episodes, to the precision of the file; all see both ends."""
  ours = _observations(*_episodes(reference["start"], reference["action"]))
  assert ours.dtype == np.float64
  np.testing.assert_allclose(ours, reference["observation"], rtol=1e-7, atol=1e-9)
  beyond = np.abs(ours[..., 0]) > cartpole_swingup.SLIDER_END
  assert (beyond.sum(axis=1) > 50).all()
  assert (ours[beyond][:, 0] > 0).any() and (ours[beyond][:, 0] < 0).any()


def test_each_step_is_dm_controls_rewards_included(reference):
  seen = reference["observation"]
  before = seen[:, :-1].reshape(-1, 5)
  after = seen[:, 1:].reshape(-1, 5)
  actions = jnp.asarray(reference["action"][:, 1:].reshape(-1), jnp.int32)
  angle = np.arctan2(before[:, 2], before[:, 1])
  states = cartpole_swingup.State(
    jnp.asarray(np.stack([before[:, 0], angle], axis=1)),
    jnp.asarray(before[:, 3:]),
    jnp.zeros(len(before), jnp.int32),
  )
  many = jax.jit(jax.vmap(CARTPOLE.step, (None, 0, 0, None)))
  _, timestep = many(KEY, states, actions, PARAMS)
  np.testing.assert_allclose(timestep.observation, after, rtol=3e-6, atol=3e-6)
  rewards = reference["reward"][:, 1:].reshape(-1)
  np.testing.assert_array_equal(timestep.reward, rewards)
  assert 50 < rewards.sum() < 100
  assert (timestep.discount == 1.0).all()


@pytest.mark.parametrize("x", [-0.26, -0.24, 0.24, 0.26])
@pytest.mark.parametrize("degrees", [-6.0, -5.5, 5.5, 6.0, 354.5])
def test_there_is_a_reward_near_the_middle_with_the_pole_upright_only(x, degrees):
  # cos 5.5° is 0.9954, cos 6° 0.9945; a step from rest moves neither by as much.
  _, timestep = step(KEY, _state(x, math.radians(degrees)), jnp.int32(1), PARAMS)
  assert timestep.reward == float(abs(degrees) != 6.0 and abs(x) < 0.25)


def test_starts_hanging_in_the_middle_almost_at_rest():
  keys = jax.random.split(jax.random.PRNGKey(1), 4000)
  state, timestep = jax.jit(jax.vmap(CARTPOLE.reset, (0, None)))(keys, PARAMS)
  drawn = np.concatenate([state.position, state.velocity], axis=1, dtype=np.float64)
  drawn -= [0.0, math.pi, 0.0, 0.0]
  np.testing.assert_allclose(drawn.mean(axis=0), 0.0, atol=5 * 0.01 / 4000**0.5)
  # Independent, each with a standard deviation of 0.01.
  np.testing.assert_allclose(np.cov(drawn.T) / 0.01**2, np.eye(4), atol=0.12)
  assert timestep.observation.shape == (4000, 5)
  np.testing.assert_allclose(
    timestep.observation, _observations(state.position, state.velocity), atol=1e-6
  )
