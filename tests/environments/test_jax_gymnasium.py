"""Environments written in JAX as gymnasium's: its own checker, the same episodes."""

import dataclasses
import warnings

import dm_env
import gymnasium
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.utils import env_checker

from explorax import environments
from explorax.environments import (
  disco_maze,
  gridworld,
  jax_gymnasium,
  jax_types,
  mountain_car,
)

CASES = {
  "disco_maze": (disco_maze.DiscoMaze(5), (5, 5, 3), np.uint8, 0, 255),
  "gridworld": (gridworld.GridWorld(5), (5, 5), np.float32, 0, 1),
  "mountain_car": (
    mountain_car.MountainCar(),
    (2,),
    np.float32,
    np.float32([-1.2, -0.07]),
    np.float32([0.5, 0.07]),
  ),
}


@dataclasses.dataclass(frozen=True)
class Plain:
  """Observes nothing but its time, without bounds; no picture."""

  dtype: str = "float32"

  def default_params(self):
    return 3

  def observation_spec(self):
    return dm_env.specs.Array((), np.dtype(self.dtype), "time")

  @property
  def num_actions(self):
    return 2

  def reset(self, key, params):
    return jnp.int32(0), jax_types.restart(jnp.zeros((), self.dtype))

  def step(self, key, state, action, params):
    return state + 1, jax_types.transition(
      (state + 1).astype(self.dtype),
      0.5,
      terminated=(state + 1 == params) & (action == 1),
      truncated=state + 1 == params,
    )

  def metrics(self, state, params):
    return {"time": state}


@pytest.mark.parametrize("name", CASES)
def test_gymnasiums_checker_is_content(name):
  """With a spec registered, so that it compares seeds and tries the render modes."""
  gym_id = f"Checked_{name}-v0"

  def make(render_mode=None):
    environment = CASES[name][0]
    return jax_gymnasium.JaxGymnasiumEnv(environment, render_mode=render_mode)

  gymnasium.register(gym_id, entry_point=make)
  try:
    for render_mode in (None, "rgb_array"):
      raw = gymnasium.make(gym_id, render_mode=render_mode, disable_env_checker=True)
      with warnings.catch_warnings():
        warnings.simplefilter("error")  # What it only advises against counts as well.
        env_checker.check_env(raw.unwrapped)
  finally:
    del gymnasium.registry[gym_id]


@pytest.mark.parametrize("name", CASES)
def test_spaces_are_those_of_the_spec(name):
  environment, shape, dtype, low, high = CASES[name]
  made = jax_gymnasium.JaxGymnasiumEnv(environment)
  space = made.observation_space
  assert (space.shape, space.dtype) == (shape, dtype)
  assert (space.low == low).all() and (space.high == high).all()
  assert made.action_space == gymnasium.spaces.Discrete(environment.num_actions)


def test_observations_without_bounds():
  for dtype, low, high in (
    ("float32", -np.inf, np.inf),
    ("int32", -(2**31), 2**31 - 1),
  ):
    space = jax_gymnasium.JaxGymnasiumEnv(Plain(dtype)).observation_space
    assert (space.low, space.high, space.dtype) == (low, high, np.dtype(dtype))
  with pytest.raises(TypeError, match="of dtype bool, of which gymnasium has no box"):
    jax_gymnasium.JaxGymnasiumEnv(Plain("bool"))


def test_there_and_back_it_is_the_same_environment():
  """Wrapped for gymnasium and from there for dm_env: the room is deterministic."""
  room = gridworld.GridWorld(5)
  limited = room.default_params()._replace(time_limit=40)
  there = jax_gymnasium.JaxGymnasiumEnv(room, limited)
  back = environments.wrap(there, seed=0)
  direct = environments.make("jax:gridworld/5,time_limit=40", seed=0)
  rng = np.random.default_rng(0)
  ends = []
  for _ in range(300):
    action = int(rng.integers(4))
    ours, expected = back.step(action), direct.step(action)
    assert ours.step_type == expected.step_type
    assert (ours.reward, ours.discount) == (expected.reward, expected.discount)
    np.testing.assert_array_equal(ours.observation, expected.observation)
    if ours.last():
      ends.append(float(ours.discount))
  assert set(ends) == {0.0, 1.0}


def test_ends_and_what_is_told_of_an_episode():
  environment = jax_gymnasium.JaxGymnasiumEnv(Plain())
  for last_action, terminated in ((1, True), (0, False)):
    observation, info = environment.reset()
    assert observation == 0.0 and info == {}
    for time in (1, 2):
      assert environment.step(1) == (float(time), 0.5, False, False, {})
    step = environment.step(last_action)
    assert step == (3.0, 0.5, terminated, not terminated, {"time": 3.0})
    assert type(step[1]) is float and type(step[2]) is type(step[3]) is bool
    with pytest.raises(gymnasium.error.ResetNeeded, match="call reset"):
      environment.step(0)


def test_a_seed_starts_a_stream_and_resets_continue_it():
  def mazes(*seeds):
    environment = jax_gymnasium.JaxGymnasiumEnv(disco_maze.DiscoMaze(9))
    return [environment.reset(seed=seed)[0].tobytes() for seed in seeds]

  stream = mazes(3, None, None)
  assert len(set(stream)) == 3
  assert mazes(3, None, None) == stream
  assert mazes(4, 3, None) == [mazes(4)[0], *stream[:2]]
  assert mazes(None) != mazes(None)


def test_draws_itself_where_asked_to():
  room = gridworld.GridWorld(5)
  environment = jax_gymnasium.JaxGymnasiumEnv(room, render_mode="rgb_array")
  with pytest.raises(gymnasium.error.ResetNeeded, match="call reset"):
    environment.render()
  environment.reset(seed=0)
  side = 5 * gridworld.RENDERED_PIXELS
  assert environment.render().shape == (side, side, 3)
  environment = jax_gymnasium.JaxGymnasiumEnv(room)
  environment.reset(seed=0)
  assert environment.render() is None


def test_what_cannot_be_is_refused():
  with pytest.raises(ValueError, match="the render mode is 'human'; it must be"):
    jax_gymnasium.JaxGymnasiumEnv(Plain(), render_mode="human")
  with pytest.raises(TypeError, match="Plain has no picture of itself"):
    jax_gymnasium.JaxGymnasiumEnv(Plain(), render_mode="rgb_array")
  environment = jax_gymnasium.JaxGymnasiumEnv(Plain())
  with pytest.raises(gymnasium.error.ResetNeeded, match="call reset"):
    environment.step(0)
  with pytest.raises(ValueError, match=r"the options of reset are .* there are none"):
    environment.reset(options={"size": 3})
  environment.reset(seed=0)
  with pytest.raises(
    ValueError, match="the action is 2; this environment's are 0 to 1"
  ):
    environment.step(2)
