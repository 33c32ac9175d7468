"""Each kind of claim: held, did not hold, or undecided."""

import itertools

import numpy as np
import pytest

from explorax.experiments.recording import statistics
from explorax.papers import claims, types

SEEDS = np.linspace(-1, 1, 20)


def table(**groups: np.ndarray) -> types.Table:
  """One task for each group: results `x`, one number per seed."""
  return types.Table(
    types.CompletedTask(
      name, {"group": name, "seeds": list(range(len(x)))}, {"x": x}, 1.0, {}
    )
    for name, x in groups.items()
  )


@pytest.mark.parametrize("shift", [2.0, -2.0, 0.0])
@pytest.mark.parametrize("less", [False, True])
def test_a_claim_is_decided_by_the_interval_of_the_difference(shift, less):
  verdict = {2.0: "held", -2.0: "did not hold", 0.0: "undecided"}[shift]
  a, b = SEEDS + (-shift if less else shift), SEEDS[:15]
  finding = claims.compare("a differs", a, b, "{a:.1f} {b:.1f} {gap}", less=less)
  assert finding.num_seeds == 15
  assert finding.held is {"held": True, "did not hold": False}.get(verdict)
  words = statistics.difference(a, b).words("+.3g")
  assert finding.measured == f"{np.mean(a):.1f} {np.mean(b):.1f} {words}"


def test_a_pair_of_seeds_decides_what_separate_seeds_do_not():
  a, b = SEEDS + 0.1 + 0.01 * SEEDS**2, SEEDS
  assert claims.compare("", a, b).held is None
  assert claims.compare("", a, b, test=claims.paired).held is True
  assert claims.compare("", a, b, test=claims.resampled).held is True
  gap = statistics.bootstrap(np.stack([a - b, b], axis=1)).at(0)
  np.testing.assert_allclose(claims.resampled(a, b), gap)


def test_groups_are_selected_by_their_settings():
  results = table(a=SEEDS + 3, b=SEEDS)
  claim = claims.Compare("a is above b", "x", {"group": "a"}, {"group": "b"})
  assert claim(results) == claims.compare("a is above b", SEEDS + 3, SEEDS)
  predicate = claims.Compare("", "x", {"group": "a".__eq__}, {"group": "a".__ne__})
  assert predicate(results).held is True
  # No tasks in one group, or the same tasks in both.
  assert claim(results.where(group="a")) is None
  assert claims.Compare("", "x", {"group": "a"}, {"group": "a"})(results) is None


def test_a_ratio_is_of_geometric_means():
  results = table(a=np.exp(SEEDS), b=np.exp(SEEDS + np.log(8)))
  groups = {"group": "a"}, {"group": "b"}
  claim = claims.Compare("", "x", *groups, "{a:.3f} {b:.3f}", less=True, ratio=True)
  assert claim(results).measured == "1.000 8.000" and claim(results).held is True
  text = claims.Compare("", "x", *groups, lambda a, b: f"{len(a)} {{gap}}", ratio=True)
  assert text(results).measured.startswith("1 +0.125 [") and not text(results).held


def test_all_parts_have_to_hold():
  order = {False: 0, None: 1, True: 2}  # The conjunction is the least.
  for parts in itertools.product(order, repeat=3):
    assert claims.all_hold(parts) is min(parts, key=order.__getitem__)
  findings = [types.Finding("", word, True, n) for word, n in [("a", 9), ("b", None)]]
  parts = [lambda table, x=x: x for x in findings]
  both = claims.All("both", parts, prefix="of ")(types.Table())
  assert both == types.Finding("both", "of a; b", True, 9)
  assert claims.All("", parts, opposite=True)(types.Table()).held is False
  assert claims.All("", [*parts, lambda table: None])(types.Table()) is None
  assert claims.all_of("none", []).num_seeds is None
