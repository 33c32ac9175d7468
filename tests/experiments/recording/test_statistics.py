"""Intervals over seeds, by theory, by rliable and by hand."""

import numpy as np
import pytest

from explorax.experiments.recording import statistics


def test_the_interval_is_as_wide_as_theory_says():
  """Of a mean of many normal values: 1.96 standard errors to each side."""
  values = np.random.default_rng(1).normal(3.0, 2.0, size=(400, 3))
  interval = statistics.bootstrap(values)
  np.testing.assert_allclose(interval.value, values.mean(0))
  error = 1.96 * values.std(0) / np.sqrt(400)
  np.testing.assert_allclose(interval.high - interval.value, error, rtol=0.1)
  np.testing.assert_allclose(interval.value - interval.low, error, rtol=0.1)


def test_seeds_are_resampled_for_each_task():
  """The interval has no width if each task has the same score for all seeds."""
  scores = np.tile([0.0, 1.0, 5.0], (6, 1))
  mean = statistics.mean_of_tasks
  assert statistics.stratified([*scores.T], mean) == (2.0, 2.0, 2.0)
  noisy = scores + np.random.default_rng(4).normal(size=scores.shape)
  interval = statistics.stratified([*noisy.T], mean)
  error = 1.96 * np.sqrt(np.mean(noisy.var(0)) / noisy.size)
  assert interval.value == pytest.approx(noisy.mean())
  assert interval.high - interval.low == pytest.approx(2 * error, rel=0.15)


def test_statistics_and_intervals_of_rliable():
  """Agents may have different numbers of seeds; rliable draws other random numbers."""
  pytest.importorskip("rliable", reason="needs pandas 2 or older")
  from rliable import library, metrics

  rng = np.random.default_rng(6)
  x, y = rng.normal(0.6, 1.0, size=(10, 2)), rng.normal(size=(7, 2)).round(1)
  y[0] = x[0] = 0.5  # A tie.
  cases = (
    (statistics.interquartile_mean, metrics.aggregate_iqm, x, ()),
    (statistics.median_of_tasks, metrics.aggregate_median, x, ()),
    (statistics.mean_of_tasks, metrics.aggregate_mean, x, ()),
    (
      statistics.probability_of_improvement,
      metrics.probability_of_improvement,
      x,
      (y,),
    ),
  )
  for ours, theirs, first, others in cases:
    tasks = [task for scores in (first, *others) for task in scores.T]
    found = statistics.stratified(tasks, ours)
    assert found.value == pytest.approx(theirs(first, *others))
    scores = {"agent": (first, *others) if others else first}
    function = lambda *z, theirs=theirs: np.array([theirs(*z)])  # noqa: E731
    _, intervals = library.get_interval_estimates(
      scores, function, reps=300, random_state=np.random.RandomState(0)
    )
    width = found.high - found.low
    np.testing.assert_allclose(
      [found.low, found.high], intervals["agent"][:, 0], atol=0.12 * width
    )


@pytest.mark.parametrize("num_seeds", [3, 30])
def test_intervals_of_few_seeds_miss_the_truth_one_time_in_twenty(num_seeds):
  draws = np.random.default_rng(num_seeds).normal(size=(500, num_seeds))
  missed = [statistics.mean(draw).is_above() is not None for draw in draws]
  assert 0.03 < np.mean(missed) < 0.07


def test_an_interval_of_scalars():
  interval = statistics.mean([0.0, 1.0] * 50)
  assert interval.value == 0.5 and 0.35 < interval.low < 0.45 < 0.55 < interval.high
  assert [interval.is_above(x) for x in (0.0, 0.45, 1.0)] == [True, None, False]
  assert [interval.is_below(x) for x in (0.0, 0.45, 1.0)] == [False, None, True]
  same = statistics.mean([1.0, 1.0])  # No width, and no difference from 1.
  assert same.is_above(1.0) is None and same.is_below(1.0) is None
  fixed = statistics.Interval(np.float64(0.5), np.float64(0.25), np.float64(1.0))
  assert fixed.to_text("+.2f") == "+0.50 [0.25, 1.00]"
  assert fixed.map(np.log2) == (-1.0, -2.0, 0.0)
