"""Bonuses around gymnasium's environments, stepped by a plain loop."""

import collections

import gymnasium
import numpy as np
import pytest

from explorax.agents.bonuses import (
  counts,
  dynamics,
  e3b,
  gymnasium_wrapper,
  ngu,
  novel_d,
  rnd,
  tdu,
)

pytestmark = pytest.mark.newest


class Line(gymnasium.Env):
  """Action 1 moves right and 0 left; `start` is the least action and observation."""

  def __init__(self, start=0, *, dense=False, length=20):
    self.action_space = gymnasium.spaces.Discrete(2, start=start)
    self.observation_space = (
      gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)
      if dense
      else gymnasium.spaces.Discrete(10, start=start)
    )
    self._start, self._dense, self._length = start, dense, length

  def _observe(self):
    if self._dense:
      return np.array([np.cos(self.place), np.sin(self.place)], np.float32)
    return self._start + self.place

  def reset(self, *, seed=None, options=None):
    super().reset(seed=seed)
    self.place = self._time = 0
    return self._observe(), {}

  def step(self, action):
    self.place = int(np.clip(self.place + 2 * (action - self._start) - 1, 0, 9))
    self._time += 1
    return (
      self._observe(),
      1.0,
      False,
      self._time == self._length,
      {"place": self.place},
    )


def play(env, actions):
  """(rewards, intrinsic rewards), with resets where episodes end."""
  env.reset(seed=0)
  rewards, intrinsic = [], []
  for action in actions:
    _, reward, terminated, truncated, info = env.step(action)
    assert info["extrinsic_reward"] == 1.0 and "place" in info
    rewards.append(reward)
    intrinsic.append(info["intrinsic_reward"])
    if terminated or truncated:
      env.reset()
  return np.array(rewards), np.array(intrinsic)


@pytest.mark.parametrize("start", [0, 3])
def test_counts_are_those_of_a_table_over_all_episodes(start):
  actions = np.random.default_rng(0).integers(2, size=50)
  env = gymnasium_wrapper.BonusWrapper(Line(start), counts.Counts(), beta=0.5)
  rewards, intrinsic = play(env, start + actions)
  visits, place, expected = collections.Counter(), 0, []
  for step, action in enumerate(actions):
    if step % 20 == 0:
      place = 0
    visits[place, action] += 1
    expected.append((visits[place, action] + 0.01) ** -0.5)
    place = min(max(place + 2 * action - 1, 0), 9)
  np.testing.assert_allclose(intrinsic, expected, rtol=1e-5)
  np.testing.assert_allclose(rewards, 1 + 0.5 * intrinsic, rtol=1e-6)


def test_episodic_novelty_rewards_arrivals_and_forgets_at_an_episodes_end():
  bonus = ngu.NeverGiveUp(states="random", rnd=False, memory_capacity=50)
  env = gymnasium_wrapper.BonusWrapper(Line(dense=True, length=8), bonus, beta=1.0)
  # To the right, and back and forth between two places; the same in each episode.
  _, intrinsic = play(env, [1, 1, 1, 0, 1, 0, 1, 0] * 3)
  for episode in intrinsic.reshape(3, 8):
    # Nothing has been seen of the start but the start itself.
    assert min(episode[1:3]) > 3 * max(episode[4:])
  _, alike = play(
    gymnasium_wrapper.BonusWrapper(Line(dense=True, length=8), bonus, beta=0.0),
    [1, 1, 1, 0, 1, 0, 1, 0] * 3,
  )
  np.testing.assert_array_equal(alike, intrinsic)


def test_a_bonus_of_two_halves():
  """NovelD without its first half: a place pays where it is new in the episode."""
  bonus = novel_d.NovelD(alpha=0.0, output_size=4)
  env = gymnasium_wrapper.BonusWrapper(Line(length=6), bonus, beta=1.0)
  _, intrinsic = play(env, [1, 1, 0, 1, 1, 0] * 2)  # Places 1, 2, 1, 2, 3, 2.
  np.testing.assert_array_equal(intrinsic > 0, [1, 1, 0, 0, 1, 0] * 2)
  # With networks for acting, too: the ellipsoid's are trained every eight steps.
  bonus = e3b.E3B(
    dynamics.Dynamics(embedding_size=4, hidden_size=5),
    lifelong=rnd.RND(normalisation="none", end="destination"),
  )
  env = gymnasium_wrapper.BonusWrapper(Line(dense=True), bonus, beta=1.0)
  _, intrinsic = play(env, [1] * 20)
  assert np.isfinite(intrinsic).all() and np.count_nonzero(intrinsic) == 19


def test_bonuses_of_values_and_observations_of_parts_are_refused():
  with pytest.raises(TypeError, match="TDUncertainty is a bonus of an agent's values"):
    gymnasium_wrapper.BonusWrapper(Line(), tdu.TDUncertainty(), beta=1.0)
  env = Line()
  env.observation_space = gymnasium.spaces.Dict(a=env.observation_space)
  with pytest.raises(TypeError, match="join the parts into one"):
    gymnasium_wrapper.BonusWrapper(env, counts.Counts(), beta=1.0)
  with pytest.raises(ValueError, match="update_period is 0"):
    gymnasium_wrapper.BonusWrapper(Line(), rnd.RND(), beta=1.0, update_period=0)
