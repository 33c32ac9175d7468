"""Scores on Atari-57, by hand and against plain loops."""

import numpy as np
import pytest

from explorax.environments import atari57

pytestmark = pytest.mark.ops


def test_human_normalised_scores_by_hand():
  assert atari57.human_normalised_score("pong", -20.7) == 0.0
  assert atari57.human_normalised_score("pong", 14.6) == 1.0
  assert atari57.human_normalised_score("Pong", 20.0) == pytest.approx(40.7 / 35.3)
  # Montezuma's Revenge: random 0, human 4753.3.
  for name in ("montezuma_revenge", "MontezumaRevenge"):
    assert atari57.human_normalised_score(name, 9506.6) == pytest.approx(2.0)
  # Skiing's scores are negative, but a human's is the greater one.
  assert 0.0 < atari57.human_normalised_score("skiing", -10_000.0) < 1.0


def test_the_table_has_57_games_in_which_humans_are_better():
  table = atari57.references()
  assert len(table) == 57
  assert all(human > random for random, human in table.values())
  assert table["alien"] == (227.8, 7127.7)
  assert list(table) == sorted(table)


@pytest.mark.parametrize(
  ("game", "score", "message"),
  [
    ("pongg", 1.0, "Did you mean pong"),
    ("Pooyan", 1.0, "cannot be normalised"),
    ("pong", float("nan"), "nan"),
  ],
)
def test_unknown_games_and_invalid_scores_are_refused(game, score, message):
  with pytest.raises(ValueError, match=message):
    atari57.human_normalised_score(game, score)


def test_published_scores():
  """Badia et al. (2020), section 4.2: NGU is above human level on 51 of 57 games."""
  ngu = atari57.published("badia")["ngu"]
  normalised = [atari57.human_normalised_score(*item) for item in ngu.items()]
  assert len(normalised) == 57 and sum(x > 1 for x in normalised) == 51
  assert atari57.published("chen")["ucb"]["alien"] == 2817.6
  games = set(atari57.published("munos")["dqn"])
  assert games - set(atari57.references()) == set(atari57.BEYOND)


def test_relative_improvements_by_hand():
  assert atari57.relative_improvement(0.8, 0.2) == pytest.approx(300.0)
  # Better than a baseline that is worse than random play is an improvement.
  assert atari57.relative_improvement(0.1, -0.1) == pytest.approx(200.0)
  assert atari57.relative_improvement(0.5, 0.0) == float("inf")
  assert np.isnan(atari57.relative_improvement(0.0, 0.0))
