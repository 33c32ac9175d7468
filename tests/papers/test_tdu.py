"""Paper 4's figures: what their tasks compute, and when their claims hold."""

from typing import NamedTuple

import numpy as np
import pytest

from explorax.agents.bonuses import tdu
from explorax.environments import binary_tree, deep_sea
from explorax.experiments import presets
from explorax.experiments.tasks import types as task_types
from explorax.papers import registry, types
from explorax.papers.tdu import bias, runs, scaling
from explorax.papers.tdu import binary_tree as tree_figures
from explorax.papers.tdu import deep_sea as sea_figures

FIGURES = ("tdu/fig1", "tdu/fig2", "tdu/fig4", "tdu/fig5")


def solved_in(episodes, lenient=True):
  """Results: `episodes(settings)` to solve, 0 for never, of each seed.

  Where it is lenient, bsuite's rule calls all stochastic runs solved.
  """

  def results(settings):
    limit = settings["max_episodes"]
    # No two seeds are alike.
    solved = [int(episodes(settings) * (1 + s / 50)) for s in settings["seeds"]]
    solved = np.array([n if n < limit else 0 for n in solved])
    run = np.where(solved > 0, solved, limit)
    lucky = lenient and settings.get("stochastic")
    return {
      "solved": solved,
      "by_bsuite": np.minimum(run, 100) if lucky else solved,
      "episodes": run,
      "mastered": solved,
      "treasures": (solved > 0) * 20,
    }

  return results


def _explorers(settings):
  return settings.get("num_explorers") or 0  # None: as many as the preset has.


def with_everything_right(settings):
  """As paper 4 says that it is."""
  agent, beta = settings["agent"], settings.get("beta", 1.0)
  if "stochastic" in settings:
    if settings.get("prior_scale") == 0 or agent in ("qu", "q_ucb"):
      return 0
    samples = agent in ("bootstrapped_dqn", "successor_uncertainties", "noisy_dqn")
    if agent == "tdu":
      return 80
    return 100 if samples and not settings["stochastic"] else 0
  return 30 * settings["size"] / (1 + beta) / (1 + _explorers(settings) / 20)


def with_everything_wrong(settings):
  """BDQN is best, and with it everything that is nearest to it."""
  agent, beta = settings["agent"], settings.get("beta", 1.0)
  if "stochastic" in settings:
    if settings.get("prior_scale") == 0 or agent in ("qu", "q_ucb"):
      return 100
    return 0 if agent == "tdu" else 100
  return 5 * settings["size"] * (1 + beta) * (1 + _explorers(settings) / 20)


@pytest.mark.parametrize("name", FIGURES)
def test_claims_hold_where_the_paper_is_right_and_not_elsewhere(verdicts, name):
  right = verdicts(name, solved_in(with_everything_right))
  wrong = verdicts(name, solved_in(with_everything_wrong, lenient=False))
  assert len(right) == len(wrong) >= 3
  assert all(right) and not any(wrong)


@pytest.mark.parametrize("name", [*FIGURES, "tdu/scaling"])
def test_draws_what_was_solved_and_what_never_was(make_up, name):
  pytest.importorskip("matplotlib")
  figure = registry.FIGURES[name]
  table = make_up(name, solved_in(with_everything_right))
  fig = figure.draw(figure.config, table)
  assert [axes for axes in fig.axes if axes.get_xlabel() or axes.get_ylabel()]
  if name == "tdu/fig4":
    lines = {line.get_label(): line.get_ydata() for line in fig.axes[0].lines}
    sizes = np.array(figure.config.sizes)
    expected = np.floor(30 * sizes * (1 + 2 / 50))  # The median of five seeds.
    np.testing.assert_allclose(lines["BDQN (β = 0)"], np.minimum(expected, 2000))
  if name == "tdu/scaling":
    _, stochastic = fig.axes
    solved = {x.get_label(): x.get_xdata().tolist() for x in stochastic.lines}
    sizes = list(figure.config.stochastic_sizes)
    assert solved["TDU"] == sizes and solved["bootstrapped DQN"] == []


class Result(NamedTuple):
  """What figures read of `core.Result`."""

  interrupted: bool


class Episode(NamedTuple):
  """What figures read of `core.Episode`."""

  episode_return: float
  metrics: dict
  seed: int


@pytest.fixture
def scripted(monkeypatch):
  """Instead of training: episodes that are good from each seed's n-th on."""
  seen = {}

  def train(agent, environment, config, hooks, *, seeds, params, **_):
    num_episodes = config.episodes
    seen.update(agent=agent, environment=environment, params=params)
    for episode in range(1, seen.get("ctrl_c_after", num_episodes) + 1):
      for seed in seeds:
        bad = float(episode < seen["good_from"][seed])
        metrics = {"bad_episode": bad, "denoised_return": 1.0 - bad}
        hooks.on_episode(Episode(1.0 - bad, metrics, seed))
      if hooks.stop():
        seen["stopped_at"] = episode
        break
    return [Result(interrupted=episode < num_episodes)]

  monkeypatch.setattr(runs.device, "run_seeds", train)
  return seen


def sea_tasks(**settings) -> list[types.Task]:
  """Of TDU, in both versions of Deep Sea."""
  config = sea_figures.Agents(agents=("tdu",), **settings)
  return list(registry.FIGURES["tdu/fig1"].tasks(config))


def test_results_of_an_interrupted_task_are_not_kept(scripted):
  tasks = sea_tasks(sizes=(8,), num_seeds=1, max_episodes=200)
  scripted |= {"good_from": {0: 500}, "ctrl_c_after": 20}
  with pytest.raises(task_types.InterruptedTaskError):
    runs.solve_deep_sea(tasks[0].settings, types.TaskContext())


def test_a_problem_is_solved_when_the_average_regret_is_below_its_threshold(scripted):
  task, _ = sea_tasks(sizes=(8,), num_seeds=3, max_episodes=200)
  # After b bad ones and g good ones b / (b + g) < 0.9: g > b / 9.
  scripted["good_from"] = {0: 1, 1: 91, 2: 500}
  shares = []
  results = runs.solve_deep_sea(task.settings, types.TaskContext(shares.append))
  assert results["solved"].tolist() == [1, 90 + 11, 0]
  assert results["episodes"].tolist() == [1, 101, 200]
  assert results["by_bsuite"].tolist() == results["solved"].tolist()
  assert results["treasures"].tolist() == [1, 11, 0]
  assert shares[-1] == 1.0 and shares == sorted(shares)
  assert scripted["stopped_at"] == 200
  scripted["good_from"] = {0: 1, 1: 1, 2: 1}
  runs.solve_deep_sea(task.settings, types.TaskContext(shares.append))
  assert scripted["stopped_at"] == 1


def test_bsuites_solutions_without_the_treasure_are_counted(make_up):
  figure = registry.FIGURES["tdu/fig1"]
  table = make_up("tdu/fig1", solved_in(with_everything_right))
  last = figure.judge(figure.config, table)[-1]
  sizes, seeds = len(figure.config.sizes), figure.config.num_seeds
  runs_of_each = f"{sizes * seeds} of {sizes * seeds}"
  assert f"BDQN {runs_of_each} (treasure never found: {sizes * seeds})" in last.measured
  assert last.measured.count(runs_of_each) == 6 and "TDU" not in last.measured


def test_luck_does_not_solve_the_stochastic_sea(scripted):
  _, task = sea_tasks(sizes=(9,), num_seeds=1)
  scripted["good_from"] = {0: 1}
  results = runs.solve_deep_sea(task.settings, types.TaskContext())
  assert results["solved"].tolist() == [100]
  sea = scripted["environment"]
  assert sea.stochastic and sea.permuted and sea.mapping_seed == 42


def test_the_stochastic_sea_is_mastered_at_nearly_the_best_policys_rate(scripted):
  config = scaling.Scaling(
    stochastic_sizes=(9,), stochastic_seeds=3, seeds_per_task=3, max_episodes=2300
  )
  task = registry.FIGURES["tdu/scaling"].tasks(config)[0]
  scripted["good_from"] = {0: 1, 1: 2101, 2: 2201}
  results = runs.solve_deep_sea(task.settings, types.TaskContext())
  # Of 500 episodes, 0.9 · (8/9)^8 = 0.351 have to find the treasure: 176.
  assert results["mastered"].tolist() == [176, 2276, 0]
  # g / (b + g) > 0.2 · (8/9)^8, from episode 100 on. A late run is mastered before.
  assert results["solved"].tolist() == [100, 2278, 0]
  assert results["episodes"].tolist() == [176, 2278, 2300]


def test_each_seed_dives_in_a_large_sea_of_its_own(scripted):
  config = scaling.Scaling(large_sizes=(45,), large_seeds=3, seeds_per_task=3)
  tasks = registry.FIGURES["tdu/scaling"].tasks(config)
  task = next(task for task in tasks if "own_mapping" in task.settings)
  assert task.settings["max_episodes"] == 3500  # Between 3,000 at 40 and 4,000 at 50.
  scripted["good_from"] = dict.fromkeys(range(3), 1)
  runs.solve_deep_sea(task.settings, types.TaskContext())
  right = np.asarray(scripted["params"].right)
  expected = [deep_sea.action_mapping(seed, 45) for seed in range(3)]
  np.testing.assert_array_equal(right, expected)


def test_each_seed_climbs_a_tree_of_its_own(scripted):
  config = tree_figures.Depths(sizes=(30,), betas=(1.0,), num_seeds=3)
  (task,) = registry.FIGURES["tdu/fig4"].tasks(config)
  scripted["good_from"] = dict.fromkeys(range(3), 1)
  registry.FIGURES["tdu/fig4"].run(task.settings, types.TaskContext())
  up = np.asarray(scripted["params"].up)
  expected = [binary_tree.action_mapping(seed, 30) for seed in range(3)]
  np.testing.assert_array_equal(up, expected)


def test_agents_are_what_the_settings_say():
  config = runs.agent_config(runs.agent_settings(2.0, 0.0, 15))
  assert (config.num_members, config.num_explorers) == (5, 15)
  assert (config.beta, config.prior_scale) == (2.0, 0.0)
  assert isinstance(config.bonus, tdu.TDUncertainty)
  config = runs.agent_config(runs.agent_settings(0.0, 1.0, 15))
  assert (config.num_members, config.num_explorers, config.prior_scale) == (20, 0, 1.0)
  assert config.bonus is None
  preset = runs.agent_config({"agent": "tdu"})
  assert (preset.beta, preset.prior_scale, preset.ensemble_size) == (1.0, 3.0, 20)


def test_seeds_are_the_same_in_one_task_or_in_many():
  chunks = types.seed_chunks(5, 2)
  assert chunks == [[0, 1], [2, 3], [4]]
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
    for seeds in reversed(chunks)
  )
  small = runs.episodes_to_solve(table, size=3)[:, 0]
  assert small.tolist() == [5, 20, 7, 20, 9]
  assert runs.scores(table, size=3).tolist() == [1, 0, 1, 0, 1]
  assert runs.scores(table).tolist() == [0.5, 0, 0.5, 0, 0.5]


def test_deep_sea_is_to_be_solved_before_dithering_would():
  tasks = sea_tasks(sizes=(6, 14), max_episodes=5000)
  limits = {task.settings["size"]: task.settings["max_episodes"] for task in tasks}
  assert limits == {6: 64, 14: 5000}


def test_seeds_learn_side_by_side(monkeypatch):
  """For real, with an agent that is quickly compiled, in trees that differ."""
  config = presets.PRESETS["dqn"].config
  monkeypatch.setattr(runs, "agent_config", lambda settings: config)
  settings = {"agent": "dqn", "size": 3, "max_episodes": 12, "seeds": [0, 1]}
  shares = []
  results = registry.FIGURES["tdu/fig4"].run(settings, types.TaskContext(shares.append))
  solved = results["solved"]
  np.testing.assert_array_equal(
    results["episodes"], np.where(solved > 0, solved, settings["max_episodes"])
  )
  assert (results["treasures"] <= results["episodes"]).all()
  assert shares and shares == sorted(shares)


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


def test_values_of_a_belief_and_what_is_fitted_to_them(monkeypatch):
  """With as many features as states and actions there is no bias to be compared."""
  config = registry.FIGURES["tdu/proposition2"].quick
  figure = registry.FIGURES["tdu/proposition2"]
  tasks = {task.name: task for task in figure.tasks(config)}
  seen, biases = [], bias.biases

  def spy(belief, estimate, discount):
    seen.append((belief, estimate))
    return biases(belief, estimate, discount)

  monkeypatch.setattr(bias, "biases", spy)
  settings = {**tasks["random_5"].settings, "num_features": 40, "seeds": [0]}
  with np.errstate(invalid="ignore", divide="ignore"):
    figure.run(settings, types.TaskContext())
  ((belief, estimate),) = seen
  np.testing.assert_allclose(estimate, belief, rtol=1e-6, atol=1e-6)


def test_what_is_measured_of_the_proposition(make_up):
  figure = registry.FIGURES["tdu/proposition2"]
  config = figure.quick
  run = lambda settings: figure.run(settings, types.TaskContext())  # noqa: E731
  table = make_up("tdu/proposition2", run, config)
  found = figure.judge(config, table)
  assert [f.held for f in found[:4]] == [True] * 4
  assert len(found) == 8
  wrong = types.Table(
    task._replace(results={k: 1.0 - v for k, v in task.results.items()})
    for task in table
  )
  assert [f.held for f in figure.judge(config, wrong)[:4]] == [False] * 4
  pytest.importorskip("matplotlib")
  assert len(figure.draw(config, table).axes) == 3


def test_scaling_tells_a_power_of_n_from_two_to_the_n(verdicts):
  config = scaling.Scaling(
    sizes=(6, 8, 10, 14, 20),
    stochastic_sizes=(10, 14, 20),
    stochastic_seeds=3,
    large_sizes=(30, 40),
    large_seeds=3,
  )

  def powers(settings):
    factors = {"tdu": 0.3, "bootstrapped_dqn": 0.4, "epinet": 0.5}
    factor = factors.get(settings["agent"])
    return int(factor * settings["size"] ** 2) if factor else 2 ** settings["size"]

  found = verdicts("tdu/scaling", solved_in(powers), config)
  assert found == [True] * 14

  def exponential(settings):
    return 2 ** settings["size"] if settings["agent"] != "double_dqn" else 10

  found = verdicts("tdu/scaling", solved_in(exponential), config)
  assert found == [False] * 9 + [None, False, None, None, False]
