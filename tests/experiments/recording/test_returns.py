"""Running means, best means, curves on a grid, and returns by policy."""

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
    assert returns_lib.mean_of_last(values) is None
    assert returns_lib.best_mean(values) is None
    return
  assert returns_lib.mean_of_last(values) == pytest.approx(running[-1])
  best = max(running[99:]) if count >= 100 else None
  assert returns_lib.best_mean(values) == pytest.approx(best)


@pytest.mark.parametrize(
  ("count", "window"), [(9, 1), (45, 4), (1000, 100), (5000, 100)]
)
def test_curves_are_smooth_over_a_tenth_of_the_run(count, window):
  values = np.random.default_rng(count).normal(size=count)
  last = np.mean(values[-window:])
  assert returns_lib.smooth(values)[-1] == pytest.approx(last)


def test_returns_are_kept_apart_by_policy(make_episode):
  returns = returns_lib.Returns()
  assert returns.policies == []
  for number in range(1, 6):
    returns.add(make_episode(number))
  assert returns.policies == ["exploiter", "explorer"]
  assert returns.of().tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]
  assert returns.of("explorer").tolist() == [1.0, 3.0, 5.0]
  assert returns.env_steps("exploiter").tolist() == [20, 40]
