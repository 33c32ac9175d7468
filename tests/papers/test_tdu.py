"""Paper 4's figures: what their tasks compute."""

import functools

import numpy as np
import pytest

from explorax.papers import types
from explorax.papers.tdu import bias, episodes, runs


def played(good_from, max_episodes, rule, **settings) -> runs.Progress:
  """Episodes that find the treasure from each seed's n-th on."""
  settings |= {"seeds": list(range(len(good_from))), "max_episodes": max_episodes}
  progress = runs.Progress(settings, rule)
  for episode in range(1, max_episodes + 1):
    for seed, first in enumerate(good_from):
      bad = float(episode < first)
      progress.count(seed, {"bad_episode": bad, "denoised_return": 1.0 - bad})
  assert progress.is_over()
  return progress


def test_a_problem_is_solved_when_the_average_regret_is_below_its_threshold():
  rule = functools.partial(runs.deep_sea_rule, 8, stochastic=False)
  # After b bad ones and g good ones b / (b + g) < 0.9: g > b / 9.
  results = played([1, 91, 500], 200, rule).results()
  assert results["solved"].tolist() == [1, 90 + 11, 0]
  assert results["episodes"].tolist() == [1, 101, 200]
  assert results["by_bsuite"].tolist() == results["solved"].tolist()
  assert results["treasures"].tolist() == [1, 11, 0]


def test_the_stochastic_sea_is_mastered_at_nearly_the_best_policys_rate():
  rule = functools.partial(runs.deep_sea_rule, 9, stochastic=True)
  results = played([1, 2101, 2201], 2300, rule, until=0.9).results()
  # Of 500 episodes, 0.9 · (8/9)^8 = 0.351 have to find the treasure: 176.
  assert results["mastered"].tolist() == [176, 2276, 0]
  # g / (b + g) > 0.2 · (8/9)^8, from episode 100 on. A late run is mastered before.
  assert results["solved"].tolist() == [100, 2278, 0]
  assert results["episodes"].tolist() == [176, 2278, 2300]


def test_unsolved_problems_count_with_the_limit():
  solved = {0: 5, 1: 0, 2: 7, 3: 0, 4: 9}
  table = types.Table(
    types.CompletedTask(
      "task",
      {"size": size, "seeds": seeds, "max_episodes": 20},
      {
        "solved": np.array([solved[s] if size == 3 else 0 for s in seeds]),
        "episodes": np.array([solved[s] or 20 for s in seeds]),
      },
      1.0,
      {},
    )
    for size in (3, 4)
    for seeds in ([4], [2, 3], [0, 1])
  )
  small = table.where(size=3)
  assert episodes.to_solve(small)[:, 0].tolist() == [5, 20, 7, 20, 9]
  assert table.score(episodes.is_solved).tolist() == [0.5, 0, 0.5, 0, 0.5]


@pytest.mark.parametrize("own_mapping", [False, True])
def test_seeds_learn_side_by_side_in_problems_of_their_own(own_mapping):
  """A plain DQN, which compiles quickly, in trees and in Deep Sea."""
  settings = {"agent": "dqn", "size": 3, "max_episodes": 12, "seeds": [0, 1]}
  if own_mapping:
    results = runs.solve_deep_sea({**settings, "own_mapping": True})
  else:
    results = runs.solve_tree(settings)
  solved = results["solved"]
  np.testing.assert_array_equal(
    results["episodes"], np.where(solved > 0, solved, settings["max_episodes"])
  )
  assert (results["treasures"] <= results["episodes"]).all()


def test_the_bias_of_uncertainty_is_that_of_the_lemmas():
  """Lemmas 4 and 5, from the moments alone.

  The paper's equations 38 and 50 print plus signs before the squared mean's bias, which
  is subtracted in a variance; both signs alike, its conclusions stand.
  """
  rng = np.random.default_rng(0)
  gamma = 0.9
  for ratios in ([1.1, 0.9, 1.05, 0.8], [1.3, 1.2, 0.9, 1.5], [1.0, 1.0, 1.0, 1.0]):
    rho, phi, kappa, alpha = ratios
    (q, q_t), (own, own_t) = belief, estimate = bias.draw_pair(rng, *ratios)
    b, c = own.mean() - q.mean(), (own**2).mean() - (q**2).mean()
    assert own_t.mean() - q_t.mean() == pytest.approx(rho * b)
    assert (own_t**2).mean() - (q_t**2).mean() == pytest.approx(phi * c)
    assert (own * own_t).mean() - (q * q_t).mean() == pytest.approx(kappa * c)
    assert q_t.mean() == pytest.approx(alpha * q.mean())
    found = bias.biases(belief, estimate, gamma)
    a = q.mean() * b
    w1 = gamma**2 * phi - 2 * gamma * kappa + 1
    w2, w3 = (gamma * alpha - 1) * (gamma * rho - 1), (gamma * rho - 1) ** 2
    expected = [b, c - 2 * a - b**2, (gamma * rho - 1) * b]
    expected.append(w1 * c - 2 * w2 * a - w3 * b**2)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    assert abs(found[3] - (w1 * c + 2 * w2 * a + w3 * b**2)) > 1e-3 or rho == alpha == 1
