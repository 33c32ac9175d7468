"""Schedules: their values over time, and which settings are refused."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax import exploration, ranges
from explorax.exploration import schedules

pytestmark = pytest.mark.core

ALTERNATING = schedules.Alternating(start=0.9, decay_steps=25, period_steps=10, seed=3)
LINEAR = schedules.Linear(1.0, 0.1, steps=100)
LATER = schedules.Linear(1e-4, 5e-5, steps=100, begin=20)
PIECEWISE = schedules.Piecewise((1.0, 0.1, 0.01), (100, 500))


@pytest.mark.parametrize(
  ("schedule", "times", "expected"),
  [
    (LINEAR, (0, 25, 50, 100, 10**9), (1.0, 0.775, 0.55, 0.1, 0.1)),
    (LATER, (0, 20, 70, 120, 500), (1e-4, 1e-4, 7.5e-5, 5e-5, 5e-5)),
    (PIECEWISE, (0, 50, 100, 300, 500, 10**7), (1.0, 0.55, 0.1, 0.055, 0.01, 0.01)),
  ],
  ids=str,
)
def test_values_over_time(schedule, times, expected):
  for at in (schedules.at, jax.jit(schedules.at, static_argnums=0)):
    actual = [at(schedule, jnp.int32(time)) for time in times]
    np.testing.assert_allclose(actual, expected, rtol=1e-6)


def test_an_alternating_schedule_resumes_where_it_was_left():
  """Against a plain loop with a count for each schedule."""
  drawn = np.random.default_rng(3).choice(3, size=4096, p=ALTERNATING.probabilities)
  followed, expected = [0, 0, 0], []
  for step in range(300):
    schedule = drawn[step // 10]
    share = min(followed[schedule] / 25, 1.0)
    expected.append(0.9 + share * (ALTERNATING.ends[schedule] - 0.9))
    followed[schedule] += 1
  assert min(followed) > 25
  at = jax.jit(jax.vmap(ALTERNATING))
  np.testing.assert_allclose(at(np.arange(300)), expected, rtol=1e-5)
  # After the last draw they repeat, all schedules having decayed.
  late = at(10 * (4096 + np.arange(300)))
  np.testing.assert_allclose(late, np.take(ALTERNATING.ends, drawn[:300]), rtol=1e-5)


@dataclasses.dataclass(frozen=True)
class Settings(ranges.Checked):
  epsilon: schedules.Probability = 0.5
  rate: schedules.LearningRate = 1e-3


@pytest.mark.parametrize(
  "epsilon",
  [
    schedules.Linear(1.0, -0.1, 5),
    schedules.Linear(float("inf"), 0.1, 5),
    schedules.Piecewise((0.5, 2.0, 0.1), (1, 2)),
    schedules.Alternating(ends=(0.5, 0.1, 7.0)),
  ],
)
def test_a_schedule_that_leaves_the_range_is_refused(epsilon):
  with pytest.raises(ValueError, match=f"epsilon is {type(epsilon).__name__}"):
    Settings(epsilon=epsilon)


def test_a_learning_rate_may_fall_to_0_but_not_be_0():
  Settings(rate=schedules.Linear(1e-3, 0.0, 5))
  for rate in (0.0, schedules.Linear(1e-3, -1e-3, 5)):
    with pytest.raises(ValueError, match="rate is"):
      Settings(rate=rate)


def test_the_values_at_a_time_of_a_rule_and_of_those_it_wraps():
  rule = exploration.EzGreedy(LINEAR, of=exploration.Ucb(scale=PIECEWISE))
  assert schedules.current(rule, 50) == pytest.approx({"epsilon": 0.55, "scale": 0.55})
  twice = exploration.EpsilonGreedy(0.1, of=exploration.EpsilonGreedy(LINEAR))
  assert schedules.current(twice, 100) == pytest.approx(
    {"epsilon": 0.1, "of.epsilon": 0.1}
  )
  assert schedules.current(exploration.Boltzmann(2.0), 0) == {"temperature": 2.0}
  assert schedules.current(exploration.Greedy(), 0) == {}
  assert schedules.current(None, 0) == schedules.current(object(), 0) == {}
