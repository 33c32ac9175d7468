"""Training for figures: what is timed, and sums over the parts of a run."""

import types as modules

import numpy as np
import pytest

from explorax.experiments.runners import common
from explorax.papers import compute


def test_a_steps_time_is_that_of_the_second_half_without_the_evaluation(monkeypatch):
  now = 0.0

  def train(config, hooks, given):
    nonlocal now
    for steps, seconds in ((200, 9.0), (600, 2.0), (1000, 2.0)):
      now += seconds
      hooks.on_episode(modules.SimpleNamespace(seed=0, env_steps=steps))
      if steps < 1000:
        hooks.ended()
    hooks.on_activity(common.EVALUATING, 1000)
    now += 50.0
    hooks.ended()
    return {0: modules.SimpleNamespace(interrupted=False)}

  monkeypatch.setattr(compute.time, "process_time", lambda: now)
  monkeypatch.setattr(compute.session, "train", train)
  settings = {"agent": "dqn", "seeds": [0]}
  record = compute.train(settings, env="jax:catch", steps=1000)
  assert record.step_seconds() == pytest.approx(2.0 / 400)
  assert len(record.episodes[0]) == 3


def test_an_episode_counts_in_the_part_of_a_run_where_it_ends():
  ends, values = np.array([1, 10, 11, 29, 35]), np.array([1.0, 2.0, 4.0, 8.0, 16.0])
  sums, counts = compute.windows(ends, values, 30, 3)
  assert sums.tolist() == [3, 4, 24] and counts.tolist() == [2, 1, 2]
