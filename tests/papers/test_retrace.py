"""Paper 5's figures: small ones, and what their judges tell apart."""

import dataclasses
from typing import NamedTuple

import jax
import numpy as np
import pytest

from explorax.papers import registry, types
from explorax.papers.retrace import online, operators, scores
from explorax.papers.tdu import runs

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
    found = FIGURE.run(task.settings, types.TaskContext(shares.append))
    results.append(types.CompletedTask(task.name, task.settings, found, 1.0, {}))
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


def test_proven_claims_hold_in_the_quick_version(done):
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
def test_a_false_claim_does_not_hold(done, finding, part, changed):
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


# Theorem 3, the online algorithm.
ONLINE = online.Config(num_steps=400, num_points=10, num_seeds=2)


def test_online_runs_begin_at_the_errors_of_q_0_in_float64():
  figure = registry.FIGURES["retrace/online"]
  tasks = {task.name: task for task in figure.tasks(ONLINE)}
  shares = []
  found = figure.run(
    tasks["mixture_watkins"].settings, types.TaskContext(shares.append)
  )
  assert found["errors"].dtype == np.float64 and not jax.config.jax_enable_x64
  assert found["errors"].shape == (2, 11) and shares[-1] == 1
  # |Q*| is at most 1 / (1 − 0.855) = 6.9, and so is |Q_0|.
  assert np.all(found["errors"] < 2 * 6.9) and np.all(found["errors"][:, 0] > 1)
  assert np.all(found["commutator"] < 1e-15)


def _online(settings, left=0.01, commutator=0.5):
  errors = np.geomspace(1, left, 11) * np.array([[2.0], [3.0], [4.0]])
  mixture = settings["behaviour"] == "mixture"
  greedy = 0.0 if settings["run"] == "watkins" else 0.01
  return {"errors": errors, "commutator": np.array([greedy if mixture else commutator])}


def test_online_claims_hold_where_errors_vanish(make_up, verdicts):
  assert verdicts("retrace/online", _online) == [True] * 5
  stuck = verdicts("retrace/online", lambda s: _online(s, left=0.2))
  assert stuck == [False, False, True, False, False]
  rising = verdicts("retrace/online", lambda s: _online(s, left=1.5))
  assert rising == [False, False, True, False, False]
  alike = verdicts("retrace/online", lambda s: _online(s, commutator=0.01))
  assert alike == [True, True, False, True, True]
  pytest.importorskip("matplotlib")
  figure = registry.FIGURES["retrace/online"]
  config = dataclasses.replace(figure.config, num_points=10)
  axes = figure.draw(config, make_up("retrace/online", _online, config)).axes
  assert [len(panel.get_legend().get_texts()) for panel in axes] == [4, 4]


# Figure 1, inter-algorithm scores.
FIG1 = registry.FIGURES["retrace/fig1"]


class Episode(NamedTuple):
  """What the figure reads of `core.Episode`."""

  env_steps: int
  episode_return: float
  episode_length: int
  seed: int = 0


class Result(NamedTuple):
  """What the figure reads of `core.Result`."""

  interrupted: bool


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


def test_agents_of_figure_1_differ_in_their_targets_only():
  settings = {"num_steps": 10_000, "seeds": [3, 4]}
  configs = [scores.agent_config({**settings, "agent": a}) for a in scores.AGENTS]
  for config in configs:
    assert dataclasses.replace(config, target=configs[0].target) == configs[0]
    assert config.batch_size * config.sequence_length == 64
    assert getattr(config.target, "lambda_", 1) == 1
    # As in 200 million frames of sixteen threads.
    schedule = config.exploration.epsilon
    assert (schedule.decay_steps, schedule.period_steps) == (200, 40)
    assert schedule.seed == 3 and 250_000 * 16 / 200e6 == 200 / 10_000
  assert len({config.target for config in configs}) == 4


def test_games_are_played_on_the_device_or_the_host(monkeypatch):
  """Training itself is scripted: an episode of 100 steps after the other."""

  def play(seeds, steps, hooks):
    for step in range(100, steps + 1, 100):
      for seed in seeds:
        hooks.on_episode(Episode(step, 1.0, 100, seed))
      assert not hooks.stop()
    return Result(interrupted=False)

  monkeypatch.setattr(
    runs.device,
    "run_seeds",
    lambda agent, env, config, hooks, *, seeds, **_: [play(seeds, config.steps, hooks)],
  )
  monkeypatch.setattr(
    scores.local,
    "run",
    lambda agent, env, config, hooks: play([0], config.steps, hooks),
  )
  config = dataclasses.replace(FIG1.quick, num_seeds=2, seeds_per_task=2)
  tasks = {task.name: task.settings for task in FIG1.tasks(config)}
  for name, score in (
    ("gridworld_retrace_dqn_seed0", 10.0),
    ("catch_one_step_dqn_seed0", 1.0),
  ):
    shares = []
    found = FIG1.run(tasks[name], types.TaskContext(shares.append))
    np.testing.assert_allclose(found["scores"], np.full((2, 10), score))
    assert shares == sorted(shares) and 0 <= shares[0] < 1 and 0.7 < shares[-1] < 1
  monkeypatch.setattr(scores.local, "run", lambda *_: Result(interrupted=True))
  with pytest.raises(types.InterruptedTaskError):
    FIG1.run(tasks["catch_one_step_dqn_seed0"], types.TaskContext(lambda share: None))


def _played(order):
  """Made-up scores: agents in this order, worst first, or alike if none is named."""

  def results(settings):
    rank = order.index(settings["agent"]) if order else settings["seeds"][0] % 4
    own = rank + np.linspace(0, 0.1, len(settings["seeds"]))
    return {"scores": np.broadcast_to(own[:, None], (len(own), 10))}

  return results


def test_claims_of_figure_1(make_up, verdicts):
  order = ["harutyunyan_dqn", "one_step_dqn", "tree_backup_dqn", "retrace_dqn"]
  of_table = [True, True, None]  # Which games there are matters for tree-backup.
  assert verdicts("retrace/fig1", _played(order)) == of_table + [True] * 4
  assert verdicts("retrace/fig1", _played(order[::-1])) == of_table + [False] * 4
  assert verdicts("retrace/fig1", _played([])) == of_table + [None] * 4
  pytest.importorskip("matplotlib")
  table = make_up("retrace/fig1", _played(order))
  axes = FIG1.draw(FIG1.config, table).axes
  assert len(axes[0].get_legend().get_texts()) == 4
  assert [len(panel.lines) for panel in axes] == [4, 4, 4]
