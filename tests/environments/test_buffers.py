"""Environments that write every observation and reward into one array."""

import fakes
import numpy as np

from explorax.environments import standard


class Walk(fakes.FakeEnvironment):
  """Returns each observation and each reward in the same array."""

  def __init__(self):
    super().__init__(reward=lambda t, action: float(t + action))
    self._arrays = np.zeros(3, np.float32), np.zeros(())

  def _observation(self):
    self._arrays[0][...] = super()._observation()
    return self._arrays[0]

  def step(self, action):
    timestep = super().step(action)
    self._arrays[1][...] = timestep.reward
    return timestep._replace(reward=self._arrays[1])


def test_timesteps_are_copies():
  """Whatever keeps one for later needs no copy of its own."""
  environment = standard.StandardEnvironment(Walk())
  episode = [environment.reset(), *(environment.step(1) for _ in range(5))]
  shown = [timestep.observation.tolist() for timestep in episode]
  assert shown == [[np.float32(t / 5)] * 3 for t in range(6)]
  assert [timestep.reward for timestep in episode] == [None, 2, 3, 4, 5, 6]
