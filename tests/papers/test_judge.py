"""Claims as values, on small tables whose answers are known."""

import numpy as np
import pytest
import scipy

from explorax.papers import figures, judge


def table(**groups):
  """A task for each group, with the result `x` `[S, ...]`, and `solved` of its sign."""
  return figures.Table(
    figures.CompletedTask(
      {"group": name, "size": size, "seeds": list(range(len(x)))},
      {
        "x": np.asarray(x, float),
        "solved": np.maximum(x, 0),
        "episodes": np.abs(x),
      },
      1.0,
      {},
    )
    for name, sizes in groups.items()
    for size, x in enumerate(np.atleast_3d(sizes).transpose(2, 1, 0)[..., 0])
  )


A, B = {"group": "a"}, {"group": "b"}
RNG = np.random.default_rng(0)
HIGH, LOW = RNG.normal(2.0, 1.0, 8), RNG.normal(0.0, 1.0, 8)


def one(claim, found, **groups):
  (finding,) = judge.judge([claim], table(**groups))
  assert finding.claim == found
  return finding


def test_the_means_of_two_groups_are_compared_by_welch_or_in_pairs():
  claim = judge.Above("a is above", "x", A, B)
  finding = one(claim, "a is above", a=HIGH, b=LOW)
  expected = scipy.stats.ttest_ind(HIGH, LOW, equal_var=False)
  assert finding.held and finding.robust and finding.seeds == 8
  assert finding.p == pytest.approx(expected.pvalue)
  assert finding.effect.low == pytest.approx(expected.confidence_interval().low)
  pairs = judge.Above("a is above", "x", A, B, test=judge.paired)
  finding = one(pairs, "a is above", a=HIGH, b=LOW)
  assert finding.p == pytest.approx(scipy.stats.ttest_rel(HIGH, LOW).pvalue)
  assert one(claim, "a is above", a=LOW, b=HIGH).held is False
  assert one(claim, "a is above", a=LOW, b=LOW + 0.01).held is None
  assert judge.judge([claim], table(a=HIGH)) == []


def test_shares_of_runs_are_compared_by_fishers_test():
  found = one(judge.Above("", "x", A, B), "", a=[1] * 6, b=[0] * 6)
  assert found.test == "Fisher's exact"
  assert found.p == pytest.approx(scipy.stats.fisher_exact([[6, 0], [0, 6]]).pvalue)


def test_too_few_seeds_decide_nothing():
  assert one(judge.Above("", "x", A, B), "", a=[9, 9.1], b=[0, 0.1]).held is None
  exact = judge.Check("", lambda table: (True, "1", None), exact=True)
  assert one(exact, "", a=[1.0]).held


def test_a_verdict_that_one_seed_decides_is_not_robust():
  most = judge.Below("", "x", A, 0.05)
  finding = one(most, "", a=[0.0, 0.01, 0.02, 0.01, 0.02])
  assert finding.held and finding.robust
  at_least = judge.Share("", "x", A, least=0.75)
  assert one(at_least, "", a=[1, 1, 1, 0]).robust is False


def test_runs_that_the_limit_ended_are_compared_by_the_log_rank_test():
  a = np.array([5, 6, 7, 8, 9, 10.0])
  found = one(judge.Sooner("", A, B), "", a=a, b=-20 * np.ones(6))
  assert found.held and found.test == "log-rank"
  assert found.measured == "solved 6 of 6 and 0 of 6"
  solved = one(judge.Sooner("", A, B), "", a=a, b=3 * a + 1)
  assert solved.held and solved.test == "paired t"
  assert solved.effect.value == pytest.approx(np.exp(np.mean(np.log(a / (3 * a + 1)))))


def test_p_of_the_log_rank_test_is_near_that_of_permutations():
  a = np.array([3, 8, 12, 20, 20.0])[:, None]
  b = np.array([6, 15, 20, 20, 20.0])[:, None]
  times = figures.Times(a, a < 20), figures.Times(b, b < 20)
  gap, p = judge.log_rank(*times)
  rng, drawn = np.random.default_rng(0), []
  both = np.concatenate([a, b])
  for _ in range(2000):
    x = rng.permuted(both, axis=0)
    parts = figures.Times(x[:5], x[:5] < 20), figures.Times(x[5:], x[5:] < 20)
    drawn.append(judge.log_rank(*parts)[0])
  assert p == pytest.approx(np.mean(np.abs(drawn) >= abs(gap) - 1e-9), abs=0.1)
  assert judge.log_rank(*times[::-1])[0] == pytest.approx(-gap)


def test_several_tests_are_corrected_by_holms_method():
  assert judge.holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
  parts = [judge.Above(f"{x}", "x", A, B, spec=x) for x in (".1f", ".2f")]
  alone = one(parts[0], ".1f", a=HIGH, b=LOW)
  both = judge.judge([judge.Holm(parts)], table(a=HIGH, b=LOW))
  assert [x.p for x in both] == pytest.approx([2 * alone.p] * 2)
  assert both[0].test == "Welch's t, Holm of 2"
  joined = one(judge.All("both", parts), "both", a=HIGH, b=LOW)
  assert joined.p == pytest.approx(2 * alone.p) and joined.held
  opposite = judge.All("not", parts, opposite=True)
  assert one(opposite, "not", a=HIGH, b=LOW).held is False


@pytest.mark.parametrize(
  ("parts", "held", "p"),
  [
    (((True, 0.01), (True, 0.02)), True, 0.02),
    (((False, 0.001), (None, 0.8)), False, 0.002),
    (((True, 0.001), (None, 0.8)), None, 0.8),
  ],
)
def test_the_p_of_joined_claims_is_that_of_the_verdict(parts, held, p):
  found = [judge.Finding("x", part, 5, "t", p=value) for part, value in parts]
  joined = judge.All("all", ()).of(found)
  assert joined.held is held and joined.p == pytest.approx(p)
