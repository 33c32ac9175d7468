"""Paper 3's agents on small problems: runs, measures, and what is concluded."""

import dataclasses
from typing import NamedTuple

import numpy as np
import pytest

from explorax.agents.bonuses import infogain
from explorax.agents.targets import one_step
from explorax.environments import breakout
from explorax.papers import registry, types
from explorax.papers.tdu import runs
from explorax.papers.ucb import small


class Result(NamedTuple):
  """What the figure reads of `core.Result`."""

  interrupted: bool


class Episode(NamedTuple):
  """What the figure reads of `core.Episode`."""

  env_steps: int
  episode_return: float
  seed: int


FIGURE = registry.FIGURES["ucb/small"]


def _results(episodes, bricks):
  """Made-up results of a task.

  Args:
    episodes: (agent, size) → in which episode Deep Sea is solved, 0 for never.
    bricks: agent → the best mean, to which each seed adds its own.
  """

  def results(settings):
    seeds = np.array(settings["seeds"])
    if settings["problem"] == "deep_sea":
      solved = np.full(len(seeds), episodes(settings["agent"], settings["size"]))
      run = np.where(solved > 0, solved, settings["max_episodes"])
      return {"solved": solved, "episodes": run, "bad": run}
    best = bricks(settings["agent"]) + 0.01 * seeds
    return {"curve": np.linspace(0, best, settings["num_points"], axis=1), "best": best}

  return results


def test_breakout_is_played_and_drawn(make_up, monkeypatch):
  """Training itself is scripted: an episode every 250 steps."""
  pytest.importorskip("matplotlib")
  config = dataclasses.replace(FIGURE.quick, num_members=2)
  _, task = FIGURE.tasks(config)

  def train(agent, environment, config, hooks, *, seeds, **_):
    assert agent.spec.actions.num_values == 3 and environment == breakout.Breakout()
    for step in range(250, config.steps + 1, 250):
      for seed in seeds:
        hooks.on_episode(Episode(step, step / 250, seed))
      assert not hooks.stop()
    return [Result(interrupted=False)]

  monkeypatch.setattr(runs.device, "run_seeds", train)
  shares = []
  played = FIGURE.run(task.settings, types.TaskContext(shares.append))
  np.testing.assert_allclose(played["curve"], [[2.5, 4.5]])  # Of 4 and of 8 episodes.
  np.testing.assert_allclose(played["best"], [4.5])
  assert min(shares) >= 0 and 0.9 < max(shares) < 1
  sea = _results(lambda agent, size: 30, lambda agent: 0.0)
  results = [sea, lambda settings: played]
  table = make_up("ucb/small", lambda s: results[s["problem"] == "breakout"](s), config)
  assert FIGURE.judge(config, table) == []  # There is no agent to compare with.
  assert len(FIGURE.draw(config, table).axes) == 2


def test_ensembles_differ_in_how_they_explore_only():
  settings = {"num_members": 7, "prior_scale": 0.5}
  configs = {
    agent: small.agent_config({**settings, "agent": agent}, batch_size=9)
    for agent in small.AGENTS
  }
  single = configs.pop("double_dqn")
  assert (single.num_members, single.prior_scale, single.target) == (
    1,
    0,
    one_step.DoubleQ(),
  )
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
    curve, best = small.means(ends, returns, at)
    for value, step in zip(curve, at, strict=True):
      past = [r for r, end in zip(returns, ends, strict=True) if end <= step]
      assert value == pytest.approx(np.mean(past[-100:]))
    windows = [returns[i : i + 100] for i in range(max(1, num_episodes - 99))]
    assert best == pytest.approx(max(np.mean(window) for window in windows))


def test_claims_hold_where_agents_are_ordered_as_in_the_paper(verdicts):
  def rank(agent):  # InfoGain is no better than voting.
    return 2 if agent == "ucb_infogain" else list(small.AGENTS).index(agent)

  results = _results(
    episodes=lambda agent, size: 2**size // (1 + rank(agent)),
    bricks=lambda agent: 5.0 + rank(agent),
  )
  assert verdicts("ucb/small", results) == [True] * 7


def test_claims_do_not_hold_elsewhere_and_cannot_be_told_of_agents_alike(verdicts):
  results = _results(episodes=lambda agent, size: 0, bricks=lambda agent: 5.0)
  assert verdicts("ucb/small", results) == [None] * 7
  better = ("ucb_infogain", "double_dqn")
  results = _results(
    episodes=lambda agent, size: 10 if agent in better else 0,
    bricks=lambda agent: 9.0 if agent in better else 5.0,
  )
  assert verdicts("ucb/small", results) == [
    *(False, False, None),
    *(False, False, None),
    False,
  ]
  # Of two baselines, one is not enough.
  results = _results(
    episodes=lambda agent, size: 0,
    bricks=lambda agent: 9.0 if agent in ("ucb", "double_dqn") else 5.0,
  )
  assert verdicts("ucb/small", results) == [
    *(None, False, True),
    *(None, None, None),
    True,
  ]


def _returns(of):
  """Made-up curves: (agent, temperature, game) → the return, a little more by seed."""

  def results(settings):
    value = of(settings["agent"], settings["temperature"], settings["environment"])
    seeds = 1 + 0.01 * np.array(settings["seeds"])
    curve = value * seeds[:, None] * np.ones(settings["num_points"])
    return {"curve": curve, "best": curve[:, 0]}

  return results


def test_temperatures_are_of_infogain_only():
  settings = {"num_members": 3, "prior_scale": 0.0}
  of = small.agent_config({**settings, "agent": "ucb_infogain", "temperature": 0.3})
  assert of.bonus == infogain.InfoGain(temperature=0.3)
  figure = registry.FIGURES["ucb/fig5"]
  tasks = figure.tasks(figure.config)
  assert len(tasks) == 3 * (4 + 3) and len({task.name for task in tasks}) == len(tasks)
  for task in tasks:
    given = task.settings["temperature"] is not None
    assert given == (task.settings["agent"] == "ucb_infogain")


def test_claims_about_small_games(verdicts, make_up):
  order = list(small.AGENTS)

  def as_in_the_paper(agent, temperature, game):
    if agent == "ucb_infogain":
      best = {"breakout": 0.1, "gridworld/10,time_limit=200": 10.0}.get(game, 1.0)
      # No better at T = 1 on the whole, and better at the best one.
      return 9.0 if temperature == best else 1.0
    return 2.0 + order.index(agent)

  assert verdicts("ucb/fig5", _returns(as_in_the_paper)) == [True] * 6
  alike = verdicts("ucb/fig5", _returns(lambda *_: 1.0))
  assert alike == [True, *[None] * 5]
  wrong = verdicts(
    "ucb/fig5",
    _returns(lambda agent, t, game: 5.0 - order.index(agent) + (t == 1.0) * 9),
  )
  assert wrong == [True, False, False, False, False, True]
  pytest.importorskip("matplotlib")
  figure = registry.FIGURES["ucb/fig5"]
  table = make_up("ucb/fig5", _returns(as_in_the_paper))
  drawn = figure.draw(figure.config, table)
  assert len(drawn.axes) == 6
