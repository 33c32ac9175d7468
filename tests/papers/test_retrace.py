"""Paper 5's figures: exact operators, published tables, and scores of runs.

The theorems are in tests/losses/test_operators_on_mdps.py.
"""

import collections
import types

import numpy as np
import pytest

from explorax.environments import atari57
from explorax.papers.retrace import operators, scores

SIZES = {"num_states": 4, "num_actions": 3, "concentration": 0.5, "discount": 0.9}
MDP, PI = operators.draw_processes(range(20), *SIZES.values())
MU = operators.away_from(PI, 0.4)


@pytest.mark.parametrize("trace", ["retrace", "tree_backup"])
def test_the_operator_is_the_sum_of_its_terms_and_its_factor_remark_1_s(trace):
  """RQ = Q + Σ (γ P^{cμ})^t (T^π Q − Q), and η = 1 − (1 − γ) Σ (γ P^{cμ})^t 1."""
  q = np.random.default_rng(0).normal(size=PI.shape)
  kernel = operators.kernel({"trace": trace, "lambda": 0.9}, MDP, PI, MU)
  term, one = MDP.bellman(PI, q) - q, np.ones(PI.shape)
  total, length = np.zeros(PI.shape), np.zeros(PI.shape)
  for _ in range(400):
    total, length = total + term, length + one
    term, one = (
      np.einsum("nij,nj->ni", kernel, x.reshape(20, -1)).reshape(PI.shape)
      for x in (term, one)
    )
  result = operators.apply(MDP, kernel, PI, q)
  np.testing.assert_allclose(result, q + total, atol=1e-10)
  factor = operators.contraction(MDP, kernel, PI)
  np.testing.assert_allclose(
    factor, np.abs(1 - 0.1 * length).max(axis=(1, 2)), atol=1e-10
  )


def test_operators_contract_on_policy_and_converge_to_the_best_values():
  settings = {"trace": "retrace", "lambda": 1.0, "seeds": [0, 1, 2], **SIZES}
  factor = operators.evaluation({**settings, "num_distances": 3})["factor"]
  # On-policy and at λ = 1, Retrace is done at once.
  np.testing.assert_allclose(factor[:, 0], 0, atol=1e-5)
  assert factor.shape == (3, 3) and np.all(factor < 0.9)
  settings |= {"worst_share": 0.9, "num_iterations": 40}
  error = operators.control(settings)["error"]
  assert error.shape == (3, 41)
  assert np.all(error[:, -1] < 0.9**40 * error[:, 0] + 1e-4)


def test_categories_are_those_of_paper_3s_table_4():
  """How many games each has, and which of table 2's algorithms is the best in them.

  The printed table has 23, 8, 8 and 5 games, and of them for bootstrapped DQN, double
  DQN, voting and UCB: 0 3 5 15, 0 2 1 5, 0 1 1 6 and 1 0 2 2. Pong, where two reach 21,
  is among UCB's there, and Montezuma's Revenge, where two reach 4, is not counted.
  """
  published, counts = atari57.published("chen"), collections.defaultdict(list)
  for game, category in atari57.categories().items():
    if game in published["ucb"]:
      best = max(x[game] for x in published.values())
      winners = [name for name, x in published.items() if x[game] == best]
      counts[category].append(winners[0] if len(winners) == 1 else "tied")
  assert {
    category: tuple(map(winners.count, (*published, "tied")))
    for category, winners in counts.items()
  } == {
    "human_optimal": (0, 3, 5, 14, 1),
    "score_exploit": (0, 2, 1, 5, 0),
    "dense_reward": (0, 1, 1, 6, 0),
    "sparse_reward": (1, 0, 2, 2, 1),
  }


@pytest.mark.parametrize("is_race", [False, True])
def test_scores_are_of_the_episodes_that_end_in_a_tenth(is_race):
  rng = np.random.default_rng(0)
  lengths = rng.integers(1, 300, 90)
  lengths[40] = 2500 if is_race else 300  # None ends in a tenth: no goal is reached.
  returns = rng.integers(0, 5, 90).astype(float)
  ends = np.cumsum(lengths)
  steps = int(ends[-1]) - 100  # The last one ends after them.
  names = "env_steps", "episode_return", "episode_length"
  rows = zip(ends, returns, lengths, strict=True)
  episodes = [types.SimpleNamespace(**dict(zip(names, x, strict=True))) for x in rows]
  tenths = scores.window_scores(episodes, steps, is_race)
  for i, score in enumerate(tenths):
    first, last = i * steps / 10, (i + 1) * steps / 10 if i < 9 else np.inf
    own = (first < ends) & (ends <= last)
    by = lengths[own].sum() / 1000 if is_race else own.sum()
    assert score == pytest.approx(returns[own].sum() / max(by, 0.001))
  assert np.all(tenths > 0) != is_race
