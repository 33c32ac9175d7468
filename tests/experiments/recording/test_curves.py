"""Running means of returns, and those at a run's end."""

import numpy as np
import pytest

from explorax.experiments.recording import curves


@pytest.mark.parametrize("count", [0, 1, 99, 100, 101, 257])
def test_means_equal_plain_loops(count):
  values = np.random.default_rng(count).normal(size=count)
  running = [np.mean(values[max(0, i - 99) : i + 1]) for i in range(count)]
  np.testing.assert_allclose(curves.running_mean(values, 100), running, atol=1e-12)


@pytest.mark.parametrize(
  ("env_steps", "late"),
  [
    (40, [4.0]),
    (400, [4.0]),  # None has ended in the last tenth: the last one counts.
    (33, [3.0, 4.0]),
  ],
)
def test_returns_at_the_end_are_of_the_last_tenth_of_the_steps(
  make_columns, env_steps, late
):
  assert not len(curves.late_returns(make_columns(0), env_steps))
  episodes = make_columns(4)
  assert curves.late_returns(episodes, env_steps).tolist() == late
  of_policy = curves.of_policy(episodes, "explorer")
  assert curves.late_returns(of_policy, env_steps).tolist() == [3.0]
