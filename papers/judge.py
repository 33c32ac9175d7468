"""Claims as values, and the tests that decide them.

A claim is called with the table of results and returns a finding, or None if tasks
that it is about are not in the table. It holds if its test has p < 0.05 (two-sided) and
the difference is on the claim's side of 0, and does not hold if it is on the other
side; else it is undecided. The test follows from the data:
pairs or groups of seeds (t-tests), shares of runs (Fisher's), games (Wilcoxon's), and
episodes to solve, of which the limit ended some (log-rank, stratified by problem).

`All` joins claims to one, and `Holm` corrects the tests of several for their number.
Of all classes, `claim` is the statement, and `a`, `b` and `where` select the tasks.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import scipy  # It imports `stats` when it is first used.

from explorax.experiments.recording import statistics
from explorax.papers import figures

LEVEL = 0.05
LEAST_SEEDS = 3  # With fewer seeds, no claim is decided.
_MOST_LEFT_OUT = 30  # One of more seeds does not decide.
VERDICTS = {True: "held", False: "did not hold", None: "undecided"}


@dataclasses.dataclass(frozen=True)
class Finding:
  """A tested claim."""

  claim: str
  held: bool | None  # None: undecided.
  seeds: int  # Behind the numbers.
  test: str = "counted"  # That decides.
  p: float | None = None  # Corrected if it is one of several.
  effect: statistics.Interval | None = None  # The difference, or what is estimated.
  spec: str = "+.3g"  # The format of the effect's numbers.
  measured: str = ""  # What was counted, in a few words.
  exact: bool = False  # Chance has no part in it, so that one seed is enough.
  # Whether the verdict is the same without any one seed or problem; None if it is
  # undecided, or nothing was left out (more than 30 seeds of one problem).
  robust: bool | None = None


# A claim: tests itself on the results.
Claim = Callable[[figures.Table], Finding | Sequence[Finding] | None]


def judge(
  claims: Sequence[Claim], table: figures.Table, problem: str = ""
) -> list[Finding]:
  """The findings of all claims; `problem` names the setting of `Finding.robust`."""
  rests = [
    {x.claim: x.held for x in _findings(claims, rest)}
    for rest in _without_each(table, problem)
  ]
  judged = []
  for x in _findings(claims, table):
    held = x.held if x.exact or x.seeds >= LEAST_SEEDS else None
    robust = None
    if rests and held is not None:
      robust = all(rest.get(x.claim, x.held) == x.held for rest in rests)
    judged.append(dataclasses.replace(x, held=held, robust=robust))
  return judged


def _findings(claims: Sequence[Claim], table: figures.Table) -> list[Finding]:
  findings: list[Finding] = []
  for claim in claims:
    found = claim(table)
    findings += [found] if isinstance(found, Finding) else found or ()
  return findings


def _without_each(table: figures.Table, problem: str) -> Iterator[figures.Table]:
  """The table without each seed, unless they are many, and without each problem."""
  seeds = table.seeds()
  if 1 < len(seeds) <= _MOST_LEFT_OUT:
    yield from map(table.without_seed, seeds)
  problems = table.values(problem) if problem else []
  if len(problems) > 1:
    for value in problems:
      yield table.where(**{problem: lambda x, left_out=value: x != left_out})


# The difference of two groups' means, the test's p, and its name.
Tested = tuple[statistics.Interval, float, str]
Test = Callable[[np.ndarray, np.ndarray], Tested]


def paired(a: np.ndarray, b: np.ndarray) -> Tested:
  """Student's t-test of the differences `[S]`."""
  return _t_test("paired t", scipy.stats.ttest_rel, a, b, np.ptp(a - b))


def welch(a: np.ndarray, b: np.ndarray) -> Tested:
  """Welch's t-test of `[S]` and `[S']`."""
  test = functools.partial(scipy.stats.ttest_ind, equal_var=False)
  return _t_test("Welch's t", test, a, b, max(np.ptp(a), np.ptp(b)))


def _t_test(
  name: str, test: Any, a: np.ndarray, b: np.ndarray, spread: float
) -> Tested:
  """Without an interval for a group of one seed, or if all have the same numbers."""
  value = np.mean(a) - np.mean(b)
  few = min(len(a), len(b)) < 2
  if few or not spread:
    gap = statistics.Interval(value, value, value)
    return gap, float(few or not value), name
  found = test(a, b)
  gap = statistics.Interval(value, *found.confidence_interval(statistics.LEVEL))
  return gap, float(found.pvalue), name


def wilcoxon(a: np.ndarray, b: np.ndarray) -> Tested:
  """Wilcoxon's signed-rank test of pairs; the interval is a bootstrap's."""
  p = float(scipy.stats.wilcoxon(a, b).pvalue) if np.any(a != b) else 1.0
  return statistics.bootstrap(a - b), p, "Wilcoxon"


def fisher(a: np.ndarray, b: np.ndarray) -> Tested:
  """Fisher's exact test of the shares of ones; Newcombe's interval (1998)."""
  counts = [(int(np.sum(x)), len(x)) for x in (a, b)]
  (p, low_p, high_p), (q, low_q, high_q) = (
    (k / n, *scipy.stats.binomtest(k, n).proportion_ci(method="wilson"))
    for k, n in counts
  )
  low = p - q - np.hypot(p - low_p, high_q - q)
  high = p - q + np.hypot(high_p - p, q - low_q)
  found = scipy.stats.fisher_exact([[k, n - k] for k, n in counts])
  gap = statistics.Interval(np.asarray(p - q), low, high)
  return gap, float(found.pvalue), "Fisher's exact"


def share(count: int, num: int) -> statistics.Interval:
  """A share of runs with Clopper and Pearson's exact interval."""
  ends = scipy.stats.binomtest(count, num).proportion_ci()
  return statistics.Interval(*np.array([count / num, *ends]))


def log_rank(a: figures.Times, b: figures.Times) -> tuple[float, float]:
  """The log-rank test, stratified by problem, with the variance of permutations.

  Groups that have not the same problems are one stratum.

  Returns:
    By how much the events of `a` exceed those expected, and p of chi-squared, which
    with few events is nearer to that of permutations than with Mantel's variance.

  Source: Peto and Peto (1972), Asymptotically efficient rank invariant test procedures.
  """
  if a.episodes.shape[1] != b.episodes.shape[1]:
    a, b = (figures.Times(*(y.reshape(-1, 1) for y in x)) for x in (a, b))
  gap = variance = 0.0
  for i in range(a.episodes.shape[1]):
    times, solved = (
      np.concatenate([x[:, i], y[:, i]]) for x, y in zip(a, b, strict=True)
    )
    at_risk = times[:, None] >= times
    # Each event adds to the scores of those at risk: the sum over `a` is observed minus
    # expected.
    scores = solved - at_risk @ np.where(solved, 1.0 / at_risk.sum(axis=0), 0.0)
    num, total = len(a.episodes), len(times)
    gap += scores[:num].sum()
    variance += num * (total - num) / total * np.var(scores, ddof=1)
  p = float(scipy.stats.chi2.sf(gap**2 / variance, 1)) if variance else 1.0
  return float(gap), p


@dataclasses.dataclass(frozen=True)
class Above:
  """That group `a` is greater on average than group `b`.

  Attributes:
    measure: what is measured of each seed. With several problems: its mean over them.
    less: whether the claim is that `a` is less than `b`.
    test: of what is neither 0 nor 1.
    spec: the format of the effect.
  """

  claim: str
  measure: figures.Measure
  a: figures.Selection
  b: figures.Selection
  where: figures.Selection = dataclasses.field(default_factory=dict)
  _: dataclasses.KW_ONLY
  less: bool = False
  test: Test = welch
  spec: str = "+.3g"

  def __call__(self, table: figures.Table) -> Finding | None:
    a, b = (table.where(**self.where).where(**x) for x in (self.a, self.b))
    if not a or not b or a == b:
      return None
    x, y = (np.asarray(z.scores(self.measure), np.float64) for z in (a, b))
    return above(self.claim, x, y, less=self.less, test=self.test, spec=self.spec)


def above(
  claim: str,
  a: np.ndarray,
  b: np.ndarray,
  *,
  less: bool = False,
  test: Test = welch,
  log: bool = False,
  spec: str = "+.3g",
  seeds: int | None = None,
) -> Finding:
  """Whether `a` `[S, ...]` is greater on average than `b` `[S', ...]`; see `Above`.

  With `log`, the effect is the ratio of geometric means. `seeds`: if not S.
  """
  x, y = (z.reshape(len(z), -1) for z in (a, b))
  x, y = ((np.log(z) if log else z).mean(axis=1) for z in (x, y))
  if not log and np.isin(np.concatenate([x, y]), (0, 1)).all():
    test = fisher
  gap, p, name = test(x, y)
  held = None if p >= LEVEL else bool((gap.value < 0) == less)
  means = [np.exp(z.mean()) if log else z.mean() for z in (x, y)]
  return Finding(
    claim,
    held,
    seeds or min(len(x), len(y)),
    name,
    p,
    gap.map(np.exp) if log else gap,
    spec,
    f"{means[0]:.3g} and {means[1]:.3g}",
  )


@dataclasses.dataclass(frozen=True)
class Sooner:
  """That runs of group `a` solve the same problems in fewer episodes than those of `b`.

  If all runs solve theirs, the test is of the ratio, of pairs of the same problem and
  seed if both groups have the same ones. Otherwise it is the log-rank test; the effect
  is the ratio of the pairs that both solved, which it does not decide.

  Attributes:
    event: that counts as solving, see `Table.times`.
  """

  claim: str
  a: figures.Selection
  b: figures.Selection
  where: figures.Selection = dataclasses.field(default_factory=dict)
  event: str = "solved"

  def __call__(self, table: figures.Table) -> Finding | None:
    groups = [table.where(**self.where).where(**x) for x in (self.a, self.b)]
    if not all(groups) or groups[0] == groups[1]:
      return None
    a, b = (x.times(self.event) for x in groups)
    pairs = a.episodes.shape == b.episodes.shape
    seeds = min(len(a.episodes), len(b.episodes))
    words = "solved "
    words += " and ".join(f"{x.solved.sum():.0f} of {x.solved.size}" for x in (a, b))
    if a.solved.all() and b.solved.all():
      same = pairs or len(a.episodes) == len(b.episodes)
      x, y = (z.episodes.reshape(-1, 1) if pairs else z.episodes for z in (a, b))
      test = paired if same else welch
      more: dict[str, Any] = {"log": True, "spec": ".3f", "seeds": seeds}
      found = above(self.claim, x, y, less=True, test=test, **more)
      return dataclasses.replace(found, measured=words)
    gap, p = log_rank(a, b)
    ratio = None
    if pairs and np.sum(both := a.solved & b.solved) >= LEAST_SEEDS:
      ratio = statistics.mean(np.log(a.episodes / b.episodes)[both]).map(np.exp)
    held = None if p >= LEVEL else bool(gap > 0)
    return Finding(self.claim, held, seeds, "log-rank", p, ratio, ".2f", words)


# Whether a claim holds, what was measured in a few words, and the effect, if any.
Checked = tuple[bool | None, str, statistics.Interval | None]


@dataclasses.dataclass(frozen=True)
class Check:
  """A claim that a function decides: of formulas, and of what no other class tests.

  Attributes:
    check: decides from the tasks.
    test: how it decides.
    spec: the format of the effect.
    exact: see `Finding`.
  """

  claim: str
  check: Callable[[figures.Table], Checked]
  where: figures.Selection = dataclasses.field(default_factory=dict)
  test: str = "counted"
  spec: str = "+.3g"
  exact: bool = False

  def __call__(self, table: figures.Table) -> Finding | None:
    chosen = table.where(**self.where)
    if not chosen:
      return None
    held, measured, effect = self.check(chosen)
    return Finding(
      self.claim,
      held,
      len(chosen.seeds()) or 1,
      self.test,
      effect=effect,
      spec=self.spec,
      measured=measured,
      exact=self.exact,
    )


@dataclasses.dataclass(frozen=True)
class All:
  """The claim that all parts hold, whose tests are corrected by Holm's method.

  Its p is the greatest of them, and its effect that of the first part.
  """

  claim: str
  parts: Sequence[Claim]

  def __call__(self, table: figures.Table) -> Finding | None:
    parts = corrected(_findings(self.parts, table))
    if len(parts) < len(self.parts):
      return None
    # Of the parts that refute the claim, if there are any.
    against = [x for x in parts if x.held is False]
    ps = [x.p for x in against or parts if x.p is not None]
    test = ", ".join(dict.fromkeys(x.test for x in against or parts))
    if len(ps) > 1:
      test += f", greatest of {len(ps)} (Holm)"
    first = next((x for x in parts if x.effect is not None), parts[0])
    return Finding(
      self.claim,
      all_hold([x.held for x in parts]),
      min(x.seeds for x in parts),
      test,
      max(ps, default=None),
      first.effect,
      first.spec,
      "; ".join(x.measured for x in parts),
    )


@dataclasses.dataclass(frozen=True)
class Holm:
  """Several claims, whose tests are corrected for their number."""

  parts: Sequence[Claim]

  def __call__(self, table: figures.Table) -> list[Finding]:
    found = corrected(_findings(self.parts, table))
    words = f", Holm of {sum(x.p is not None for x in found)}"
    return [
      x if x.p is None else dataclasses.replace(x, test=x.test + words) for x in found
    ]


def corrected(findings: Sequence[Finding]) -> list[Finding]:
  """With p by Holm's step-down method (1979), and undecided where it is not small."""
  each = list(findings)
  tested = sorted((x.p, i) for i, x in enumerate(findings) if x.p is not None)
  least = 0.0
  for rank, (p, i) in enumerate(tested):
    least = max(least, min(1.0, (len(tested) - rank) * p))
    held = each[i].held if least < LEVEL else None
    each[i] = dataclasses.replace(each[i], p=least, held=held)
  return each


def all_hold(parts: Sequence[bool | None]) -> bool | None:
  """Whether all parts hold: False if one does not; else None if one is undecided."""
  if False in parts:
    return False
  return None if None in parts else True
