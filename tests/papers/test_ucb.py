"""Paper 3's agents on small problems: their settings, and what is measured."""

import dataclasses

import numpy as np
import pytest

from explorax.agents.targets import one_step
from explorax.papers.ucb import small


def test_ensembles_differ_in_how_they_explore_only():
  settings = {"num_members": 7, "prior_scale": 0.5}
  configs = {
    agent: small.agent_config({**settings, "agent": agent}, batch_size=9)
    for agent in small.AGENTS.values()
  }
  single = configs.pop("double_dqn")
  assert (single.num_members, single.prior_scale) == (1, 0)
  assert single.target == one_step.DoubleQ()
  assert configs["ucb"].num_members == 7 and configs["ucb"].prior_scale == 0.5
  for config in configs.values():
    own = {name: getattr(config, name) for name in ("exploration", "bonus", "beta")}
    assert dataclasses.replace(configs["ucb"], **own) == config
  assert len({config.exploration for config in configs.values()}) == 3
  assert configs["ucb_infogain"].beta == 1 and configs["ucb"].beta == 0


def test_the_best_mean_is_over_a_window_of_a_hundred_episodes():
  rng = np.random.default_rng(0)
  for num_episodes in (1, 60, 100, 101, 350):
    returns = rng.integers(0, 9, num_episodes).astype(float).tolist()
    windows = [returns[i : i + 100] for i in range(max(1, num_episodes - 99))]
    expected = max(np.mean(window) for window in windows)
    assert small.best_mean(returns) == pytest.approx(expected)
