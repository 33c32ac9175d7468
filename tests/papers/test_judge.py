"""Claims as values, on small tables whose answers are known."""

import itertools

import numpy as np
import pytest
import scipy

from explorax.papers import figures, judge


def table(**groups):
  """A task for each group, with the result `x` `[S]`, and `solved` if it is above 0."""
  return figures.Table(
    figures.CompletedTask(
      {"group": name, "seeds": list(range(len(x)))},
      {"x": np.array(x, float), "solved": np.maximum(x, 0), "episodes": np.abs(x)},
      1.0,
      {},
    )
    for name, x in groups.items()
  )


A, B = {"group": "a"}, {"group": "b"}
RNG = np.random.default_rng(0)
HIGH, LOW = RNG.normal(2.0, 1.0, 8), RNG.normal(0.0, 1.0, 8)


def one(claim, **groups):
  (finding,) = judge.judge([claim], table(**groups))
  return finding


def test_the_means_of_two_groups_are_compared_by_welch_or_in_pairs():
  claim = judge.Above("a is above", "x", A, B)
  finding = one(claim, a=HIGH, b=LOW)
  expected = scipy.stats.ttest_ind(HIGH, LOW, equal_var=False)
  assert finding.held and finding.robust and finding.seeds == 8
  assert finding.p == pytest.approx(expected.pvalue)
  assert finding.effect.low == pytest.approx(expected.confidence_interval().low)
  pairs = judge.Above("a is above", "x", A, B, test=judge.paired)
  expected = scipy.stats.ttest_rel(HIGH, LOW)
  assert one(pairs, a=HIGH, b=LOW).p == pytest.approx(expected.pvalue)
  assert one(claim, a=LOW, b=HIGH).held is False
  assert one(claim, a=LOW, b=LOW + 0.01).held is None
  assert judge.judge([claim], table(a=HIGH)) == []


def test_shares_of_runs_are_compared_by_fishers_test_with_newcombes_interval():
  found = one(judge.Above("", "x", A, B), a=[1] * 6, b=[0] * 6)
  assert found.test == "Fisher's exact"
  assert found.p == pytest.approx(scipy.stats.fisher_exact([[6, 0], [0, 6]]).pvalue)
  # Newcombe (1998), Interval estimation for the difference, table II (a), method 10.
  a, b = np.arange(70) < 56, np.arange(80) < 48
  assert judge.fisher(a, b)[0] == pytest.approx((0.2, 0.0524, 0.3339), abs=5e-5)


def test_wilcoxons_p_is_the_share_of_signs_with_so_large_a_sum_of_ranks():
  x = np.array([0.3, -0.1, 0.8, 1.1, 0.5, -0.4, 0.9, 0.7])
  ranks = scipy.stats.rankdata(np.abs(x))
  sums = [np.dot(ranks, signs) for signs in itertools.product((-1, 1), repeat=len(x))]
  share = np.mean(np.abs(sums) >= abs(np.dot(ranks, np.sign(x))))
  assert judge.wilcoxon(x, np.zeros(8))[1] == pytest.approx(share)


def test_too_few_seeds_decide_nothing():
  assert one(judge.Above("", "x", A, B), a=[9, 9.1], b=[0, 0.1]).held is None
  exact = judge.Check("", lambda table: (True, "1", None), exact=True)
  assert one(exact, a=[1.0]).held


def test_a_verdict_that_one_seed_decides_is_not_robust():
  most = judge.Check("", lambda x: (bool(x.solved().mean() >= 0.75), "", None))
  assert one(most, a=[1, 1, 1, 1]).robust
  assert one(most, a=[1, 1, 1, 0]).robust is False


def test_runs_that_the_limit_ended_are_compared_by_the_log_rank_test():
  a = np.array([5, 6, 7, 8, 9, 10.0])
  found = one(judge.Sooner("", A, B), a=a, b=-20 * np.ones(6))
  assert found.held and found.test == "log-rank"
  assert found.measured == "solved 6 of 6 and 0 of 6"
  solved = one(judge.Sooner("", A, B), a=a, b=3 * a + 1)
  assert solved.held and solved.test == "paired t"
  assert solved.effect.value == pytest.approx(np.exp(np.mean(np.log(a / (3 * a + 1)))))


def excess(times, solved, of_a):
  """Events of group a beyond those expected, a loop over the times of events."""
  gap = 0.0
  for at in {*times[solved]}:
    at_risk, events = times >= at, solved & (times == at)
    gap += np.sum(events & of_a) - np.sum(events) * np.mean(of_a[at_risk])
  return gap


def test_the_log_rank_test_has_the_variance_of_all_permutations_in_each_problem():
  a = np.array([[3, 8, 12, 20], [6, 9, 20, 20]]).T
  b = np.array([[6, 15, 20, 20], [6, 7, 9, 20]]).T
  gap = variance = 0.0
  for both in np.concatenate([a, b]).T:
    every = [
      excess(both, both < 20, np.isin(np.arange(8), chosen))
      for chosen in itertools.combinations(range(8), 4)
    ]
    gap += every[0]  # The first four are those of a.
    variance += np.var(every)
  found = judge.log_rank(figures.Times(a, a < 20), figures.Times(b, b < 20))
  expected = gap, scipy.stats.chi2.sf(gap**2 / variance, 1)
  np.testing.assert_allclose(found, expected)


def test_several_tests_are_corrected_by_holms_method():
  found = [judge.Finding("", True, 5, p=p) for p in (0.01, 0.04, 0.03)]
  corrected = [(x.p, x.held) for x in judge.corrected(found)]
  assert corrected == [(0.03, True), (0.06, None), (0.06, None)]
  parts = [judge.Above(f"{x}", "x", A, B, spec=x) for x in (".1f", ".2f")]
  alone = one(parts[0], a=HIGH, b=LOW)
  both = judge.judge([judge.Holm(parts)], table(a=HIGH, b=LOW))
  assert [x.p for x in both] == pytest.approx([2 * alone.p] * 2)
  assert both[0].test == "Welch's t, Holm of 2"


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
  joined = judge.All("all", [lambda _: found])(figures.Table())
  assert joined.held is held and joined.p == pytest.approx(p)
