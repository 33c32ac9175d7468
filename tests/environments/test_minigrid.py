"""MiniGrid: what is seen, what ends an episode, and what a policy takes."""

import gymnasium
import numpy as np
import pytest

from explorax import environments
from explorax.environments import encodings, minigrid_views

minigrid = pytest.importorskip("minigrid")
wrappers = pytest.importorskip("minigrid.wrappers")

DOOR = "MiniGrid-DoorKey-8x8-v0"
FORWARD, RIGHT, DONE = 2, 1, 6
CELL = ("object", "colour", "state")
ALL = (*CELL, "direction")


def make(gym_id=DOOR, **options):
  return gymnasium.make(gym_id, disable_env_checker=True, **options)


def test_the_view_and_the_direction_are_the_raw_ones():
  raw, environment = make(), environments.make(f"gym:{DOOR}", seed=3)
  seen, timestep = raw.reset(seed=3)[0], environment.reset()
  rng = np.random.default_rng(0)
  for action in rng.integers(3, size=30):
    assert timestep.observation.dtype == np.uint8
    np.testing.assert_array_equal(timestep.observation[..., :3], seen["image"])
    # As a policy converts what it is given.
    converted, is_batch = encodings.to_batch(environment.observation_spec(), seen)
    np.testing.assert_array_equal(converted, timestep.observation[None])
    assert not is_batch
    assert np.all(timestep.observation[..., 3] == seen["direction"])
    seen, *_ = raw.step(action)
    timestep = environment.step(action)
  assert environment.action_spec().num_values == 7


@pytest.mark.parametrize(
  ("wrap", "shape", "channels"),
  [
    (wrappers.ImgObsWrapper, (7, 7, 3), CELL),
    (wrappers.FullyObsWrapper, (8, 8, 4), ALL),
    (lambda env: wrappers.ViewSizeWrapper(env, 5), (5, 5, 4), ALL),
    (
      lambda env: wrappers.ImgObsWrapper(wrappers.RGBImgObsWrapper(env)),
      (64, 64, 3),
      (),
    ),
    (wrappers.FlatObsWrapper, (2835,), ()),
  ],
)
def test_wrappers_may_change_the_view(wrap, shape, channels):
  environment = environments.wrap(wrap(make()), seed=0)
  spec = environment.observation_spec()
  assert spec.shape == shape
  assert tuple(label for label, _ in getattr(spec, "channels", ())) == channels
  spec.validate(environment.reset().observation)


def test_categories_are_those_of_minigrid():
  constants = minigrid.core.constants
  assert minigrid_views.of_environment(make()).channels == (
    ("object", len(constants.OBJECT_TO_IDX)),
    ("colour", len(constants.COLOR_TO_IDX)),
    ("state", max(len(constants.STATE_TO_IDX), len(constants.DIR_TO_VEC))),
    ("direction", len(constants.DIR_TO_VEC)),
  )
  assert minigrid_views.of_environment(gymnasium.make("CartPole-v1")) is None


def test_a_time_limit_is_a_truncation_and_the_goal_a_termination():
  environment = environments.wrap(make("MiniGrid-Empty-5x5-v0", max_steps=6), seed=0)
  for _ in range(2):
    environment.reset()
    steps = [environment.step(DONE) for _ in range(6)]
    assert [step.last() for step in steps] == [False] * 5 + [True]
    assert (steps[-1].reward, steps[-1].discount) == (0, 1)
  environment.reset()
  *_, last = map(environment.step, (FORWARD, FORWARD, RIGHT, FORWARD, FORWARD))
  assert last.last() and last.discount == 0
  assert last.reward == pytest.approx(1 - 0.9 * 5 / 6)
