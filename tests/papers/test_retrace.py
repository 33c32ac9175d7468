"""Paper 5's figures: what their tasks compute."""

import numpy as np
import pytest

from explorax.papers import figures
from explorax.papers.retrace import operators, scores, tuned


def test_operators_contract_on_policy_and_converge_to_the_best_values():
  sizes = {"num_states": 3, "num_actions": 2, "concentration": 0.3, "discount": 0.9}
  settings = {"trace": "retrace", "lambda": 1.0, "seeds": [0, 1, 2], **sizes}
  found = operators.evaluation({**settings, "num_distances": 3})
  # On-policy and at λ = 1, Retrace is done at once.
  np.testing.assert_allclose(found["factor"][:, 0], 0, atol=1e-5)
  assert found["factor"].shape == (3, 3) and np.all(found["factor"] < 0.9)
  errors = operators.control({**settings, "worst_share": 0.9, "num_iterations": 40})
  error = errors["error"]
  assert error.shape == (3, 41)
  assert np.all(error[:, -1] < 0.9**40 * error[:, 0] + 1e-4)


def test_table_2_is_the_paper_s():
  table = scores.published()
  assert {len(of_games) for of_games in table.values()} == {60}
  # Its last row has 16, 30, 12 and 2: Freeway, which is tied, is tree-backup's there.
  assert table["Retrace(1)"]["freeway"] == table["Tree-backup(1)"]["freeway"]
  best = scores.times_best(table)
  assert best == {
    "Tree-backup(1)": 16,
    "Retrace(1)": 30 + 1,
    "Q-learning": 12,
    "Q*(1)": 2,
  }


@pytest.mark.parametrize("is_race", [False, True])
def test_scores_are_of_the_episodes_that_end_in_a_tenth(is_race):
  rng = np.random.default_rng(0)
  lengths = rng.integers(1, 300, 90)
  lengths[40] = 2500 if is_race else 300  # None ends in a tenth: no goal is reached.
  returns = rng.integers(0, 5, 90).astype(float)
  ends = np.cumsum(lengths)
  steps = int(ends[-1]) - 100  # The last one ends after them.
  found = scores.window_scores(ends, returns, lengths, num_steps=steps, is_race=is_race)
  for i, score in enumerate(found):
    first, last = i * steps / 10, (i + 1) * steps / 10 if i < 9 else np.inf
    own = (first < ends) & (ends <= last)
    by = lengths[own].sum() / 1000 if is_race else own.sum()
    assert score == pytest.approx(returns[own].sum() / max(by, 0.001))
  assert np.all(found > 0) != is_race


def test_other_seeds_choose_the_step_size_and_set_the_scale():
  """Made-up scores: 0.9 at an agent's best step size, 0.5 or 0.1 at others, scaled."""
  (figure,) = tuned.FIGURES
  rates, agents = (3e-4, 1e-3, 3e-3), [agent for agent, _ in scores.AGENTS.values()]

  def completed(tasks, factor=1.0):
    for task in tasks:
      x = task.settings
      best = agents.index(x["agent"]) % len(rates)
      share = 0.9 - 0.4 * abs(rates.index(x["value"]) - best)
      scale = factor * (2.0 if x["game"] == "catch" else 4.0)
      tenths = scale * share * np.linspace(0.1, 1.0, 10)
      results = {"scores": np.tile(tenths, (len(x["seeds"]), 1))}
      yield figures.CompletedTask(x, results, 1.0, {})

  first = figures.Table(completed(figure.runs[0].tasks()))
  (grid,) = figure.then(first)
  chosen = {(x["agent"], x["value"]) for x in grid.lines}
  assert chosen == {(agent, rates[i % len(rates)]) for i, agent in enumerate(agents)}
  # The scale is that of the tuning.
  then = figures.Table(completed(grid.tasks(), factor=2.0))
  assert len(then.seeds()) == 9 and not {*then.seeds()} & {*first.seeds()}
  assert all(len(x.settings["seeds"]) == 1 for x in then)
  found = tuned.tested(figures.Table([*first, *then]))
  assert len(found) == 10 and {x.shape for x in found.values()} == {(9, 5, 10)}
  at_the_end = [x[..., scores.LAST] for x in found.values()]
  np.testing.assert_allclose(at_the_end, (2 * 0.9 - 0.1) / (0.9 - 0.1), rtol=1e-6)
