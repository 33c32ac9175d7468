"""`summary.json`, and the tables of it that a run prints."""

import math

import pytest

from explorax import environments
from explorax.experiments.recording import returns as returns_lib
from explorax.experiments.recording import summary

pytestmark = pytest.mark.ops


def rule(solved_in: int | None = None) -> environments.SolvedRule:
  solved = environments.SolvedRule(best_rate=0.5)
  if solved_in is not None:
    solved.update(solved_in, 0.0, treasures=0.25 * solved_in)
  return solved


@pytest.fixture
def make_summary(make_episode):
  def make(episodes: int = 4, evaluations=(), **changes) -> dict:
    returns = returns_lib.Returns()
    returns.evaluations.add(evaluations)
    for number in range(1, episodes + 1):
      returns.add(make_episode(number))
    last = make_episode(episodes)._replace(
      env_steps=12345, learner_updates=1, steps_per_second=321.0
    )
    arguments = {
      "status": "finished",
      "last": last if episodes else None,
      "wall_seconds": 61.0,
      "unfinished_steps": 0,
      "returns": returns,
      "solved_rule": None,
      "environment_failures": 0,
      "last_metrics": {},
      "evaluation_policy": "greedy policy",
    }
    return summary.of_run(**{**arguments, **changes})

  return make


def test_the_content_of_a_run_s_summary(make_summary):
  def trained(mean, episodes=1):
    return {
      "training_return": mean,
      "training_episodes": episodes,
      "best_mean_return_100": None,
    }

  assert make_summary(solved_rule=rule(solved_in=3)) == {
    "status": "finished",
    "evaluation_return": None,
    "evaluation_standard_error": None,
    "evaluation_episodes": 0,
    "evaluation_episodes_left": 0,
    "evaluation_policy": "greedy policy",
    "env_steps": 12345,
    "episodes": 4,
    "learner_updates": 1,
    "steps_per_second": 321.0,
    "wall_seconds": 61.0,
    "unfinished_steps": 0,
    "environment_failures": 0,
    **trained(4.0),
    "last_metrics": {},
    "policies": {
      "exploiter": {"episodes": 2, **trained(4.0)},
      "explorer": {"episodes": 2, **trained(3.0)},
    },
    "solved_episode": 3,
    "treasure_rate": 0.25,
    "best_treasure_rate": 0.5,
  }


def test_the_best_and_the_last_evaluation(make_summary, make_evaluation):
  evaluations = []
  for env_steps, returns in [(1000, [1, 2]), (2000, [7, 8]), (3000, [3, 4])]:
    evaluations += make_evaluation(env_steps, returns).episodes
  content = make_summary(
    evaluations=evaluations,
  )
  assert content["evaluation"] == {
    "evaluations": 3,
    "episodes_each": 2,
    "last": {"mean_return": 3.5, "env_steps": 3000},
    "best": {"mean_return": 7.5, "env_steps": 2000},
  }
  assert (content["evaluation_return"], content["evaluation_episodes"]) == (3.5, 2)
  assert content["evaluation_standard_error"] == 0.5
  title, first, second, *_ = summary.table("tdu on x", {0: content}).splitlines()
  assert title.startswith("tdu on x") and "Greedy policy: mean return 3.5" in first
  assert "± 0.5" in first and "Training: mean return 4 " in second


def test_the_evaluation_policy_has_a_name():
  def name(**config):
    return summary.evaluation_policy({"config": config})

  assert name(evaluation_epsilon=0.0, evaluation=None) == "greedy policy"
  assert "0.001" in name(evaluation_epsilon=0.001)
  other = name(evaluation_epsilon=0.0, evaluation={"class": "Thompson"})
  assert other == name(module="user's") != "greedy policy"


def test_several_seeds(make_summary):
  never = rule()
  never.update(4, 4.0, treasures=0.0)
  each = {
    3: make_summary(2, solved_rule=rule(solved_in=7)),
    4: make_summary(4, solved_rule=never),
  }
  content = summary.of_seeds(each)
  assert content["training_return"] == {"value": 3.0, "low": 2.0, "high": 4.0}
  assert content["evaluation_return"] is None
  assert (content["solved"], content["median_solved_episode"]) == (1, math.inf)
  assert content["seeds"]["3"] == {
    "episodes": 2,
    "evaluation_return": None,
    "training_return": 2.0,
    "solved_episode": 7,
    "treasure_rate": 0.25,
  }
  text = summary.table("tdu on x", each)
  rows = [line.split() for line in text.splitlines()[-2:]]
  assert rows == [["3", "2", "2"], ["4", "4", "4"]]
