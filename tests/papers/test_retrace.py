"""Paper 5's figures: what their tasks compute."""

from typing import NamedTuple

import numpy as np
import pytest

from explorax.papers import registry, types
from explorax.papers.retrace import operators, scores, tuned

CONFIG = operators.Config(
  num_states=3,
  num_actions=2,
  lambdas=(0.5, 1.0),
  num_distances=3,
  num_iterations=40,
  lengths=(1, 3),
  num_trajectories=4,
  num_seeds=3,
)
FIGURE = registry.FIGURES["retrace/operators"]


@pytest.fixture(scope="module")
def done():
  tasks = FIGURE.tasks(CONFIG)
  results = []
  for task in tasks:
    found = FIGURE.compute(task.settings)
    results.append(types.CompletedTask(task.name, task.settings, found, 1.0, {}))
  return types.Table(results)


def test_what_is_computed_has_its_shapes_and_limits(done):
  contraction, control, returns = (task.results for task in done)
  assert contraction["retrace"].shape == contraction["radius"].shape == (2, 3, 3)
  # On-policy and at λ = 1, Retrace is done at once.
  np.testing.assert_allclose(contraction["retrace"][1, :, 0], 0, atol=1e-5)
  assert np.all(contraction["radius"] <= contraction["harutyunyan_q_lambda"] + 1e-4)
  assert control["retrace"].shape == (3, 41)
  assert np.all(control["retrace"][:, -1] < 0.9**40 * control["retrace"][:, 0] + 1e-4)
  # A single transition's return is the same for all, and measured as it is computed.
  exact = [returns[f"{kind}_std"][:, 0] for kind in ("retrace", "tree_backup")]
  np.testing.assert_allclose(*exact, rtol=1e-5)
  measured = returns["retrace_measured"], returns["non_markov_retrace_measured"]
  np.testing.assert_allclose(measured[0][:, 0], measured[1][:, 0], rtol=1e-5)
  np.testing.assert_allclose(np.mean(measured[0]), np.mean(exact), rtol=0.5)


# Figure 1, inter-algorithm scores.


class Episode(NamedTuple):
  """What the figure reads of `common.Episode`."""

  env_steps: int
  episode_return: float
  episode_length: int
  seed: int = 0


def test_table_2_is_the_paper_s():
  table = scores.published()
  assert {len(of_games) for of_games in table.values()} == {60}
  # Its last row has 16, 30, 12 and 2: Freeway, which is tied, is tree-backup's there.
  assert table["retrace_dqn"]["freeway"] == table["tree_backup_dqn"]["freeway"]
  best = scores.times_best(table)
  assert best == {
    "tree_backup_dqn": 16,
    "retrace_dqn": 30 + 1,
    "one_step_dqn": 12,
    "harutyunyan_dqn": 2,
  }


@pytest.mark.parametrize("is_race", [False, True])
def test_scores_are_of_the_episodes_that_end_in_a_tenth(is_race):
  rng = np.random.default_rng(0)
  lengths = rng.integers(1, 300, 90)
  lengths[40] = 2500 if is_race else 300  # None ends in a tenth: no goal is reached.
  returns = rng.integers(0, 5, 90).astype(float)
  episodes = list(map(Episode, np.cumsum(lengths), returns, lengths))
  steps = int(episodes[-1].env_steps) - 100  # The last one ends after them.
  found = scores.window_scores(episodes, steps, is_race)
  for i, score in enumerate(found):
    first, last = i * steps / 10, (i + 1) * steps / 10 if i < 9 else np.inf
    own = [e for e in episodes if first < e.env_steps <= last]
    total = sum(e.episode_return for e in own)
    by = sum(e.episode_length for e in own) / 1000 if is_race else len(own)
    assert score == pytest.approx(total / max(by, 0.001))
  assert np.all(found > 0) != is_race


def test_other_seeds_choose_the_step_size_and_set_the_scale():
  """Made-up scores: 0.9 at an agent's best step size, 0.5 or 0.1 at others, scaled."""
  figure = registry.FIGURES["retrace/tuned"]
  config = tuned.Config(
    games=("catch", "gridworld"), lambdas=(0.5, 1.0), num_tuning_seeds=2, num_seeds=4
  )
  rates, agents = config.learning_rates, [*scores.AGENTS]

  def completed(tasks):
    for task in tasks:
      x, seeds = task.settings, task.settings["seeds"]
      best = agents.index(x["agent"]) % len(rates)
      share = 0.9 - 0.4 * abs(rates.index(x["learning_rate"]) - best)
      scale = 2.0 if x["game"] == "catch" else 4.0
      tenths = scale * share * np.linspace(0.1, 1.0, 10)
      results = {"scores": np.tile(tenths, (len(seeds), 1))}
      yield types.CompletedTask(task.name, x, results, 1.0, {})

  first = types.Table(completed(figure.tasks(config)))
  then = figure.then(config, first)
  chosen = {(x.settings["agent"], x.settings["learning_rate"]) for x in then}
  assert chosen == {(agents[i], rates[i % len(rates)]) for i in range(len(agents))}
  tested = {seed for x in then for seed in x.settings["seeds"]}
  assert len(tested) == 4 and all(len(x.settings["seeds"]) == 1 for x in then)
  assert tested.isdisjoint(seed for x in first for seed in x.settings["seeds"])

  better = types.Table(  # The scale is that of the tuning.
    x._replace(results={"scores": 2 * x.results["scores"]}) for x in completed(then)
  )
  z = tuned._tested(config, scores.LAST, types.Table([*first, *better]))
  assert len(z) == 7 and {x.shape for x in z.values()} == {(4, 2)}
  expected = (2 * 0.9 - 0.1) / (0.9 - 0.1)
  np.testing.assert_allclose([*z.values()], expected, rtol=1e-6)
