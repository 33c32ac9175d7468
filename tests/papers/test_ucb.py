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
