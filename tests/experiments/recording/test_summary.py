"""`summary.json`, and the tables of it that a run prints."""

import math

import pytest

from explorax.experiments.recording import rows, summary

RECORD = {"env": "jax:catch"}
SEA = {"env": "bsuite:deep_sea/0"}


@pytest.fixture
def make_summary(make_columns, make_episode):
  def make(episodes: int = 4, evaluations=None, **changes) -> dict:
    last = make_episode(episodes)._replace(
      env_steps=12345, learner_updates=1, steps_per_second=321.0
    )
    columns = {rows.METRICS: make_columns(episodes, **changes.pop("episode", {}))}
    if evaluations is not None:
      columns[rows.EVALUATION] = evaluations
    arguments = {
      "end": summary.End("finished", 61.0),
      "record": RECORD,
      "columns": columns,
      "totals": last if episodes else None,
    }
    return summary.summarize_run(**{**arguments, **changes})

  return make


def test_returns_are_of_the_end_of_training(make_summary):
  solved = {"metrics": {"bad_episode": 0.0, "denoised_return": 0.25}}
  content = make_summary(record=SEA, episode={**solved, "learner_updates": 1})
  assert (content["training_return"], content["training_episodes"]) == (4.0, 1)
  assert content["evaluation_return"] is None and content["env_steps"] == 12345
  assert (content["solved_episode"], content["treasure_rate"]) == (1, 0.25)


def test_a_run_without_a_result_has_the_counts_of_its_rows(make_summary):
  assert make_summary(3, totals=None)["env_steps"] == 30
  empty = make_summary(0)
  assert (empty["env_steps"], empty["training_return"]) == (0, None)
  assert math.isnan(empty["steps_per_second"])
  assert "0 episodes" in summary.to_text("tdu on x", {0: empty})


def test_the_last_evaluation(make_summary, make_evaluations):
  evaluations = make_evaluations((1000, [1, 2]), (2000, [7, 8]), (3000, [3, 4]))
  content = make_summary(evaluations=evaluations)
  assert (content["evaluation_return"], content["evaluation_episodes"]) == (3.5, 2)
  assert content["evaluation_standard_error"] == 0.5
  title, first, *others = summary.to_text("tdu on x", {0: content}).splitlines()
  assert title.startswith("tdu on x") and "Evaluation: mean return 3.5" in first
  assert "± 0.5" in first and "Training: mean return 4 " in others[0]


def test_several_seeds(make_summary):
  bad = {"learner_updates": 1, "metrics": {"bad_episode": 1.0}}
  good = {**bad, "metrics": {"bad_episode": 0.0}}
  seeds = {
    3: make_summary(2, record=SEA, episode=good),
    4: make_summary(4, record=SEA, episode=bad),
  }
  content = summary.summarize_seeds(seeds)
  assert content["training_return"] == {"value": 3.0, "low": 2.0, "high": 4.0}
  assert content["evaluation_return"] is None
  assert (content["solved"], content["median_solved_episode"]) == (1, math.inf)
  assert content["seeds"]["3"]["episodes"] == 2
  text = summary.to_text("tdu on x", seeds)
  assert "mean return 3, 95 % interval 2 to 4" in text and "1 of 2 seeds" in text
