"""Paper 4's figures: what their tasks compute."""

import functools
import types as modules

import numpy as np

from explorax import environments
from explorax.papers.tdu import problems


def solved_of(good_from, max_episodes, env, **settings) -> problems.Solved:
  """Episodes that find the treasure from each seed's n-th on."""
  settings |= {"seeds": list(range(len(good_from))), "max_episodes": max_episodes}
  solved = problems.Solved(settings, functools.partial(environments.solved_rule, env))
  for episode in range(1, max_episodes + 1):
    for seed, first in enumerate(good_from):
      bad = float(episode < first)
      metrics = {"bad_episode": bad, "denoised_return": 1.0 - bad}
      played = {"seed": seed, "metrics": metrics, "episode_return": 0.5}
      solved.add_episode(modules.SimpleNamespace(**played))
  assert solved.has_ended()
  return solved


def test_a_problem_is_solved_when_the_average_regret_is_below_its_threshold():
  # After b bad ones and g good ones b / (b + g) < 0.9: g > b / 9.
  results = solved_of([1, 91, 500], 200, "jax:deep_sea/8").results()
  assert results["solved"].tolist() == [1, 90 + 11, 0]
  assert results["episodes"].tolist() == [1, 101, 200]
  assert results["by_bsuite"].tolist() == results["solved"].tolist()


def test_the_stochastic_sea_is_mastered_at_nearly_the_best_policys_rate():
  env = "jax:deep_sea/9,stochastic=true"
  results = solved_of([1, 2101, 2201], 2300, env, until=0.9).results()
  # Of 500 episodes, 0.9 · (8/9)^8 = 0.351 have to find the treasure: 176.
  assert results["mastered"].tolist() == [176, 2276, 0]
  # g / (b + g) > 0.2 · (8/9)^8, from episode 100 on. A late run is mastered before.
  assert results["solved"].tolist() == [100, 2278, 0]
  assert results["episodes"].tolist() == [176, 2278, 2300]


def test_seeds_learn_side_by_side_in_problems_of_their_own():
  """A plain DQN, which compiles quickly."""
  settings = {"agent": "dqn", "size": 3, "max_episodes": 12, "seeds": [0, 1]}
  results = problems.deep_sea({**settings, "own_mapping": True})
  solved = results["solved"]
  np.testing.assert_array_equal(results["episodes"], np.where(solved, solved, 12))
