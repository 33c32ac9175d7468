"""Paper 5's operators: a small figure, and what its judge tells apart."""

import numpy as np
import pytest

from explorax.experiments.figures import registry, types
from explorax.experiments.figures.retrace import operators

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
    shares = []
    found = FIGURE.run(task.settings, types.Tick(shares.append))
    results.append(types.Done(task.name, task.settings, found, 1.0, {}))
    assert shares == sorted(shares) and shares[-1] == 1
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


def test_it_is_drawn(done):
  pytest.importorskip("matplotlib")
  panels = FIGURE.draw(CONFIG, done).axes
  assert [len(panel.get_legend().get_texts()) for panel in panels] == [2, 2, 3, 4, 6, 7]


def test_small_as_it_is_what_is_proven_holds(done):
  held = [finding.held for finding in FIGURE.judge(CONFIG, done)]
  assert held[:3] == [True, True, True]


def change(done, part, **changed):
  """The results with some arrays of a part multiplied."""
  return [
    task._replace(
      results=task.results | {k: task.results[k] * by for k, by in changed.items()}
    )
    if task.settings["part"] == part
    else task
    for task in done
  ]


@pytest.mark.parametrize(
  ("finding", "part", "changed"),
  [
    (0, "contraction", {"tree_backup": 1.5}),
    (1, "contraction", {"harutyunyan_q_lambda": 0.01}),  # It never expands.
    (1, "contraction", {"harutyunyan_q_lambda": 100.0}),  # It does within the bound.
    (2, "contraction", {"tree_backup": 0.0}),
    (3, "control", {"retrace": np.linspace(1, 1e9, 41)}),
    (4, "returns", {"importance_sampling_std": 0.0 + 1e-6}),
  ],
)
def test_a_claim_that_is_not_so_does_not_hold(done, finding, part, changed):
  assert not FIGURE.judge(CONFIG, change(done, part, **changed))[finding].held


def test_control_s_and_variance_s_claims_hold_where_they_are_so(done):
  diverging = change(done, "control", q_star=np.linspace(1, 1e9, 41))
  assert FIGURE.judge(CONFIG, diverging)[3].held
  assert "on 3 of 3" in FIGURE.judge(CONFIG, diverging)[3].measured
  never = change(done, "control", q_star=np.linspace(1, 0.01, 41))
  assert not FIGURE.judge(CONFIG, never)[3].held
  assert FIGURE.judge(CONFIG, change(done, "returns", importance_sampling_std=1e3))[
    4
  ].held
