"""The number of updates due, the record of the current episode, and a run's errors."""

import fractions
import json
import types as modules

import numpy as np
import pytest

from explorax.agents import types
from explorax.experiments import config as config_lib
from explorax.experiments.runners import common, course


def make_pace(rate: float, min_size: int = 6) -> common.Pace:
  return common.Pace(
    types.ReplaySpec(
      capacity=100, min_size=min_size, batch_size=4, updates_per_step=rate
    )
  )


@pytest.mark.parametrize("rate", [1.0, 0.25, 0.1, 1 / 3, 2.0, 2.5, 1e-3])
@pytest.mark.parametrize("num_steps", [1, 3])
def test_no_update_is_lost_to_rounding(rate, num_steps):
  pace, made = make_pace(rate), 0
  for steps in range(num_steps, 3000, num_steps):
    made += pace.step(steps, True, num_steps)
    counted = max(0, steps // num_steps - -(-6 // num_steps) + 1) * num_steps
    exact = fractions.Fraction(rate).limit_denominator(10**6)
    assert made == counted * exact // 1


def test_updates_wait_for_a_window_and_for_replay_to_be_filled_again():
  pace = make_pace(1.0)
  assert [pace.step(n, n > 7) for n in range(1, 10)] == [0] * 7 + [1, 1]
  pace.begin_empty(9)
  assert [pace.step(n, True) for n in range(10, 17)] == [0] * 5 + [1, 1]


def test_a_pace_resumes():
  whole, parts = make_pace(0.3), make_pace(0.3)
  expected = [whole.step(n, True) for n in range(1, 40)]
  seen = []
  for n in range(1, 40):
    saved, parts = json.loads(json.dumps(parts.save())), make_pace(0.3)
    parts.restore(saved)
    seen.append(parts.step(n, True))
  assert seen == expected


def test_a_rate_that_no_runner_keeps_is_refused():
  with pytest.raises(ValueError, match="raise updates_per_step"):
    make_pace(1e-9)


def test_the_tracker_sums_an_episode():
  tracker = common.EpisodeTracker()
  assert (tracker.length, tracker.policy, tracker.metrics()) == (0, None, {})
  tracker.acted({"policy": np.int32(2), "r_int": np.float32(0.5)})
  tracker.stepped(0.1)
  tracker.acted({"policy": np.int32(1), "r_int": np.float32(0.25)})
  tracker.stepped(0.2)
  assert tracker.episode_return == 0.1 + 0.2
  assert (tracker.length, tracker.policy) == (2, 2)  # The first action's policy.
  assert tracker.metrics() == {"intrinsic_return": 0.75}


@pytest.mark.parametrize("disk_is_full", [False, True])
def test_an_error_is_raised_after_the_episodes_before_it_are_reported(disk_is_full):
  told, run = [], modules.SimpleNamespace(env_steps=3, resumed_at=0, is_done=False)
  run.ended, run.activity, run.weights = ["episode"], common.ACTING, list
  run.begun = None

  def advance():
    raise FloatingPointError("the loss")

  def on_episodes(episodes):
    told.extend(episodes)
    if disk_is_full:
      raise OSError("the disk is full")

  run.advance = advance
  config = config_lib.RunConfig(agent="dqn", env="x:y", steps=9)
  with pytest.raises(FloatingPointError, match="the loss"):
    course.RunControl(run, config, common.Hooks(on_episodes=on_episodes)).train()
  assert told == ["episode"] and run.ended == []
