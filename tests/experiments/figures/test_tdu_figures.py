"""Paper 4's figures: what their tasks compute, and when their claims hold."""

import dataclasses
from typing import NamedTuple

import numpy as np
import pytest

from explorax.agents import bonuses
from explorax.environments import binary_tree
from explorax.experiments.figures import (
  registry,
  tdu_binary_tree,
  tdu_deep_sea,
  tdu_runs,
  tdu_scales,
  types,
)

FIGURES = ("tdu/fig1", "tdu/fig2", "tdu/fig4", "tdu/fig5")


def make_up(figure, episodes):
  """Results of all tasks; `episodes(settings)` to solve, 0 for never, of each seed."""
  done = []
  for task in figure.tasks(figure.config):
    limit = task.settings["max_episodes"]
    # No two seeds are alike.
    solved = [
      int(episodes(task.settings) * (1 + s / 50)) for s in task.settings["seeds"]
    ]
    solved = np.array([n if n < limit else 0 for n in solved])
    results = {
      "solved": solved,
      "episodes": np.where(solved > 0, solved, limit),
      "bad": solved,
    }
    done.append(types.Done(task.settings, results, 1.0))
  return done


def _explorers(settings):
  return settings["num_explorers"] or 0  # None: as many as the preset has.


def with_everything_right(settings):
  """As paper 4 says that it is."""
  agent, beta = settings["agent"], settings.get("beta", 1.0)
  if "stochastic" in settings:
    if settings.get("prior_scale") == 0 or agent in ("qu", "q_ucb"):
      return 0
    samples = agent in ("bootstrapped_dqn", "successor_uncertainties", "noisy_dqn")
    if agent == "tdu" or (samples and not settings["stochastic"]):
      return 100
    return 0
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
def test_claims_hold_where_the_paper_is_right_and_not_elsewhere(name):
  figure = registry.FIGURES[name]
  right = figure.judge(make_up(figure, with_everything_right))
  wrong = figure.judge(make_up(figure, with_everything_wrong))
  assert len(right) == len(wrong) >= 3
  assert [finding.held for finding in right] == [True] * len(right), right
  assert [finding.held for finding in wrong] == [False] * len(wrong), wrong


@pytest.mark.parametrize("name", FIGURES)
def test_draws_what_was_solved_and_what_never_was(name):
  pytest.importorskip("matplotlib")
  figure = registry.FIGURES[name]
  done = make_up(figure, with_everything_right)
  fig = figure.draw(done)
  labelled = [axes for axes in fig.axes if axes.get_xlabel() or axes.get_ylabel()]
  assert labelled
  if name == "tdu/fig4":
    lines = {line.get_label(): line.get_ydata() for line in fig.axes[0].lines}
    sizes = np.array(tdu_binary_tree.Depths().sizes)
    expected = np.floor(30 * sizes * (1 + 2 / 50))  # The median of five seeds.
    np.testing.assert_allclose(lines["BDQN (β = 0)"], np.minimum(expected, 2000))


class Result(NamedTuple):
  """What figures read of `local.Result`."""

  interrupted: bool


class Episode(NamedTuple):
  """What figures read of `local.Episode`."""

  episode_return: float
  metrics: dict


@pytest.fixture
def scripted(monkeypatch):
  """Instead of training: episodes that are good from each seed's n-th on."""
  seen = {}

  def train(agent, environment, params, *, seeds, num_episodes, on_episode, stop, **_):
    seen.update(agent=agent, environment=environment, params=params)
    for episode in range(1, seen.get("ctrl_c_after", num_episodes) + 1):
      for seed in seeds:
        bad = float(episode < seen["good_from"][seed])
        on_episode(seed, Episode(1.0 - bad, {"bad_episode": bad}))
      if stop():
        seen["stopped_at"] = episode
        break
    return [Result(interrupted=episode < num_episodes)]

  monkeypatch.setattr(tdu_runs.device, "train", train)
  return seen


def test_all_agents_of_the_paper_meet_both_versions():
  figure = registry.FIGURES["tdu/fig1"]
  met = {
    (task.settings["agent"], task.settings["stochastic"])
    for task in figure.tasks(figure.config)
  }
  agents = {"tdu", "bootstrapped_dqn", "dqn_rnd", "dqn_counts"}
  agents |= {"qex", "successor_uncertainties", "noisy_dqn"}
  assert met == {(agent, version) for agent in agents for version in (False, True)}


def test_what_ctrl_c_has_ended_is_not_kept(scripted):
  tasks = tdu_deep_sea.FIGURES[0].tasks(
    tdu_deep_sea.Config(sizes=(8,), agents=("tdu",), num_seeds=1, max_episodes=200)
  )
  scripted |= {"good_from": {0: 500}, "ctrl_c_after": 20}
  with pytest.raises(types.InterruptedTaskError):
    tdu_deep_sea.run(tasks[0].settings, lambda share: None)


def test_a_problem_is_solved_when_the_average_regret_is_below_its_threshold(scripted):
  (task,) = [
    task
    for task in tdu_deep_sea.FIGURES[0].tasks(
      tdu_deep_sea.Config(sizes=(8,), agents=("tdu",), num_seeds=3, max_episodes=200)
    )
    if not task.settings["stochastic"]
  ]
  # After b bad ones and g good ones b / (b + g) < 0.9: g > b / 9.
  scripted["good_from"] = {0: 1, 1: 91, 2: 500}
  shares = []
  results = tdu_deep_sea.run(task.settings, shares.append)
  assert results["solved"].tolist() == [1, 90 + 11, 0]
  assert results["episodes"].tolist() == [1, 101, 200]
  assert results["bad"].tolist() == [0, 90, 200]
  assert shares[-1] == 1.0 and shares == sorted(shares)
  assert scripted["stopped_at"] == 200
  scripted["good_from"] = {0: 1, 1: 1, 2: 1}
  tdu_deep_sea.run(task.settings, shares.append)
  assert scripted["stopped_at"] == 1


def test_luck_does_not_solve_the_stochastic_sea(scripted):
  tasks = tdu_deep_sea.FIGURES[0].tasks(
    tdu_deep_sea.Config(sizes=(9,), agents=("tdu",), num_seeds=1)
  )
  (task,) = [task for task in tasks if task.settings["stochastic"]]
  scripted["good_from"] = {0: 1}
  results = tdu_deep_sea.run(task.settings, lambda share: None)
  assert results["solved"].tolist() == [100]
  sea = scripted["environment"]
  assert sea.stochastic and sea.permuted and sea.mapping_seed == 42


def test_each_seed_climbs_a_tree_of_its_own(scripted):
  tasks = tdu_binary_tree.FIGURES[0].tasks(
    tdu_binary_tree.Depths(sizes=(30,), betas=(1.0,), num_seeds=3)
  )
  scripted["good_from"] = dict.fromkeys(range(3), 1)
  tdu_binary_tree.FIGURES[0].run(tasks[0].settings, lambda share: None)
  up = np.asarray(scripted["params"].up)
  expected = [binary_tree.action_mapping(seed, 30) for seed in range(3)]
  np.testing.assert_array_equal(up, expected)


def test_agents_are_what_the_settings_say():
  config = tdu_runs.agent_config(tdu_runs.agent_settings(2.0, 0.0, 15))
  assert (config.num_members, config.num_explorers) == (5, 15)
  assert (config.beta, config.prior_scale) == (2.0, 0.0)
  assert isinstance(config.bonus, bonuses.TDUncertainty)
  config = tdu_runs.agent_config(tdu_runs.agent_settings(0.0, 1.0, 15))
  assert (config.num_members, config.num_explorers, config.prior_scale) == (20, 0, 1.0)
  assert isinstance(config.bonus, bonuses.NoBonus)
  preset = tdu_runs.agent_config({"agent": "tdu"})
  assert (preset.beta, preset.prior_scale, preset.ensemble_size) == (1.0, 3.0, 20)


def test_seeds_are_the_same_in_one_task_or_in_many():
  chunks = tdu_runs.seed_chunks(5, 2)
  assert chunks == [[0, 1], [2, 3], [4]]
  solved = {0: 5, 1: 0, 2: 7, 3: 0, 4: 9}
  done = [
    types.Done(
      {"size": size, "seeds": seeds, "max_episodes": 20},
      {
        "solved": np.array([solved[s] if size == 3 else 0 for s in seeds]),
        "episodes": np.array([solved[s] or 20 for s in seeds]),
      },
      1.0,
    )
    for size in (3, 4)
    for seeds in reversed(chunks)
  ]
  small = types.select(done, size=3)
  assert tdu_runs.episodes_to_solve(small).tolist() == [5, 20, 7, 20, 9]
  assert tdu_runs.scores(small).tolist() == [1, 0, 1, 0, 1]
  assert tdu_runs.scores(done).tolist() == [0.5, 0, 0.5, 0, 0.5]


def test_deep_sea_is_to_be_solved_before_dithering_would():
  tasks = tdu_deep_sea.FIGURES[0].tasks(
    tdu_deep_sea.Config(sizes=(6, 14), max_episodes=5000)
  )
  limits = {task.settings["size"]: task.settings["max_episodes"] for task in tasks}
  assert limits == {6: 64, 14: 5000}


@pytest.mark.parametrize(
  ("config", "change", "words"),
  [
    (tdu_deep_sea.Config(), {"sizes": (10, 1)}, "at least 2"),
    (tdu_deep_sea.Config(), {"sizes": (10, 10)}, "none twice"),
    (tdu_deep_sea.Config(), {"sizes": ()}, "at least one"),
    (tdu_deep_sea.Config(), {"agents": ("ngu",)}, "there are tdu"),
    (tdu_deep_sea.Config(), {"max_episodes": 0}, "max_episodes is 0"),
    (tdu_scales.Config(), {"seeds_per_task": 0}, "seeds_per_task is 0"),
    (tdu_scales.Config(), {"betas": (-1.0,)}, "not negative"),
    (tdu_scales.Config(), {"betas": (0.0,)}, "no β above 0"),
    (tdu_scales.Config(), {"prior_scales": (float("inf"),)}, "finite"),
    (tdu_scales.Config(), {"rivals": ("ucb",)}, "qu and q_ucb"),
    (tdu_binary_tree.Depths(), {"prior_scale": -1.0}, "not negative"),
    (tdu_binary_tree.Depths(), {"num_seeds": 0}, "num_seeds is 0"),
    (tdu_binary_tree.Explorers(), {"betas": (0.0, 1.0)}, "leave it out"),
    (tdu_binary_tree.Explorers(), {"explorers": (19,)}, "two that exploit"),
  ],
)
def test_what_cannot_be_is_refused(config, change, words):
  with pytest.raises(ValueError, match=words):
    dataclasses.replace(config, **change)


@pytest.mark.parametrize("name", FIGURES)
def test_a_smoke_version_is_small_and_judged(name):
  figure = registry.FIGURES[name]
  assert len(figure.tasks(figure.quick)) == 2
  quick = dataclasses.replace(figure, config=figure.quick)
  findings = quick.judge(make_up(quick, lambda settings: 10))
  assert all(isinstance(finding.held, bool) for finding in findings)


@pytest.mark.slow
def test_tdu_solves_a_small_sea_and_a_small_tree():
  """For real: with networks that learn, and trees that differ."""
  sea, tree = registry.FIGURES["tdu/fig1"], registry.FIGURES["tdu/fig4"]
  sea_config = tdu_deep_sea.Config(sizes=(7,), agents=("tdu",), num_seeds=1)
  tree_config = tdu_binary_tree.Depths(sizes=(8,), betas=(1.0,), num_seeds=2)
  for figure, task in (
    (sea, sea.tasks(sea_config)[0]),
    (tree, tree.tasks(tree_config)[0]),
  ):
    results = figure.run(task.settings, lambda share: None)
    assert (results["solved"] > 0).all()
    np.testing.assert_array_equal(results["solved"], results["episodes"])
    assert (results["bad"] / results["episodes"] < 0.9).all()
