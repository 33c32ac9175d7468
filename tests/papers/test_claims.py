"""The verdicts of claims: held, did not hold, or cannot be told."""

import itertools

import numpy as np
import pytest

from explorax.papers import claims, types


@pytest.mark.parametrize(
  ("shift", "verdict"),
  [(2.0, "held"), (-2.0, "did not hold"), (0.0, "cannot be told")],
)
@pytest.mark.parametrize("less", [False, True])
def test_an_interval_that_contains_no_difference_decides_nothing(shift, verdict, less):
  seeds = np.linspace(-1, 1, 20)
  a, b = seeds + (-shift if less else shift), seeds[:15]
  found = claims.compare("a differs", a, b, "{a:.1f} and {b:.1f}, {gap}", less=less)
  assert (found.verdict, found.num_seeds) == (verdict, 15)


def test_more_seeds_decide_a_small_difference():
  def found(num_seeds):
    x = np.linspace(-1, 1, num_seeds)
    return claims.compare_means("", x + 0.1, x, "").verdict

  assert [found(n) for n in (10, 2000)] == ["cannot be told", "held"]


def test_equal_results_decide_nothing():
  assert claims.compare_means("", np.ones(5), np.ones(5), "").held is None


def test_all_hold_is_kleene_s_conjunction():
  order = {False: 0, None: 1, True: 2}  # The conjunction is the least.
  for parts in itertools.product(order, repeat=3):
    assert claims.all_hold(parts) is min(parts, key=order.__getitem__)
  findings = [types.Finding("", word, True, n) for word, n in [("a", 9), ("b", None)]]
  both = claims.all_of("both", findings)
  assert both == types.Finding("both", "a; b", True, 9)
  assert claims.all_of("none", []).num_seeds is None
