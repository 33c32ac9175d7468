"""Environments that write every observation into one array, or return read-only ones.

Whatever keeps an observation or a reward for later has a copy.
"""

import fakes
import jax
import numpy as np

import explorax


def fresh(array, buffer):
  return array


def reused(array, buffer):
  buffer[...] = array
  return buffer


def read_only(array, buffer):
  array.flags.writeable = False
  return array


class Walk(fakes.FakeEnvironment):
  """Its observations and rewards are returned as `give` says."""

  def __init__(self, give):
    super().__init__(episode_length=6, reward=lambda t, action: float(t + action))
    self._give = give
    self._arrays = np.zeros(3, np.float32), np.zeros(())

  def _observation(self):
    return self._give(super()._observation(), self._arrays[0])

  def step(self, action):
    timestep = super().step(action)
    if timestep.first():
      return timestep
    reward = self._give(np.array(timestep.reward), self._arrays[1])
    return timestep._replace(reward=reward)


def every_way(compute):
  """The result of `compute` is the same for all three environments."""
  expected, *others = [compute(give) for give in (fresh, reused, read_only)]
  for other in others:
    np.testing.assert_array_equal(other, expected)


def test_whole_runs_with_evaluations():
  def weights(give):
    agent = explorax.make_agent(
      "ngu",
      Walk(give),
      settings=[
        *("hidden_sizes=8", "batch_size=4", "min_replay_size=20", "lstm_size=4"),
        *("head_size=4", "replay_capacity=95", "sequence_length=4"),
        *("sequence_period=2", "bonus.hidden_sizes=8", "bonus.memory_capacity=20"),
        "updates_per_step=1",
      ],
    )
    result = explorax.train(
      agent,
      Walk(give),
      steps=40,
      replay="memory",
      eval_every=20,
      eval_episodes=1,
      evaluation_env=Walk(give),
    )
    flat = jax.tree.leaves(result.weights)
    return np.concatenate(
      [*(np.ravel(x) for x in flat), result.evaluations["episode_return"]]
    )

  every_way(weights)
