"""Paper 3's agents on small problems: runs, measures, and what is concluded."""

import dataclasses

import numpy as np
import pytest

from explorax.experiments.figures import types, ucb_runs, ucb_small

(FIGURE,) = ucb_small.FIGURES


def _made_up(episodes, bricks):
  """Results of the full figure.

  Args:
    episodes: (agent, size) → in which episode Deep Sea is solved, 0 for never.
    bricks: agent → the best mean, to which each seed adds its own.
  """
  done = []
  for task in FIGURE.tasks(FIGURE.config):
    settings, seeds = task.settings, np.array(task.settings["seeds"])
    if settings["problem"] == "deep_sea":
      solved = np.full(len(seeds), episodes(settings["agent"], settings["size"]))
      run = np.where(solved > 0, solved, settings["max_episodes"])
      results = {"solved": solved, "episodes": run, "bad": run}
    else:
      best = bricks(settings["agent"]) + 0.01 * seeds
      curve = np.linspace(0, best, settings["num_points"], axis=1)
      results = {"curve": curve, "best": best}
    done.append(types.Done(settings, results, 1.0))
  return done


def _held(done):
  return [finding.held for finding in FIGURE.judge(done)]


def test_the_quick_version_runs_and_is_drawn():
  pytest.importorskip("matplotlib")
  shares, done = [], []
  for task in FIGURE.tasks(FIGURE.quick):
    results = FIGURE.run(task.settings, shares.append)
    done.append(types.Done(task.settings, results, 1.0))
  sea, game = done
  assert sea.results["solved"].shape == (1,)
  assert 0 < sea.results["episodes"][0] <= FIGURE.quick.max_episodes
  assert game.results["curve"].shape == (1, 2) and game.results["best"].shape == (1,)
  assert game.results["best"] >= game.results["curve"].max() >= 0
  assert min(shares) >= 0 and 0.5 < max(shares) <= 1
  assert FIGURE.judge(done) == []  # There is no agent to compare with.
  assert len(FIGURE.draw(done).axes) == 2


def test_each_seed_is_in_one_task_of_each_problem():
  tasks = FIGURE.tasks(FIGURE.config)
  for agent in ucb_runs.AGENTS:
    for problem in ({"problem": "breakout"}, {"problem": "deep_sea", "size": 8}):
      chosen = [
        task.settings["seeds"]
        for task in tasks
        if task.settings | problem | {"agent": agent} == task.settings
      ]
      assert sorted(np.concatenate(chosen)) == [0, 1, 2, 3, 4]
  assert len({task.name for task in tasks}) == len(tasks)


def test_ensembles_differ_in_how_they_explore_only():
  settings = {"num_members": 7, "prior_scale": 0.5}
  configs = {
    agent: ucb_runs.agent_config({**settings, "agent": agent}, batch_size=9)
    for agent in ucb_runs.AGENTS
  }
  single = configs.pop("double_dqn")
  assert (single.num_members, single.prior_scale, single.target) == (1, 0, "double_q")
  assert configs["ucb"].num_members == 7 and configs["ucb"].prior_scale == 0.5
  for config in configs.values():
    own = {name: getattr(config, name) for name in ("exploration", "bonus", "beta")}
    assert dataclasses.replace(configs["ucb"], **own) == config
  assert len({config.exploration for config in configs.values()}) == 3
  assert configs["ucb_infogain"].beta == 1 and configs["ucb"].beta == 0


def test_means_are_over_windows_of_a_hundred_episodes():
  rng = np.random.default_rng(0)
  for num_episodes in (1, 60, 100, 101, 350):
    ends = np.cumsum(rng.integers(1, 20, num_episodes)).tolist()
    returns = rng.integers(0, 9, num_episodes).astype(float).tolist()
    at = np.array([ends[0], ends[num_episodes // 2], ends[-1] + 5])
    curve, best = ucb_runs.means(ends, returns, at)
    for value, step in zip(curve, at, strict=True):
      past = [r for r, end in zip(returns, ends, strict=True) if end <= step]
      assert value == pytest.approx(np.mean(past[-100:]))
    windows = [returns[i : i + 100] for i in range(max(1, num_episodes - 99))]
    assert best == pytest.approx(max(np.mean(window) for window in windows))


def test_claims_hold_where_agents_are_ordered_as_in_the_paper():
  order = list(ucb_runs.AGENTS)
  order[-1:] = []  # InfoGain is as good as UCB.

  def rank(agent):
    return min(list(ucb_runs.AGENTS).index(agent), len(order) - 1)

  done = _made_up(
    episodes=lambda agent, size: 2**size // (1 + rank(agent)),
    bricks=lambda agent: 5.0 + rank(agent),
  )
  assert _held(done) == [True] * 7


def test_claims_do_not_hold_of_agents_that_are_alike_or_unsolved():
  done = _made_up(episodes=lambda agent, size: 0, bricks=lambda agent: 5.0)
  assert _held(done) == [False] * 6 + [True]
  better = ("ucb_infogain", "double_dqn")
  done = _made_up(
    episodes=lambda agent, size: 10 if agent in better else 0,
    bricks=lambda agent: 9.0 if agent in better else 5.0,
  )
  assert _held(done) == [False] * 7
  # Of two baselines, one is not enough.
  done = _made_up(
    episodes=lambda agent, size: 0,
    bricks=lambda agent: 9.0 if agent in ("ucb", "double_dqn") else 5.0,
  )
  assert _held(done) == [False, False, True, False, False, False, True]


def test_numbers_of_episodes_are_told_as_ratios():
  done = _made_up(
    episodes=lambda agent, size: 50 if agent == "ucb" else 200,
    bricks=lambda agent: 5.0,
  )
  findings = {finding.claim: finding.measured for finding in FIGURE.judge(done)}
  text = findings["Deep Sea: UCB exploration outperforms ensemble voting"]
  assert text == (
    "solved 100% and 100% (ensemble voting), in 0.25 times as many episodes "
    "[0.25, 0.25]"
  )


@pytest.mark.parametrize(
  ("changes", "message"),
  [
    ({"agents": ("ucb", "dqn")}, "agents has 'dqn'; there are double_dqn, "),
    ({"agents": ()}, "give at least one, and none twice"),
    ({"num_members": 1}, "num_members is 1; an ensemble has at least 2"),
    ({"prior_scale": -1.0}, "prior_scale is -1.0; it is finite and not negative"),
    ({"sizes": (1, 4)}, r"sizes are \(1, 4\); each must be at least 2"),
    ({"num_seeds": 0}, "num_seeds is 0; it must be at least 1"),
    ({"num_steps": 49_999}, "num_steps is 49999 and num_points 50; use at least 2"),
    ({"num_points": 1}, "num_points 1; use at least 2 points, and 1000 steps"),
  ],
)
def test_impossible_settings_are_refused(changes, message):
  with pytest.raises(ValueError, match=message):
    dataclasses.replace(FIGURE.config, **changes)
