"""Running means and best means of returns."""

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
