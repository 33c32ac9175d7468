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
  def make(episodes: int = 4, last: dict | None = None, **changes) -> dict:
    returns = returns_lib.Returns()
    for number in range(1, episodes + 1):
      returns.add(make_episode(number))
    usual = {"env_steps": 12345, "learner_updates": 1, "steps_per_second": 321.0}
    known = make_episode(episodes)._replace(**usual, **(last or {}))
    arguments = {
      "status": "finished",
      "last": known if episodes else None,
      "wall_seconds": 61.0,
      "unfinished_steps": 0,
      "returns": returns,
      "solved_rule": None,
      "evaluations": returns_lib.Evaluations(),
      "environment_failures": 0,
      "replacements": {},
      "last_metrics": {},
    }
    return summary.of_run(**{**arguments, **changes})

  return make


def test_to_dict(make_summary):
  content = make_summary(solved_rule=rule(solved_in=3))
  assert content == {
    "status": "finished",
    "env_steps": 12345,
    "episodes": 4,
    "learner_updates": 1,
    "steps_per_second": 321.0,
    "wall_seconds": 61.0,
    "unfinished_steps": 0,
    "environment_failures": 0,
    "mean_return_last_100": 2.5,
    "best_mean_return_100": None,
    "last_metrics": {},
    "policies": {
      "exploiter": {
        "episodes": 2,
        "mean_return_last_100": 3.0,
        "best_mean_return_100": None,
      },
      "explorer": {
        "episodes": 2,
        "mean_return_last_100": 2.0,
        "best_mean_return_100": None,
      },
    },
    "solved_episode": 3,
    "treasure_rate": 0.25,
    "best_treasure_rate": 0.5,
  }


def test_the_table_is_for_reading(make_summary):
  text = summary.table("tdu on x", make_summary(solved_rule=rule(solved_in=3)))
  assert text.splitlines() == [
    "tdu on x: finished",
    "  4 episodes, 12,345 environment steps, 1 learner update in 1:01 "
    "(321 steps/s after compilation)",
    "  Deep Sea was solved in episode 3 by bsuite's rule; the treasure was found in "
    "25.0% of episodes (by the best policy in 50.0%).",
    "",
    "  policy      episodes   mean of last 4",
    "  all                4              2.5",
    "  exploiter          2                3",
    "  explorer           2                2",
  ]
  lines = summary.table("tdu on x", make_summary(120)).splitlines()
  assert lines[-3:] == [
    "  all              120               70.5               70.5",
    "  exploiter         60                 61",
    "  explorer          60                 60",
  ]


@pytest.fixture
def evaluations(make_evaluation) -> returns_lib.Evaluations:
  kept = returns_lib.Evaluations()
  for env_steps, returns in [(1000, [1, 2]), (2000, [7, 8]), (3000, [3, 4])]:
    kept.add(make_evaluation(env_steps, returns).episodes)
  return kept


def test_evaluations_and_failures_are_told(make_summary, evaluations):
  content = make_summary(evaluations=evaluations, environment_failures=1)
  assert content["environment_failures"] == 1
  assert content["evaluation"] == {
    "evaluations": 3,
    "episodes_each": 2,
    "last": {"mean_return": 3.5, "env_steps": 3000},
    "best": {"mean_return": 7.5, "env_steps": 2000},
  }
  lines = summary.table("x", content).splitlines()
  assert (
    "  Evaluation (2 episodes each): mean return 3.5 at step 3,000 (last), 7.5 at step "
    "2,000 (best of 3)."
  ) in lines
  assert "  The environment was recreated after 1 failure." in lines


def test_the_table_of_a_run_without_episodes(make_summary):
  empty = make_summary(0, status="interrupted")
  text = summary.table("x", empty)
  assert "interrupted" in text and "policy" not in text and "steps/s" not in text
  assert empty["mean_return_last_100"] is None
  assert not {"evaluation", "replacements", "solved_episode"} & set(empty)
  unsolved = make_summary(0, solved_rule=rule())
  table = summary.table("x", unsolved)
  assert "Deep Sea was not solved in 0 episodes by bsuite's rule.\n" in table + "\n"


@pytest.mark.parametrize(
  ("seconds", "text"),
  [(0, "0:00"), (59.6, "1:00"), (754, "12:34"), (3723, "1:02:03"), (-1, "0:00")],
)
def test_duration(seconds, text):
  assert summary.duration(seconds) == text


def test_an_episode_that_was_broken_off_is_told(make_summary):
  words = "The run ended 1,234 steps into another episode."
  assert words in summary.table("a run", make_summary(unfinished_steps=1234))


def test_the_last_episodes_metrics_are_told(make_summary):
  metrics = {"finite": 1.0, "intrinsic_return": 12.3456, "loss": math.nan}
  last = summary.table("title", make_summary(last_metrics=metrics)).splitlines()[-1]
  assert last == "  last episode: intrinsic_return 12.35, loss nan"


def test_of_several_seeds(make_summary):
  never = rule()
  never.update(4, 4.0, treasures=0.0)
  each = {
    3: make_summary(2, solved_rule=rule(solved_in=7)),
    4: make_summary(4, solved_rule=never),
  }
  content = summary.of_seeds(each)
  assert content["mean_return_last_100"] == {"value": 2.0, "low": 1.5, "high": 2.5}
  assert (content["solved"], content["median_solved_episode"]) == (1, math.inf)
  assert content["seeds"]["3"] == {
    "episodes": 2,
    "mean_return_last_100": 1.5,
    "solved_episode": 7,
    "treasure_rate": 0.25,
  }
  assert summary.table_of_seeds("tdu on x", content).splitlines() == [
    "tdu on x: finished",
    "  2 seeds, 12,345 environment steps each in 1:01 "
    "(642 steps/s in all after compilation)",
    "  mean return of the last 2 episodes: 2 (95 % interval over seeds: 1.5 to 2.5; "
    "with two seeds it says little)",
    "  by seed: 3: 1.5, 4: 2.5",
    "  Deep Sea was solved by 1 of 2 seeds by bsuite's rule; the treasure was found in "
    "12.5% of episodes (by the best policy in 50.0%).",
  ]
