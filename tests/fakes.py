"""Small deterministic environments for tests, made directly or by name.

By name: `fakes:fake`, and likewise the others at the end of this file.
"""

import functools
import itertools
import math
import time
from collections.abc import Callable
from typing import Any

import dm_env
import numpy as np

from explorax.environments import specs


class FakeEnvironment(dm_env.Environment):
  """Episodes of a fixed length with observations that tell the time.

  In step t of T = `episode_length` every entry of the observation is t / T. With
  `one_hot` it is a one-hot array instead, its entry t (modulo their number) being 1,
  and zeros only at the end, like Deep Sea's. Actions change nothing but the reward.
  """

  def __init__(
    self,
    episode_length: int = 5,
    observation_shape: tuple[int, ...] = (3,),
    num_actions: int = 2,
    *,
    truncate: bool = False,
    reward: float | Callable[[int, int], float] = 1.0,
    nan_at_step: int | None = None,
    nan_in: str = "reward",
    one_hot: bool = False,
  ):
    """Makes one.

    Args:
      episode_length: steps in an episode, at least 1.
      observation_shape: of the observations.
      num_actions: how many actions there are.
      truncate: end episodes by a truncation (discount 1), not a termination.
      reward: of every step, or a function of (t, action), t counting from 1.
      nan_at_step: in which step, counted from 1 over all episodes, a NaN appears.
      nan_in: where it appears, `reward` or `observation`.
      one_hot: give one-hot observations.
    """
    if episode_length < 1:
      raise ValueError(f"episode_length is {episode_length}; it must be at least 1.")
    if nan_in not in ("reward", "observation"):
      raise ValueError(f"nan_in is {nan_in!r}; it must be 'reward' or 'observation'.")
    self._episode_length = episode_length
    self._shape = observation_shape
    self._num_actions = num_actions
    self._end = dm_env.truncation if truncate else dm_env.termination
    self._reward = reward if callable(reward) else lambda t, action: reward
    self._nan_at_step = nan_at_step
    self._nan_in = nan_in
    self._one_hot = one_hot
    self._time = episode_length
    self._total_steps = 0

  def reset(self) -> dm_env.TimeStep:
    self._time = 0
    return dm_env.restart(self._observation())

  def step(self, action: Any) -> dm_env.TimeStep:
    if self._time == self._episode_length:
      return self.reset()
    if not 0 <= action < self._num_actions:
      raise ValueError(
        f"action {action} is not one of the {self._num_actions} from 0 on."
      )
    self._time += 1
    self._total_steps += 1
    reward = self._reward(self._time, int(action))
    observation = self._observation()
    if self._total_steps == self._nan_at_step:
      if self._nan_in == "reward":
        reward = math.nan
      else:
        observation.flat[0] = math.nan
    make = self._end if self._time == self._episode_length else dm_env.transition
    return make(reward=reward, observation=observation)

  def _observation(self) -> np.ndarray:
    if not self._one_hot:
      return np.full(self._shape, self._time / self._episode_length, np.float32)
    observation = np.zeros(self._shape, np.float32)
    if self._time < self._episode_length:
      observation.flat[self._time % observation.size] = 1.0
    return observation

  def observation_spec(self) -> dm_env.specs.Array:
    if self._one_hot:
      return specs.OneHotArray(self._shape, "observation")
    return dm_env.specs.Array(self._shape, np.float32, "observation")

  def action_spec(self) -> dm_env.specs.DiscreteArray:
    return dm_env.specs.DiscreteArray(self._num_actions, np.int32, "action")


class DrawnEnvironment(FakeEnvironment):
  """A FakeEnvironment that draws itself: a bar as long as the episode so far."""

  def render(self) -> np.ndarray:
    frame = np.full((40, 60, 3), 30, np.uint8)
    width = 60 * self._time // self._episode_length
    frame[15:25, :width] = (240, 160, 40)
    return frame


class CrashingEnvironment(FakeEnvironment):
  """A FakeEnvironment that raises a RuntimeError, from then on until it is remade."""

  def __init__(
    self,
    crash_at_step: int,
    **kwargs: Any,
  ):
    """Steps count from 1, over all episodes."""
    super().__init__(**kwargs)
    self._steps = itertools.count(1)
    self._crash_at_step = crash_at_step

  def step(self, action: Any) -> dm_env.TimeStep:
    if next(self._steps) >= self._crash_at_step:
      raise RuntimeError("the emulator went away")
    return super().step(action)


class HangingEnvironment(FakeEnvironment):
  """A FakeEnvironment one of whose steps, counted from 1, takes an hour."""

  def __init__(self, hang_at_step: int, **kwargs: Any):
    super().__init__(**kwargs)
    self._steps_left = hang_at_step

  def step(self, action: Any) -> dm_env.TimeStep:
    self._steps_left -= 1
    if not self._steps_left:
      time.sleep(3600)
    return super().step(action)


# By name, with episodes of 5 steps, 3 numbers an observation and 2 actions:
fake = FakeEnvironment
fake_truncated = functools.partial(FakeEnvironment, truncate=True)
fake_one_hot = functools.partial(
  FakeEnvironment, observation_shape=(4, 4), one_hot=True
)
# Action 1 is rewarded and action 0 is not: for learning tests.
fake_choice = functools.partial(FakeEnvironment, reward=lambda t, action: float(action))
fake_nan_reward = functools.partial(FakeEnvironment, nan_at_step=12)
fake_nan_observation = functools.partial(fake_nan_reward, nan_in="observation")
fake_drawn = DrawnEnvironment
# The third step of the second episode raises an error.
fake_crashing = functools.partial(CrashingEnvironment, crash_at_step=8)
fake_hanging = functools.partial(HangingEnvironment, hang_at_step=13)
