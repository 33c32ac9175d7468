"""The open GridWorld, against a few lines of plain Python."""

import numpy as np
import pytest

from explorax import environments
from explorax.environments import gridworld, specs


@pytest.fixture(scope="module")
def small():
  return environments.make("jax:gridworld/6,time_limit=30", seed=0)


def test_walks_as_a_plain_loop_does(small):
  rng = np.random.default_rng(0)
  ends = set()
  for episode in range(30):
    timestep = small.reset()
    row, column = 1, 3
    for time in range(1, 31):
      assert timestep.observation[row, column] == 1.0
      assert timestep.observation.sum() == 1.0
      # Some episodes go straight to the goal, three steps down and one to the right.
      action = (3, 3, 3, 1)[(time - 1) % 4] if episode % 3 == 0 else rng.integers(4)
      down, right = gridworld.MOVES[action]
      row, column = min(max(row + down, 0), 5), min(max(column + right, 0), 5)
      timestep = small.step(action)
      at_goal = (row, column) == (4, 4)
      assert timestep.reward == float(at_goal)
      assert timestep.last() == (at_goal or time == 30)
      if timestep.last():
        assert timestep.discount == (0.0 if at_goal else 1.0)
        ends.add(at_goal)
        break
  assert ends == {True, False}


def test_is_seen_as_a_position_and_drawn(small):
  assert isinstance(small.observation_spec(), specs.OneHotArray)
  small.reset()
  picture = small.raw.render()
  size = gridworld.RENDERED_PIXELS
  assert picture.shape == (6 * size, 6 * size, 3) and picture.dtype == np.uint8
  for (row, column), name in (((1, 3), "agent"), ((4, 4), "goal"), ((0, 0), "floor")):
    at = picture[row * size + 1, column * size + 1]
    assert tuple(at) == gridworld.COLOURS[name]


def test_too_small_a_room_is_refused():
  with pytest.raises(ValueError, match="the size of the gridworld is 4; it must be at"):
    environments.make("jax:gridworld/4", seed=0)
