"""Running means and best means of returns, and those at a run's end."""

import numpy as np
import pytest

from explorax.experiments.recording import returns as returns_lib

pytestmark = pytest.mark.ops


@pytest.mark.parametrize("count", [0, 1, 99, 100, 101, 257])
def test_means_equal_plain_loops(count):
  values = np.random.default_rng(count).normal(size=count)
  running = [np.mean(values[max(0, i - 99) : i + 1]) for i in range(count)]
  np.testing.assert_allclose(returns_lib.running_mean(values, 100), running, atol=1e-12)
  if count == 0:
    assert returns_lib.best_mean(values) is None
    return
  best = max(running[99:]) if count >= 100 else None
  assert returns_lib.best_mean(values) == pytest.approx(best)


@pytest.mark.parametrize(
  ("env_steps", "late"),
  [
    (40, [4.0]),
    (400, [4.0]),  # None has ended in the last tenth: the last one counts.
    (33, [3.0, 4.0]),
  ],
)
def test_returns_at_the_end_are_of_the_last_tenth_of_the_steps(
  make_episode, env_steps, late
):
  returns = returns_lib.Returns()
  assert not len(returns.late(env_steps))
  for number in range(1, 5):
    returns.add(make_episode(number))
  assert returns.late(env_steps).tolist() == late
  assert returns.late(env_steps, "explorer").tolist() == [3.0]
