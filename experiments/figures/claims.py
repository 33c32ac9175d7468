"""The test that most claims come down to: one group of seeds against another."""

from collections.abc import Callable, Sequence

import numpy as np

from explorax.experiments.figures import types
from explorax.experiments.recording import statistics


def compare(
  claim: str,
  a: np.ndarray,
  b: np.ndarray,
  measured: str,
  *,
  less: bool = False,
  spec: str = "+.3g",
  statistic: Callable[[np.ndarray], np.ndarray] = statistics.mean_over_seeds,
) -> types.Finding:
  """Whether `a` `[S]` is greater on average than `b` `[S']`, beyond doubt.

  Args:
    claim: what should be so.
    a: a number for each seed.
    b: likewise.
    measured: the words, with `{a}` and `{b}` for the means, and `{gap}` for their
      difference and its interval, written by `spec`.
    less: the claim is that `a` is less than `b`.
    spec: of a number.
    statistic: another one than the mean, for the difference.
  """
  gap = statistics.difference(a, b, statistic)
  words = measured.format(a=np.mean(a), b=np.mean(b), gap=gap.words(spec))
  return types.Finding(claim, words, gap.is_below() if less else gap.is_above())


def compare_means(claim: str, a: np.ndarray, b: np.ndarray, what: str) -> types.Finding:
  """`compare`, with words that say what the means are of."""
  measured = f"{what} {{a:.3g}} and {{b:.3g}}, a difference of {{gap}}"
  return compare(claim, a, b, measured, spec=".3g")


def all_of(
  claim: str, parts: Sequence[types.Finding], separator: str = "; "
) -> types.Finding:
  """Whether all of the parts hold, with what was measured of each."""
  words = separator.join(part.measured for part in parts)
  return types.Finding(claim, words, all(part.held for part in parts))
