"""Small deterministic environments for tests, made directly or by name.

By name: `fakes:fake`, and likewise the others at the end of this file.
"""

import functools
import itertools
import math
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
    one_hot: bool = False,
  ):
    """Makes one.

    Args:
      truncate: end episodes by a truncation (discount 1), not a termination.
      reward: of every step, or a function of (t, action), t counting from 1.
      nan_at_step: whose reward is NaN, counted from 1 over all episodes.
    """
    self._episode_length = episode_length
    self._shape = observation_shape
    self._num_actions = num_actions
    self._end = dm_env.truncation if truncate else dm_env.termination
    self._reward = reward if callable(reward) else lambda t, action: reward
    self._nan_at_step = nan_at_step
    self._one_hot = one_hot
    self._time = episode_length
    self._total_steps = 0

  def reset(self) -> dm_env.TimeStep:
    self._time = 0
    return dm_env.restart(self._observation())

  def step(self, action: Any) -> dm_env.TimeStep:
    if self._time == self._episode_length:
      return self.reset()
    assert 0 <= action < self._num_actions
    self._time += 1
    self._total_steps += 1
    reward = self._reward(self._time, int(action))
    if self._total_steps == self._nan_at_step:
      reward = math.nan
    make = self._end if self._time == self._episode_length else dm_env.transition
    return make(reward=reward, observation=self._observation())

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


class CrashingEnvironment(FakeEnvironment):
  """A FakeEnvironment that raises a RuntimeError, from then on until it is remade."""

  def __init__(self, crash_at_step: int, **kwargs: Any):
    """Steps count from 1, over all episodes."""
    super().__init__(**kwargs)
    self._steps = itertools.count(1)
    self._crash_at_step = crash_at_step

  def step(self, action: Any) -> dm_env.TimeStep:
    if next(self._steps) >= self._crash_at_step:
      raise RuntimeError("the emulator went away")
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
# The third step of the second episode raises an error.
fake_crashing = functools.partial(CrashingEnvironment, crash_at_step=8)
