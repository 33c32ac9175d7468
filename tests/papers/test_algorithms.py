"""Scores of algorithms, by hand and against plain loops."""

import pytest

from explorax.environments import atari57
from explorax.papers import algorithms


def test_inter_algorithm_scores_by_hand():
  """Two games of Munos et al. 2016, table 2, and one in which all are equal."""
  z = algorithms.inter_algorithm_scores(
    {
      "tree_backup": {"alien": 2508.62, "amidar": 1221.00, "equal": 3.0},
      "retrace": {"alien": 3109.21, "amidar": 1247.84, "equal": 3.0},
      "dqn": {"alien": 2088.81, "amidar": 772.30, "equal": 3.0},
      "q_star": {"alien": 154.35, "amidar": 16.04, "equal": 3.0},
    }
  )
  assert z["retrace"] == {"alien": 1.0, "amidar": 1.0, "equal": 1.0}
  assert z["q_star"] == {"alien": 0.0, "amidar": 0.0, "equal": 1.0}
  assert z["dqn"]["alien"] == pytest.approx((2088.81 - 154.35) / (3109.21 - 154.35))


@pytest.mark.parametrize(
  ("scores", "message"),
  [
    ({"a": {"pong": 1.0}}, "1 algorithm"),
    ({"a": {"pong": 1.0}, "b": {"qbert": 1.0}}, "pong, qbert"),
    ({"a": {"pong": 1.0}, "b": {"pong": float("inf")}}, "inf"),
    ({"a": {}, "b": {}}, "no scores"),
  ],
)
def test_algorithms_that_cannot_be_compared(scores, message):
  with pytest.raises(ValueError, match=message):
    algorithms.inter_algorithm_scores(scores)


def test_categories_are_those_of_paper_3s_table_4():
  """How many games each has, and which of table 2's algorithms is the best in them.

  The printed table has 23, 8, 8 and 5 games, and of them for bootstrapped DQN, double
  DQN, voting and UCB: 0 3 5 15, 0 2 1 5, 0 1 1 6 and 1 0 2 2. Pong, where two reach 21,
  is among UCB's there, and Montezuma's Revenge, where two reach 4, is not counted.
  """
  assert set(atari57.categories().values()) == set(atari57.CATEGORIES)
  assert set(atari57.references()) - set(atari57.categories()) == {
    *("atlantis", "tennis", "time_pilot", "video_pinball", "yars_revenge")
  }
  counts = algorithms.best_by_category(atari57.published("chen"))
  assert {category: tuple(row.values()) for category, row in counts.items()} == {
    "human_optimal": (0, 3, 5, 14, 1),
    "score_exploit": (0, 2, 1, 5, 0),
    "dense_reward": (0, 1, 1, 6, 0),
    "sparse_reward": (1, 0, 2, 2, 1),
  }
