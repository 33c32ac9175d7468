"""The scores are bsuite's: on stored logs of bsuite's, equal to what bsuite computed.

`make_expected.py` computed them.
"""

import json
import math
import pathlib

import numpy as np
import pytest
from bsuite import sweep

from explorax.experiments.reports import bsuite_scores as scores

DATA = pathlib.Path(__file__).parent / "data"
SETS = ("long", "short")


@pytest.fixture(scope="module")
def expected():
  return json.loads((DATA / "expected.json").read_text())


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("experiment", scores.EXPERIMENTS)
def test_scores_equal_bsuites(experiment, name, logs, expected):
  own = scores.score(experiment, logs[name][experiment])
  bsuites = expected["scores"][name][experiment]
  if bsuites is None:
    assert math.isnan(own)
  else:
    np.testing.assert_allclose(own, bsuites, rtol=0, atol=1e-12)


def test_every_experiment_and_tag_is_there_and_stored_scores_tell_them_apart(expected):
  assert sorted(scores.EXPERIMENTS) == sorted(expected["tags_of"])
  assert set(scores.TAGS) == set(sweep.TAGS)
  for experiment, tags in expected["tags_of"].items():
    assert set(scores.tags(experiment)) == set(tags)
  long = expected["scores"]["long"]
  assert all(0 < value < 1 for value in long.values()), long


def _deep_sea(*bad: int) -> dict[str, np.ndarray]:
  """A log with so many bad episodes up to episodes 1, 2, …"""
  return {
    "episode": np.arange(1.0, len(bad) + 1),
    "total_bad_episodes": np.array(bad, np.float64),
  }


def test_deep_sea_is_solved_in_the_first_episode_below_the_threshold():
  for log, end in (
    (_deep_sea(1, 2, 2, 2), (3, True)),
    (_deep_sea(1, 2, 3, 4), (4, False)),
    (_deep_sea(*range(1, 10), 9), (10, False)),  # 9 of 10 is not below 0.9.
  ):
    assert scores.solution("deep_sea/3", log) == (*end, True)
  early = _deep_sea(0, 0, 0)
  assert scores.solution("deep_sea_stochastic/3", early) == (3, False, False)
  logs = {"deep_sea_stochastic/3": early}
  assert math.isnan(scores.score("deep_sea_stochastic", logs))


@pytest.mark.parametrize(
  ("experiment", "column", "good"),
  [("cartpole", "raw_return", 500.0), ("cartpole_swingup", "total_return", 100.0)],
)
def test_half_of_the_score_is_for_an_episode_that_is_better_than_good(
  experiment, column, good
):
  for best, score in ((good, 0.0), (good + 0.5, 0.5)):
    log = {"episode": [1.0], column: [0.0], "best_episode": [best]}
    logs = {f"{experiment}/0": {name: np.array(x) for name, x in log.items()}}
    assert scores.score(experiment, logs) == score
