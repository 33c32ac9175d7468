"""Each kind of claim: held, did not hold, or undecided."""

import itertools
import math

import numpy as np
import pytest
import scipy

from explorax.papers import claims, significance, types

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
def test_a_claim_is_decided_by_the_test_of_the_difference(shift, less):
  verdict = {2.0: True, -2.0: False, 0.0: None}[shift]
  a, b = SEEDS + (-shift if less else shift), SEEDS[:15]
  finding = claims.compare("a differs", a, b, "{a:.1f} {b:.1f} {gap}", less=less)
  assert (finding.num_seeds, finding.held) == (15, verdict)
  words = significance.unpaired(a, b).gap.to_text("+.3g")
  assert finding.measured.startswith(f"{np.mean(a):.1f} {np.mean(b):.1f} {words}")
  assert finding.p == pytest.approx(scipy.stats.ttest_ind(a, b, equal_var=False).pvalue)
  assert finding.test.startswith("Welch's t, p")
  assert ("would have been detected" in finding.words) == (verdict is None)


def test_welch_s_interval_by_hand():
  a, b = np.array([1.0, 2.0, 4.0]), np.array([0.0, 0.5, 1.0, 3.0])
  x, y = a.var(ddof=1) / 3, b.var(ddof=1) / 4
  freedom = (x + y) ** 2 / (x**2 / 2 + y**2 / 3)
  width = scipy.stats.t.ppf(0.975, freedom) * np.sqrt(x + y)
  gap = a.mean() - b.mean()
  np.testing.assert_allclose(
    significance.unpaired(a, b).gap, (gap, gap - width, gap + width)
  )


def test_the_groups_below_the_best_are_those_of_scipys_test_of_all_pairs():
  groups = [np.random.default_rng(m).normal(m, 2.0, size=3 + m) for m in range(4)]
  best = int(np.argmax([np.mean(group) for group in groups]))
  expected = scipy.stats.tukey_hsd(*groups, equal_var=False).pvalue[best]
  np.testing.assert_allclose(significance.below_best(groups), expected)
  ones = significance.below_best([np.ones(3), np.zeros(3)])
  assert ones.tolist() == [1.0, 0.0]


def test_a_pair_of_seeds_decides_what_separate_seeds_do_not():
  a, b = SEEDS + 0.1 + 0.01 * SEEDS**2, SEEDS
  assert claims.compare("", a, b).held is None
  assert claims.compare("", a, b, test=significance.paired).held is True
  assert significance.paired(a, b).p == pytest.approx(
    scipy.stats.ttest_rel(a, b).pvalue
  )
  # Seven pairs of one sign: 2 · 2⁻⁷.
  differences = np.array([1, 2, 3, 4, 5, 6, 700.0])
  found = claims.compare("", differences, 0 * differences, test=significance.wilcoxon)
  assert found.held and found.p == 2**-6 and found.test == "Wilcoxon, p = 0.016"


def test_yes_or_no_is_an_exact_test():
  solved, other = np.repeat([1.0, 0.0], [14, 1]), np.repeat([1.0, 0.0], [7, 8])
  found = claims.compare("", solved, other, "{gap}", spec=".2f")
  # Hypergeometric: as extreme as 14 and 7 of 21 among 30, both ways.
  every = [
    math.comb(15, k) * math.comb(15, 21 - k) / math.comb(30, 21) for k in range(6, 16)
  ]
  assert found.p == pytest.approx(sum(p for p in every if p <= every[8] * (1 + 1e-9)))
  assert found.held and found.test == "Fisher's exact, p = 0.014"
  # Newcombe (1998), table II: 56 of 70 and 48 of 80 are 0.2 [0.0524, 0.3339] apart.
  a, b = np.repeat([1.0, 0.0], [56, 14]), np.repeat([1.0, 0.0], [48, 32])
  np.testing.assert_allclose(
    significance.fisher(a, b).gap, [0.2, 0.0524, 0.3339], atol=5e-5
  )
  few = claims.compare("", solved[-5:], other[-10:-5])
  assert few.held is None and "no difference would have been detected" in few.words
  assert claims.sign("", 9, 1, "{share}").p == 22 / 2**10
  assert significance.share(3, 3).low == pytest.approx(0.025 ** (1 / 3))


@pytest.mark.parametrize("test", [significance.paired, significance.unpaired])
def test_a_detectable_difference_is_found_four_times_of_five(test):
  rng = np.random.default_rng(0)
  detectable = test(*rng.normal(size=(2, 4000))).detectable
  assert detectable == pytest.approx((1.96 + 0.8416) * (2 / 4000) ** 0.5, rel=0.05)
  draws = rng.normal(size=(400, 2, 50))
  draws[:, 0] += (1.9845 + 0.845) * (2 / 50) ** 0.5
  assert np.mean([test(*draw).p < 0.05 for draw in draws]) == pytest.approx(
    0.8, abs=0.05
  )


def test_a_result_that_rests_on_one_seed_or_one_game_says_so():
  a = np.array([[1.0, 0.1], [1.1, 0.2], [0.9, -0.1], [1.0, -0.2]])
  found = claims.compare(
    "", a, 0 * a, "{gap}", test=significance.paired, games=["one", "other"]
  )
  assert found.held and "undecided without one: +" in found.words
  assert "other" not in found.words
  seeds = np.array([1.0, 0.9, 1.1, 0.35])
  found = claims.compare("", seeds, 0 * seeds, test=significance.paired)
  worst = max(scipy.stats.ttest_1samp(np.delete(seeds, i), 0).pvalue for i in range(4))
  assert found.held and worst > 0.05
  assert found.words.endswith(f"; undecided without one seed, p = {worst:.2g}")


def times(*columns: tuple[list[int], int]) -> significance.Times:
  """Episodes of the seeds of each problem; those at its limit are not solved."""
  episodes = np.array([column for column, _ in columns], float).T
  solved = episodes < [limit for _, limit in columns]
  return significance.Times(episodes, solved, (*map(str, range(len(columns))),))


def test_runs_that_did_not_solve_are_censored():
  a, b = times(([3, 5, 7, 30], 30)), times(([9, 14, 30, 30], 30))
  gap, variance, p = significance.log_rank(a, b)
  censored = [
    scipy.stats.CensoredData.right_censored(x.episodes[:, 0], ~x.solved[:, 0])
    for x in (a, b)
  ]
  expected = scipy.stats.logrank(*censored)
  assert gap**2 / variance == pytest.approx(expected.statistic**2)
  assert gap > 0  # Group a solves sooner.
  # All 70 ways to choose four of the eight runs, by the same statistic.
  pooled = significance.Times(
    *(np.concatenate(x) for x in zip(a[:2], b[:2], strict=True))
  )

  def exceeds(chosen: tuple[int, ...]) -> float:
    rows = np.isin(range(8), chosen)
    groups = (significance.Times(*(x[r] for x in pooled[:2])) for r in (rows, ~rows))
    return significance.log_rank(*groups, 0)[0]

  every = [abs(exceeds(chosen)) for chosen in itertools.combinations(range(8), 4)]
  assert p == pytest.approx(np.mean(np.array(every) >= gap - 1e-9), abs=0.02)
  # Strata: a problem's times are compared with its own alone.
  both = significance.log_rank(
    times(([3, 5, 7, 30], 30), ([300, 500, 700, 3000], 3000)),
    times(([9, 14, 30, 30], 30), ([900, 1400, 3000, 3000], 3000)),
  )
  assert both[:2] == pytest.approx((2 * gap, 2 * variance))
  found = claims.sooner("", (a, b), "a and b")
  assert found.measured.startswith(
    "a and b: solved 3 of 4 and 2 of 4; restricted means 11 and 21 episodes"
  )
  assert significance.log_rank(times(([9, 9], 9)), times(([9, 9], 9)))[1:] == (0, 1)


def test_if_all_solved_the_ratio_of_pairs_is_tested():
  a, b = (
    times(([2, 4, 8], 99), ([20, 40, 80], 99)),
    times(([3, 5, 9], 99), ([30, 50, 90], 99)),
  )
  found = claims.sooner("", (a, b), "a and b")
  logs = np.log(a.episodes / b.episodes).ravel()
  assert found.p == pytest.approx(scipy.stats.ttest_1samp(logs, 0).pvalue)
  assert found.held and found.num_seeds == 3 and "slower in 0 of 6" in found.measured
  assert f"a ratio of {np.exp(logs.mean()):.3f}" in found.measured


@pytest.mark.parametrize("limit", [99, 30])
def test_a_verdict_may_rest_on_one_problem(limit):
  a = times(
    ([2, 4, 8, 5, 6, 3], 99),
    ([20, 21, 24, 29, 25, 22], limit),
    ([21, 22, 25, 26, 24, 20], 99),
  )
  b = times(
    ([30, 40, 80, 50, 60, 70], 99),
    ([19, 23, 25, 31, 24, 21], limit),
    ([20, 24, 27, 25, 27, 21], 99),
  )
  found = claims.sooner("", (a, b), "a and b")
  assert found.held and bool(b.solved.all()) is (limit == 99)
  ps = {one.what: one.p for one in found.left_out}
  for i in range(3):
    rest = [
      significance.Times(*(np.delete(y, i, axis=1) for y in x[:2])) for x in (a, b)
    ]
    p = scipy.stats.ttest_rel(*(np.log(x.episodes).ravel() for x in rest)).pvalue
    p = p if limit == 99 else significance.log_rank(*rest)[2]
    assert ps[str(i)] == pytest.approx(p)
  assert ps["0"] > 0.05 > max(ps["1"], ps["2"])
  assert found.words.endswith(f"; undecided without 0, p = {ps['0']:.2g}")
  # Without one of the six seeds.
  assert (ps[types.SEED] > 0.05) == ("undecided without one seed" in found.words)


def test_several_tests_of_one_claim_are_corrected():
  # Holm (1979): 4 · 0.01, 3 · 0.02, then no less than that, 2 · 0.03.
  assert significance.holm([0.03, 0.01, 0.8, 0.02]) == pytest.approx(
    [0.06, 0.04, 0.8, 0.06]
  )
  assert significance.holm([]) == [] and significance.holm([0.4, 0.9]) == [0.8, 0.9]
  parts = [types.Finding("", "x", True, 5, None, "t, p", p) for p in (0.03, 0.04)]
  assert claims.all_of("", parts).held is None
  assert claims.all_of("", parts[:1]).held is True
  joined = claims.all_of("", [parts[0]._replace(p=0.01), parts[1]])
  assert joined.held and joined.test.endswith("p = 0.04")


def test_several_claims_are_corrected_together():
  shifts = (2.0, -0.525, 0.2)  # In standard deviations of the differences.
  groups = {f"g{i}": SEEDS + shift for i, shift in enumerate(shifts)}
  parts = [
    claims.Compare(
      name, "x", {"group": name}, {"group": "zero"}, test=significance.paired
    )
    for name in (*groups, "missing")
  ]
  noise = np.random.default_rng(0).normal(size=len(SEEDS))
  noise = (noise - noise.mean()) / noise.std(ddof=1)
  data = table(**groups, zero=SEEDS + noise)
  ps = [part(data).p for part in parts[:3]]
  # Holm: the i-th smallest times n − i, and not below the one before.
  order, steps, least = np.argsort(ps), np.empty(3), 0.0
  for rank, i in enumerate(order):
    least = steps[i] = max(least, min(1.0, ps[i] * (3 - rank)))
  *found, missing = [one(data) for one in claims.corrected(parts)]
  assert missing is None
  assert [one.p for one in found] == ps
  for one, p, shift in zip(found, steps, shifts, strict=True):
    assert one.held is (None if p >= 0.05 else shift > 0)
    assert one.test.endswith(f"with Holm's correction of 3, {significance.p_words(p)}")
  # The correction alone leaves one undecided.
  (one,) = (x for x, p, q in zip(found, ps, steps, strict=True) if p < 0.05 <= q)
  assert one.words.endswith("(without the correction) would have been detected")


def test_what_a_verdict_rests_on_is_corrected_as_well():
  left_out = (types.LeftOut("one seed", 0.01), types.LeftOut("a game", 0.03, "+1"))
  found = types.Finding("", "x", True, 5, None, "t", 0.01, "1.5", left_out)
  assert found.words == "x"
  words = "x; undecided without a game: +1, p = 0.06"
  # Holm: 2 · 0.03 if the other's p is greater, with all games or without this one.
  for p, without, expected in (
    (0.3, 0.3, words),
    (0.02, 0.02, "x"),
    (0.02, 0.3, words),
  ):
    other = found._replace(p=p, left_out=(types.LeftOut("a game", without, "+1"),))
    corrected = claims.corrected([lambda table: found, lambda table, x=other: x])
    assert corrected[0](table()).words == expected
    assert claims.all_of("", [found, other]).measured.startswith(expected)


def test_groups_are_selected_by_their_settings():
  results = table(a=SEEDS + 3, b=SEEDS)
  claim = claims.Compare("a is above b", "x", {"group": "a"}, {"group": "b"})
  assert claim(results) == claims.compare("a is above b", SEEDS + 3, SEEDS)
  predicate = claims.Compare("", "x", {"group": "a".__eq__}, {"group": "a".__ne__})
  assert predicate(results).held is True
  # No tasks in one group, or the same tasks in both.
  assert claim(results.where(group="a")) is None
  assert claims.Compare("", "x", {"group": "a"}, {"group": "a"})(results) is None


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


def test_below_best_is_welchs_test_of_two_groups_and_stricter_among_many():
  rng = np.random.default_rng(0)
  groups = [rng.normal(0, 1, 8), rng.normal(1, 2, 9)]
  found = significance.below_best(groups)
  best = int(np.argmax([np.mean(x) for x in groups]))
  assert found[best] == 1.0
  assert found[1 - best] == pytest.approx(significance.unpaired(*groups).p)
  constant = significance.below_best([np.ones(4), np.zeros(4), np.ones(4)])
  np.testing.assert_array_equal(constant, [1.0, 0.0, 1.0])
  # Of 17 equal groups, one is below the best in 5 % of the draws.
  draws = [significance.below_best(rng.normal(size=(17, 8))).min() for _ in range(100)]
  assert np.mean(np.array(draws) < 0.05) <= 0.12
