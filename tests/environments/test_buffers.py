"""Environments that write every observation into one array, or return read-only ones.

Whatever keeps an observation or a reward for later has a copy.
"""

import fakes
import gymnasium
import jax
import numpy as np

import explorax
from explorax.agents.bonuses import ngu
from explorax.agents.bonuses.wrappers import gymnasium_wrapper


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


class GymWalk(gymnasium.Env):
  action_space = gymnasium.spaces.Discrete(2)
  observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (3,))

  def __init__(self, give):
    self._walk = Walk(give)

  def reset(self, *, seed=None, options=None):
    return self._walk.reset().observation, {}

  def step(self, action):
    timestep = self._walk.step(action)
    return timestep.observation, timestep.reward, timestep.last(), False, {}


def every_way(compute):
  """The result of `compute` is the same for all three environments."""
  expected, *others = [compute(give) for give in (fresh, reused, read_only)]
  for other in others:
    np.testing.assert_array_equal(other, expected)


def test_a_bonus_around_gymnasium():
  bonus = ngu.NeverGiveUp(hidden_sizes=(4,), embedding_size=3, memory_capacity=9)

  def bonuses(give):
    env = gymnasium_wrapper.BonusWrapper(GymWalk(give), bonus, beta=1.0)
    rewards = []
    for step in range(14):
      if step % 6 == 0:
        env.reset()
      rewards.append(env.step(step % 2)[1])
    return rewards

  every_way(bonuses)


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
