"""Environments that write every observation into one array.

Whatever keeps an observation or a reward for later has a copy.
"""

import fakes
import jax
import numpy as np

import explorax


class Walk(fakes.FakeEnvironment):
  """Returns each observation and reward in an array of its own, or in the same one."""

  def __init__(self, reuse):
    super().__init__(episode_length=6, reward=lambda t, action: float(t + action))
    self._reuse = reuse
    self._arrays = np.zeros(3, np.float32), np.zeros(())

  def _given(self, array, buffer):
    if not self._reuse:
      return array
    buffer[...] = array
    return buffer

  def _observation(self):
    return self._given(super()._observation(), self._arrays[0])

  def step(self, action):
    timestep = super().step(action)
    if timestep.first():
      return timestep
    reward = self._given(np.array(timestep.reward), self._arrays[1])
    return timestep._replace(reward=reward)


def test_whole_runs_with_evaluations():
  def weights(reuse):
    agent = explorax.make_agent(
      "ngu",
      Walk(reuse),
      settings=[
        *("hidden_sizes=8", "batch_size=4", "min_replay_size=20", "lstm_size=4"),
        *("head_size=4", "replay_capacity=95", "sequence_length=4"),
        *("sequence_period=2", "bonus.hidden_sizes=8", "bonus.memory_capacity=20"),
        "updates_per_step=1",
      ],
    )
    result = explorax.train(
      agent,
      Walk(reuse),
      steps=40,
      replay="memory",
      eval_every=20,
      eval_episodes=1,
      evaluation_env=Walk(reuse),
    )
    flat = [np.ravel(x) for x in jax.tree.leaves(result.weights)]
    return np.concatenate([*flat, result.evaluations["episode_return"]])

  np.testing.assert_array_equal(weights(True), weights(False))
