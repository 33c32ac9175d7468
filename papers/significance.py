"""Tests of two groups of seeds, and of episodes to solve problems.

Each says which difference it detects with a probability of 0.8.
"""

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy  # It imports `stats` when it is first used.

from explorax.experiments.recording import statistics

LEVEL = 0.05
POWER = 0.8


class Tested(NamedTuple):
  """A test of two groups.

  Attributes:
    gap: the mean of the first group minus that of the second.
    p: two-sided.
    name: of the test.
    detectable: the difference that it detects with a probability of 0.8.
  """

  gap: statistics.Interval
  p: float
  name: str
  detectable: float


Test = Callable[[np.ndarray, np.ndarray], Tested]


def paired(a: np.ndarray, b: np.ndarray) -> Tested:
  """Student's t-test of the differences `[S]`."""
  return _t_test(scipy.stats.ttest_rel, "paired t", a, b, is_same=np.ptp(a - b) == 0)


def unpaired(a: np.ndarray, b: np.ndarray) -> Tested:
  """Welch's t-test of `[S]` and `[S']`."""
  test = functools.partial(scipy.stats.ttest_ind, equal_var=False)
  return _t_test(test, "Welch's t", a, b, is_same=np.ptp(a) == np.ptp(b) == 0)


def _t_test(
  test: Any, name: str, a: np.ndarray, b: np.ndarray, is_same: bool
) -> Tested:
  """Without an interval for a group of one seed, or if all have the same numbers."""
  value = np.mean(a) - np.mean(b)
  few = min(len(a), len(b)) < 2
  if few or is_same:
    gap = statistics.Interval(value, value, value)
    return Tested(gap, float(few or not value), name, math.nan)
  found = test(a, b)
  gap = statistics.Interval(value, *found.confidence_interval(statistics.LEVEL))
  quantile, power = scipy.stats.t.ppf([1 - LEVEL / 2, POWER], found.df)
  detectable = float(gap.high - value) * (1 + power / quantile)
  return Tested(gap, float(found.pvalue), name, detectable)


def wilcoxon(a: np.ndarray, b: np.ndarray) -> Tested:
  """Wilcoxon's signed-rank test of pairs; the interval is a bootstrap's."""
  p = float(scipy.stats.wilcoxon(a, b).pvalue) if np.any(a != b) else 1.0
  return Tested(statistics.bootstrap(a - b), p, "Wilcoxon", paired(a, b).detectable)


def fisher(a: np.ndarray, b: np.ndarray) -> Tested:
  """Fisher's exact test of the shares of ones; Newcombe's interval (1998)."""
  counts, sizes = [int(np.sum(x)) for x in (a, b)], [len(a), len(b)]
  (p, low_p, high_p), (q, low_q, high_q) = (
    (k / n, *scipy.stats.binomtest(k, n).proportion_ci(method="wilson"))
    for k, n in zip(counts, sizes, strict=True)
  )
  gap = statistics.Interval(
    np.asarray(p - q),
    p - q - np.hypot(p - low_p, high_q - q),
    p - q + np.hypot(high_p - p, q - low_q),
  )
  value = _fisher_p(*counts, *sizes)
  detectable = _detectable_share(len(a), len(b), q) if value >= LEVEL else math.nan
  return Tested(gap, value, "Fisher's exact", detectable)


def _fisher_p(i: int, j: int, n: int, m: int) -> float:
  return float(scipy.stats.fisher_exact([[i, n - i], [j, m - j]]).pvalue)


def _detectable_share(n: int, m: int, q: float) -> float:
  """The least difference from the share `q` of m runs that n runs would show."""
  significant = np.array(
    [[_fisher_p(i, j, n, m) < LEVEL for j in range(m + 1)] for i in range(n + 1)]
  )
  of_b = scipy.stats.binom.pmf(np.arange(m + 1), m, q)
  for share in sorted(np.linspace(0, 1, 101), key=lambda x: abs(x - q)):
    of_a = scipy.stats.binom.pmf(np.arange(n + 1), n, share)
    if of_a @ significant @ of_b >= POWER:
      return float(abs(share - q))
  return math.nan


def below_best(groups: Sequence[np.ndarray]) -> np.ndarray:
  """Whether each of G groups `[S]` is below the one with the greatest mean.

  Games and Howell's test of all pairs (1976), which allows for that the best one is
  known from the same data: with t of Welch's test and its degrees of freedom,
  p = P(Q > √2 |t|), where Q is the studentized range of G means. As
  `scipy.stats.tukey_hsd(equal_var=False)`, which computes all pairs, and is NaN where
  two groups are constant.

  Returns:
    p of each group, `[G]`; 1 of the best one.
  """
  best = max(groups, key=np.mean)

  def p_of(group: np.ndarray) -> float:
    if np.ptp(group) == np.ptp(best) == 0:
      return float(np.mean(best) == np.mean(group))
    found = scipy.stats.ttest_ind(best, group, equal_var=False)
    q = math.sqrt(2) * abs(found.statistic)
    return float(scipy.stats.studentized_range.sf(q, len(groups), found.df))

  return np.array([p_of(group) for group in groups])


def share(count: int, num: int) -> statistics.Interval:
  """A share of runs with Clopper and Pearson's exact interval."""
  ends = scipy.stats.binomtest(count, num).proportion_ci()
  return statistics.Interval(*np.array([count / num, *ends]))


def left_out(test: Test, groups: Sequence[np.ndarray], least: int) -> Iterator[Tested]:
  """The test without each pair, or each seed, of groups of more than `least`."""
  pairs = test in (paired, wilcoxon)
  for i, group in enumerate(groups[: 1 if pairs else 2]):
    if len(group) > least:
      for seed in range(len(group)):
        rest = (
          np.delete(x, seed) if pairs or i == j else x for j, x in enumerate(groups)
        )
        yield test(*rest)


class Times(NamedTuple):
  """Episodes to solve problems, `[S, P]`; where not `solved`, the limit of the run.

  `problems` are P names, of which several may be equal; empty if they have none.
  """

  episodes: np.ndarray
  solved: np.ndarray
  problems: tuple[str, ...] = ()

  def without(self, seed: int) -> "Times":
    return self._replace(
      episodes=np.delete(self.episodes, seed, axis=0),
      solved=np.delete(self.solved, seed, axis=0),
    )

  def without_problem(self, name: str) -> "Times":
    kept = [i for i, problem in enumerate(self.problems) if problem != name]
    names = tuple(self.problems[i] for i in kept)
    return Times(self.episodes[:, kept], self.solved[:, kept], names)


def log_rank(
  a: Times, b: Times, num_permutations: int = 10_000
) -> tuple[float, float, float]:
  """The log-rank test, stratified by problem (Mantel, 1966).

  The groups are permuted within problems, since seeds are few.

  Returns:
    By how much the solutions of `a` exceed those expected, the variance of this number,
    and the p of the permutations, two-sided.
  """
  if a.episodes.shape[1] != b.episodes.shape[1]:  # Not the same problems: no strata.
    a, b = (Times(x.episodes.reshape(-1, 1), x.solved.reshape(-1, 1)) for x in (a, b))
  rng = np.random.default_rng(0)
  gap, variance, drawn = 0.0, 0.0, np.zeros(num_permutations)
  for i in range(a.episodes.shape[1]):
    times, solved = (
      np.concatenate([x[:, i], y[:, i]]) for x, y in zip(a[:2], b[:2], strict=True)
    )
    num, at_risk = len(a.episodes), times[:, None] >= times
    # Each event adds to the scores of those at risk: the sum over `a` is observed minus
    # expected.
    events = np.where(solved, 1.0 / at_risk.sum(axis=0), 0.0)
    scores = solved - at_risk @ events
    gap += scores[:num].sum()
    for time in np.unique(times[solved > 0]):
      n, of_a = np.sum(times >= time), np.sum(times[:num] >= time)
      d = np.sum(solved[times == time])
      variance += d * of_a * (n - of_a) * (n - d) / (n**2 * max(n - 1, 1))
    tiled = np.tile(scores, (num_permutations, 1))
    drawn += rng.permuted(tiled, axis=1)[:, :num].sum(axis=1)
  extreme = np.sum(np.abs(drawn) >= abs(gap) - 1e-9)
  return float(gap), float(variance), float((1 + extreme) / (1 + num_permutations))


def p_words(p: float) -> str:
  """`p = 0.012`, of two digits."""
  return f"p = {p:.2g}" if p > 1e-4 else "p < 0.0001"


def holm(ps: Sequence[float]) -> list[float]:
  """p corrected for several tests by Holm's step-down method (1979)."""
  values = np.array(ps, np.float64)
  order = np.argsort(values)
  steps = values[order] * np.arange(len(values), 0, -1)
  corrected = np.empty_like(values)
  corrected[order] = np.minimum(1.0, np.maximum.accumulate(steps))
  return corrected.tolist()
