"""The test of most claims: compares one group of seeds with another.

A claim holds if the 95 % t-interval of the difference of means lies on the claim's side
of 0, and does not hold if it lies on the other side. If the interval contains 0, it
cannot be told whether the claim holds: there are too few seeds, or the problem does not
separate the groups.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from explorax.experiments.recording import statistics
from explorax.papers import types

LEAST_SEEDS = 3  # With fewer seeds, no claim is decided.


def compare(
  claim: str,
  a: np.ndarray,
  b: np.ndarray,
  measured: str,
  *,
  less: bool = False,
  spec: str = "+.3g",
) -> types.Finding:
  """Whether `a` `[S]` is greater on average than `b` `[S']`.

  Args:
    claim: the statement to test.
    a: one number per seed.
    b: one number per seed of the other group.
    measured: a template of the finding's text: `{a}` and `{b}` stand for the means, and
      `{gap}` for their difference and its interval.
    less: whether the claim is that `a` is less than `b`.
    spec: the format of the numbers in `{gap}`.
  """
  gap = statistics.difference(a, b)
  words = measured.format(a=np.mean(a), b=np.mean(b), gap=gap.words(spec))
  held, seeds = gap.is_below() if less else gap.is_above(), min(len(a), len(b))
  return types.Finding(claim, words, None if seeds < LEAST_SEEDS else held, seeds)


def compare_means(claim: str, a: np.ndarray, b: np.ndarray, what: str) -> types.Finding:
  """`compare` with a standard text; `what` names the quantity that is compared."""
  measured = f"{what} {{a:.3g}} and {{b:.3g}}, a difference of {{gap}}"
  return compare(claim, a, b, measured, spec=".3g")


def all_of(
  claim: str, parts: Sequence[types.Finding], separator: str = "; "
) -> types.Finding:
  """A claim that holds if all parts hold; its text joins the parts' measurements."""
  words = separator.join(part.measured for part in parts)
  seeds = [part.num_seeds for part in parts if part.num_seeds is not None]
  held = all_hold(part.held for part in parts)
  return types.Finding(claim, words, held, min(seeds, default=None))


def negated(held: bool | None) -> bool | None:
  """Whether the opposite of a claim holds; None if this cannot be told."""
  return None if held is None else not held


def all_hold(parts: Iterable[bool | None]) -> bool | None:
  """Whether all parts hold: False if one does not; else None if one is None."""
  held = list(parts)
  if False in held:
    return False
  return None if None in held else True
