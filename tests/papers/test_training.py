"""Training for figures: what is timed."""

import types as modules

import pytest

from explorax.experiments import config as config_lib
from explorax.experiments.runners import common
from explorax.papers import training


def test_a_steps_time_is_that_of_the_second_half_without_the_evaluation(monkeypatch):
  now = 0.0

  def train(config, hooks, given):
    nonlocal now
    for steps, seconds in ((200, 9.0), (600, 2.0), (1000, 2.0)):
      now += seconds
      hooks.on_episode(modules.SimpleNamespace(seed=0, env_steps=steps))
      if steps < 1000:
        hooks.stop()
    hooks.on_activity(common.Activity(common.EVALUATING, 1000))
    now += 50.0
    hooks.stop()
    return {0: modules.SimpleNamespace(interrupted=False)}

  monkeypatch.setattr(training.time, "process_time", lambda: now)
  monkeypatch.setattr(training.session, "train", train)
  config = config_lib.RunConfig("dqn", env="jax:catch", seed=0, steps=1000)
  trained = training.train(config)
  assert trained.step_seconds == pytest.approx(2.0 / 400)
  assert len(trained.episodes[0]) == 3
