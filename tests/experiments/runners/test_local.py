"""The local runner: what repeats, what is counted, and how runs end."""

import math
from typing import Any

import fakes
import jax
import numpy as np
import pytest

from explorax import exploration
from explorax.agents.bonuses import tdu
from explorax.agents.q import agent as q_agent
from explorax.agents.q import config as q_config
from explorax.environments import factory, standard
from explorax.experiments import config as config_lib
from explorax.experiments.runners import common, local

TINY = {
  "hidden_sizes": (4,),
  "replay_capacity": 40,
  "min_replay_size": 6,
  "batch_size": 4,
}
TDU = {
  "min_replay_size": 6,
  "num_members": 2,
  "mask_prob": 0.5,
  "num_explorers": 2,
  "bonus": tdu.TDUncertainty(),
  "beta": 1.0,
  "prior_scale": 1.0,
  "exploration": exploration.Thompson(),
}


def test_a_seed_repeats_to_the_bit(train, bits):
  histories: list[list[tuple[Any, ...]]] = []
  weights = []
  for seed in (1, 1, 2):
    episodes: list[common.Episode] = []
    result = train(fakes.fake_choice(), seed=seed, on_episodes=episodes.extend, dqn=TDU)
    weights.append(bits(result.weights))
    histories.append([(e.episode_return, e.policy, e.metrics) for e in episodes])
  assert weights[0] == weights[1] and histories[0][1:] == histories[1][1:]
  assert weights[0] != weights[2] and histories[0] != histories[2]


def test_counts_of_an_episode(train):
  episodes: list[common.Episode] = []
  # Row 4, the last one of the first window, is there with the fifth step; it ends the
  # episode, and all five windows are padded to the end.
  dqn = {"n_step": 4, "min_replay_size": 1}
  result = train(fakes.fake(), episodes=3, on_episodes=episodes.extend, dqn=dqn)
  counts = [(e.episode, e.env_steps, e.episode_length) for e in episodes]
  assert counts == [(1, 5, 5), (2, 10, 5), (3, 15, 5)]
  assert [e.episode_return for e in episodes] == [5.0] * 3
  assert [e.learner_updates for e in episodes] == [1, 6, 11]
  assert episodes[1].metrics["loss"] > 0
  assert math.isnan(episodes[0].steps_per_second)
  assert episodes[2].steps_per_second > 0
  walls = [e.wall_seconds for e in episodes]
  assert walls == sorted(walls)
  assert {e.policy for e in episodes} == {"policy"}
  assert (result.env_steps, result.episodes, result.learner_updates) == (15, 3, 11)
  assert not result.interrupted
  assert all(isinstance(leaf, np.ndarray) for leaf in jax.tree.leaves(result.weights))


@pytest.mark.parametrize("steps, episodes, expected", [(12, None, 12), (12, 2, 10)])
def test_steps_end_the_run_in_mid_episode(train, steps, episodes, expected):
  result = train(fakes.fake(), steps=steps, episodes=episodes)
  assert result.env_steps == expected


def test_stops_when_asked(train):
  """It is asked once before each step."""
  left = [8]

  def stop() -> bool:
    left[0] -= 1
    return left[0] <= 0

  result = train(fakes.fake(), episodes=9, stop=stop)
  assert (result.episodes, result.env_steps) == (1, 7)
  assert result.interrupted


def test_a_reward_that_is_not_finite_ends_the_run(train):
  with pytest.raises(FloatingPointError, match="reward") as caught:
    train(fakes.fake_nan_reward(), seed=5, episodes=9)
  assert "stopped at environment step" in caught.value.__notes__[0]


def test_several_environments_share_steps_and_inference():
  made: list[tuple[str, int]] = []

  def make(role: str, number: int) -> standard.StandardEnvironment:
    made.append((role, number))
    environment = fakes.FakeEnvironment(episode_length=3 + number)
    return standard.StandardEnvironment(environment)

  first = make("first", 0)
  agent = q_agent.make_agent(q_config.QConfig(**TINY), factory.spec(first))
  ended: list[common.Episode] = []
  logged: list[common.LogRow] = []
  (result,) = local.run(
    agent,
    first,
    config_lib.RunConfig(num_envs=3, steps=29, replay="memory", log_every=10),
    common.Hooks(make_environment=make, on_episodes=ended.extend, on_log=logged.append),
  )
  # The last one is made after training.
  assert made == [("first", 0), ("training", 1), ("training", 2), ("evaluation", 0)]
  # Each has taken ten steps, and its episodes last 3, 4 or 5 of them.
  assert result.env_steps == 30
  assert [e.env_steps for e in ended if e.episode_length == 5] == [15, 30]
  assert [e.env_steps for e in ended if e.episode_length == 3] == [9, 18, 27]
  assert [e.episode for e in ended] == list(range(1, 8)) and result.episodes == 7
  # One for each step since the first six, of all three at a time.
  assert result.learner_updates == 30 - 3
  assert [row.env_steps for row in logged] == [12, 21, 30]


def test_several_environments_need_a_way_to_make_them():
  environment = standard.StandardEnvironment(fakes.FakeEnvironment())
  agent = q_agent.make_agent(q_config.QConfig(**TINY), factory.spec(environment))
  config = config_lib.RunConfig(num_envs=2, steps=9, replay="memory")
  with pytest.raises(ValueError, match="num_envs=2 needs an environment by its name"):
    local.run(agent, environment, config)
