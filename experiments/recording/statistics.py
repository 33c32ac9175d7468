"""Statistics over seeds: bootstrap intervals as in rliable, and t-intervals.

Agarwal et al. (2021), "Deep reinforcement learning at the edge of the statistical
precipice": seeds are drawn with replacement, for each task separately (stratified), and
the interval spans percentiles of the statistic over the draws.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

NUM_RESAMPLES = 2000
LEVEL = 0.95
_MAX_ELEMENTS = 2**24  # Of an array of draws: 128 MiB.


class Interval(NamedTuple):
  """A statistic and its interval, float64 each, with the same shape."""

  value: np.ndarray
  low: np.ndarray
  high: np.ndarray

  def at(self, index: int) -> "Interval":
    """The interval at one point, with scalars."""
    return Interval(self.value[index], self.low[index], self.high[index])

  def map(self, function: Callable[[np.ndarray], np.ndarray]) -> "Interval":
    """The interval of an increasing function of the statistic, such as `np.exp`."""
    return Interval(*map(function, self))

  def words(self, spec: str = ".3g") -> str:
    """A scalar interval as `0.5 [0.4, 0.7]`; a sign in `spec` applies to the value."""
    own = spec.removeprefix("+")
    return f"{self.value:{spec}} [{self.low:{own}}, {self.high:{own}}]"

  def is_above(self, bound: float = 0.0) -> bool | None:
    """Whether a scalar interval lies above the bound; None if it contains the bound."""
    if self.low > bound:
      return True
    return False if self.high < bound else None

  def is_below(self, bound: float = 0.0) -> bool | None:
    """Whether a scalar interval lies below the bound; None if it contains the bound."""
    above = self.is_above(bound)
    return None if above is None else not above


def mean_over_seeds(x: np.ndarray) -> np.ndarray:
  """`[..., S, *]` with seeds in axis −2 → their mean."""
  return np.mean(x, axis=-2)


def median_over_seeds(x: np.ndarray) -> np.ndarray:
  """`[..., S, *]` with seeds in axis −2 → their median."""
  return np.median(x, axis=-2)


def geometric_mean_over_seeds(x: np.ndarray) -> np.ndarray:
  """`[..., S, *]`, positive, with seeds in axis −2 → their geometric mean."""
  return np.exp(np.mean(np.log(x), axis=-2))


def bootstrap(
  values: np.ndarray,
  statistic: Callable[[np.ndarray], np.ndarray] = mean_over_seeds,
  *,
  num_resamples: int = NUM_RESAMPLES,
  level: float = LEVEL,
) -> Interval:
  """A statistic of a curve over seeds, with an interval at each of its points.

  Args:
    values: `[S, N]`, S seeds at N points.
    statistic: `[R, S, N]` → `[R, N]`, a function over the seeds in axis −2.
    num_resamples: R.
    level: the interval's share of the draws.

  Returns:
    An interval of shape `[N]`; its width is 0 for a single seed.

  Raises:
    ValueError: if `values` has not two axes, or is empty.
  """
  values = np.asarray(values, np.float64)
  if values.ndim != 2 or not values.size:
    raise ValueError(
      f"the values have shape {values.shape}; give [seeds, points], both at least 1."
    )
  num_seeds, num_points = values.shape
  # The same draws at each point, so that curves are drawn as a whole.
  rng = np.random.default_rng(0)
  rows = rng.integers(num_seeds, size=(num_resamples, num_seeds))
  share = max(1, _MAX_ELEMENTS // (num_resamples * num_seeds))
  tails = (50 * (1 - level), 50 * (1 + level))
  parts = []
  for start in range(0, num_points, share):
    part = values[:, start : start + share]
    parts.append(np.percentile(statistic(part[rows]), tails, axis=0))
  low, high = np.concatenate(parts, axis=-1)
  return Interval(statistic(values[None])[0], low, high)


def mean(values: Sequence[float] | np.ndarray) -> Interval:
  """The mean of one number per seed, `[S]`, with Student's t-interval.

  A bootstrap interval of few seeds is too narrow: with five seeds it misses the true
  mean in 17 % of cases, with three in 25 %, instead of 5 %. The interval of a single
  seed has width 0.
  """
  values = np.asarray(values, np.float64)
  num = len(values)
  variance = float(np.var(values, ddof=1)) / num if num > 1 else 0.0
  return _t_interval(np.mean(values), variance, num - 1)


def _t_interval(value: Any, variance: float, freedom: float) -> Interval:
  """The interval of an estimate from its variance and degrees of freedom."""
  from scipy import stats  # Slow to import.

  width = 0.0
  if variance > 0:
    width = stats.t.ppf((1 + LEVEL) / 2, freedom) * np.sqrt(variance)
  return Interval(value, value - width, value + width)


def stratified_mean(
  scores: np.ndarray, *, num_resamples: int = NUM_RESAMPLES, level: float = LEVEL
) -> Interval:
  """The mean over tasks and seeds; seeds are drawn for each task separately.

  Args:
    scores: `[S, M]`, S seeds of M tasks.
    num_resamples: number of draws.
    level: the interval's share of them.

  Returns:
    A scalar interval.
  """
  scores = np.asarray(scores, np.float64)
  if scores.ndim != 2 or not scores.size:
    raise ValueError(
      f"the scores have shape {scores.shape}; give [seeds, tasks], both at least 1."
    )
  rng = np.random.default_rng(0)
  means = np.empty(num_resamples)
  for i in range(num_resamples):
    rows = rng.integers(scores.shape[0], size=scores.shape)
    means[i] = np.mean(np.take_along_axis(scores, rows, axis=0))
  low, high = np.percentile(means, (50 * (1 - level), 50 * (1 + level)))
  return Interval(np.mean(scores), low, high)


def difference(a: np.ndarray, b: np.ndarray) -> Interval:
  """The mean of `a` minus that of `b`, with Welch's t-interval.

  Args:
    a: `[S]`, one number per seed.
    b: `[S']`.

  Returns:
    A scalar interval, above 0 if `a` is significantly greater.
  """
  groups = [np.asarray(x, np.float64) for x in (a, b)]
  parts = [float(np.var(x, ddof=1)) / len(x) if len(x) > 1 else 0.0 for x in groups]
  variance, freedom = math.fsum(parts), 1.0
  if variance > 0:
    shares = [
      part**2 / (len(x) - 1) for part, x in zip(parts, groups, strict=True) if part
    ]
    freedom = variance**2 / sum(shares)
  return _t_interval(np.mean(groups[0]) - np.mean(groups[1]), variance, freedom)


def best_of(values: np.ndarray, *, num_resamples: int = NUM_RESAMPLES) -> np.ndarray:
  """Bootstraps which setting is the best on average over seeds.

  Args:
    values: `[S, N]`, S seeds for each of N settings.
    num_resamples: R.

  Returns:
    The index of the best setting in each draw, int `[R]`.
  """
  rng = np.random.default_rng(0)
  rows = rng.integers(len(values), size=(num_resamples, len(values)))
  return np.array([np.argmax(np.mean(values[row], axis=0)) for row in rows])
