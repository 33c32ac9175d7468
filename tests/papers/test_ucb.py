"""Paper 3's agents on small problems: their settings, and what is measured."""

import dataclasses

import numpy as np
import pytest

from explorax import exploration
from explorax.agents.targets import one_step
from explorax.experiments import presets
from explorax.experiments import settings as settings_lib
from explorax.papers.tdu import problems
from explorax.papers.ucb import small


def config_of(agent, *changes):
  settings = {"agent": agent, "num_members": 7, "prior_scale": 0.5}
  changes = (*problems.changes(small.with_rule(settings)), *changes)
  return settings_lib.apply(presets.PRESETS[agent].config, changes)


def test_ensembles_differ_in_how_they_explore_only():
  configs = {x: config_of(x, "batch_size=9") for x in small.AGENTS.values()}
  single = configs.pop("double_dqn")
  assert (single.num_members, single.prior_scale) == (1, 0)
  assert single.target == one_step.DoubleQ()
  assert configs["ucb"].num_members == 7 and configs["ucb"].prior_scale == 0.5
  for agent, config in configs.items():
    own = {name: getattr(config, name) for name in ("exploration", "bonus", "beta")}
    assert dataclasses.replace(configs["ucb"], **own) == config
    on_atari = presets.PRESETS[agent].config_for("atari:Breakout")
    assert config.exploration == on_atari.exploration
  assert configs["ucb_infogain"].beta == 1 and configs["ucb"].beta == 0


def test_the_best_mean_is_over_a_window_of_a_hundred_episodes():
  rng = np.random.default_rng(0)
  for num_episodes in (1, 60, 100, 101, 350):
    returns = rng.integers(0, 9, num_episodes).astype(float).tolist()
    windows = [returns[i : i + 100] for i in range(max(1, num_episodes - 99))]
    expected = max(np.mean(window) for window in windows)
    assert small.best_mean(returns) == pytest.approx(expected)


def test_breakout_has_the_papers_schedules_as_shares_of_the_run():
  settings = {"agent": "double_dqn", "num_steps": 10_000}
  config = config_of("double_dqn", *small.breakout_changes(settings))
  # Table 1: of 10 million steps, ε falls over 1 and 5, and replay has 1 million.
  epsilon = exploration.Piecewise((1, 0.1, 0.01), (1000, 5000))
  assert config.exploration.epsilon == epsilon
  assert config.replay_capacity == 1000 and config.target_update_period == 10
