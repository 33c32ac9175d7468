"""Claims, and the tests that decide them.

A claim holds if its test has p < 0.05 (two-sided) and the difference is on the claim's
side of 0; it does not hold if the difference is on the other side; else it is
undecided, and says which difference would have been detected with a probability of 0.8.
The test follows from the data, and is named in the finding:

- runs that share a seed's world, a size or a game are pairs: a paired t-test;
- other groups of seeds: Welch's t-test, with all seeds of both groups;
- yes or no, such as solved or not: Fisher's exact test, or the sign test of pairs;
- over games, of which a few dominate: Wilcoxon's signed-rank test;
- episodes to solve, of which the limit ended some: the log-rank test, stratified by
  problem, beside the means restricted to the limit. If all runs solved: the ratio.

Several tests of one claim are corrected (Holm, 1979). A result that is undecided once
one seed or one game is left out says so.

`Compare` is a claim as a value: what is measured, and the settings that select both
groups. `compare` is the same of two arrays, `sooner` of episodes to solve. A `Check`
decides by a function of its own, `All` joins claims.
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy  # It imports `stats` when it is first used.

from explorax.experiments.recording import statistics
from explorax.papers import types

LEAST_SEEDS = 3  # With fewer seeds, no claim is decided.
LEVEL = 0.05
POWER = 0.8
_MOST_LEFT_OUT = 30  # One of more seeds does not decide.


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
  test = scipy.stats.ttest_rel
  return _t_test(test, "paired t", statistics.mean(a - b), a, b)


def unpaired(a: np.ndarray, b: np.ndarray) -> Tested:
  """Welch's t-test of `[S]` and `[S']`."""
  test = functools.partial(scipy.stats.ttest_ind, equal_var=False)
  return _t_test(test, "Welch's t", statistics.difference(a, b), a, b)


def _t_test(
  test: Any, name: str, gap: statistics.Interval, a: np.ndarray, b: np.ndarray
) -> Tested:
  width = float(gap.high - gap.value)
  if min(len(a), len(b)) < 2 or not width:  # One seed, or all have the same numbers.
    return Tested(gap, float(min(len(a), len(b)) < 2 or not gap.value), name, math.nan)
  found = test(a, b)
  quantile, power = scipy.stats.t.ppf([1 - LEVEL / 2, POWER], found.df)
  return Tested(gap, float(found.pvalue), name, width * (1 + power / quantile))


def wilcoxon(a: np.ndarray, b: np.ndarray) -> Tested:
  """Wilcoxon's signed-rank test of pairs; the interval is a bootstrap's."""
  gap = statistics.bootstrap((a - b)[:, None]).at(0)
  p = float(scipy.stats.wilcoxon(a, b).pvalue) if np.any(a != b) else 1.0
  return Tested(gap, p, "Wilcoxon", paired(a, b).detectable)


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
  detectable = math.nan
  if value >= LEVEL:
    n, m = sizes
    significant = np.array(
      [[_fisher_p(i, j, n, m) < LEVEL for j in range(m + 1)] for i in range(n + 1)]
    )
    of_b = scipy.stats.binom.pmf(np.arange(m + 1), m, q)
    for share in sorted(np.linspace(0, 1, 101), key=lambda x: abs(x - q)):
      of_a = scipy.stats.binom.pmf(np.arange(n + 1), n, share)
      if of_a @ significant @ of_b >= POWER:
        detectable = abs(share - q)
        break
  return Tested(gap, value, "Fisher's exact", detectable)


def share(count: int, num: int) -> statistics.Interval:
  """A share of runs with Clopper and Pearson's exact interval."""
  ends = scipy.stats.binomtest(count, num).proportion_ci()
  return statistics.Interval(*np.array([count / num, *ends]))


def sign(claim: str, wins: int, losses: int, words: str, **more: Any) -> types.Finding:
  """Whether the first of two wins most pairs: the exact sign test, without ties.

  `{share}` in the words is the share of pairs won. `more` are of the finding.
  """
  num = wins + losses
  p = float(scipy.stats.binomtest(wins, num).pvalue) if num else 1.0
  held = None if p >= LEVEL else bool(wins > losses)
  words = words.format(share=share(wins, num).words(".2f") if num else "none")
  return types.Finding(claim, words, held, test=f"sign, {_p_words(p)}", p=p, **more)


def _fisher_p(i: int, j: int, n: int, m: int) -> float:
  return float(scipy.stats.fisher_exact([[i, n - i], [j, m - j]]).pvalue)


def compare(
  claim: str,
  a: np.ndarray,
  b: np.ndarray,
  measured: str = "{a:.3g} and {b:.3g}, a difference of {gap}",
  *,
  less: bool = False,
  ratio: bool = False,
  spec: str = "+.3g",
  test: Test = unpaired,
  kind: types.Kind | None = None,
  games: Sequence[str] = (),
) -> types.Finding:
  """Whether `a` `[S]` is greater on average than `b` `[S']`.

  Args:
    claim: the statement to test.
    a: one number per seed, or `[S, G]`, one of each seed and game.
    b: the same of the other group.
    measured: a template of the finding's text: `{a}` and `{b}` stand for the means, and
      `{gap}` for their difference and its interval.
    less: whether the claim is that `a` is less than `b`.
    ratio: whether the groups are logarithms: then `{a}` and `{b}` are geometric means,
      and `{gap}` is their ratio.
    spec: the format of the numbers in `{gap}`.
    test: of what is neither 0 nor 1.
    kind: of the claim; None for the figure's.
    games: the names of G games, each of which is left out in turn.
  """
  a, b = (np.asarray(x, np.float64) for x in (a, b))
  per_seed = [x.reshape(len(x), -1).mean(axis=1) for x in (a, b)]
  if np.isin(np.concatenate(per_seed), (0, 1)).all():
    test = fisher
  found, means = test(*per_seed), [np.mean(x) for x in per_seed]
  gap, detectable, seeds = found.gap, found.detectable, min(len(a), len(b))
  held = None if found.p >= LEVEL else bool((gap.value < 0) == less)
  if ratio:
    gap, means = gap.map(np.exp), [np.exp(x) for x in means]
  words = measured.format(a=means[0], b=means[1], gap=gap.words(spec))
  if seeds < LEAST_SEEDS:
    held = None
  elif held is None:
    words += _detected(f"a factor of {np.exp(detectable):.2g}" if ratio else detectable)
  else:
    words += _rests_on({"one seed": _left_out(test, *per_seed)})
    rests = {
      game: [np.delete(x, i, axis=1).mean(axis=1) for x in (a, b)]
      for i, game in enumerate(games)
    }
    words += _rests_on({game: test(*rest) for game, rest in rests.items()}, spec)
  name = f"{found.name}, {_p_words(found.p)}"
  return types.Finding(claim, words, held, seeds, kind, name, found.p)


def _detected(difference: float | str) -> str:
  if isinstance(difference, float):
    known = np.isfinite(difference)
    difference = f"{difference:.2g}" if known else "no difference"
  return f"; {difference} would have been detected"


def _left_out(test: Test, a: np.ndarray, b: np.ndarray) -> Tested | None:
  """The test with the greatest p without a pair, or without one seed of a group."""
  groups = [[a, b]]
  if test not in (paired, wilcoxon):
    groups = [[a], [b]]
  without = []
  for i, group in enumerate(groups):
    if LEAST_SEEDS < len(group[0]) <= _MOST_LEFT_OUT:
      for seed in range(len(group[0])):
        rest = [np.delete(x, seed) for x in group]
        without.append(test(*rest[:1], *rest[1:] or [b]) if not i else test(a, *rest))
  return max(without, key=lambda tested: tested.p, default=None)


def _rests_on(without: Mapping[str, Tested | None], spec: str = "") -> str:
  """Words if a decided claim is undecided without one seed, or without a game."""
  known = {x: tested for x, tested in without.items() if tested and tested.p >= LEVEL}
  if not known:
    return ""
  last = max(known.values(), key=lambda tested: tested.p)
  gap = f": {last.gap.words(spec)}" if spec and len(known) == 1 else ""
  p = _p_words(last.p)
  p = p.replace("=", "up to") if len(known) > 1 else p
  return f"; undecided without {' or '.join(known)}{gap}, {p}"


def _p_words(p: float) -> str:
  return f"p = {p:.2g}" if p > 1e-4 else "p < 0.0001"


class Times(NamedTuple):
  """Episodes to solve problems, `[S, P]`; where not `solved`, the limit of the run."""

  episodes: np.ndarray
  solved: np.ndarray

  def without(self, seed: int) -> "Times":
    return Times(*(np.delete(x, seed, axis=0) for x in self))


def sooner(
  claim: str, groups: Iterable[Times], names: str, kind: types.Kind | None = None
) -> types.Finding:
  """Whether the first of two groups solves problems in fewer episodes than the second.

  If all runs solved theirs, the test is of the ratio, of pairs of the same problem and
  seed if both groups have the same ones. Otherwise runs are censored at their limit.
  """
  a, b = groups
  shares = [f"{np.sum(x.solved):.0f} of {x.solved.size}" for x in (a, b)]
  words = f"{names}: solved {' and '.join(shares)}"
  seeds = min(len(a.episodes), len(b.episodes))
  if a.solved.all() and b.solved.all():
    logs = [np.log(x.episodes) for x in (a, b)]
    pairs = logs[0].shape == logs[1].shape
    x, y = (z.ravel() if pairs else z.mean(axis=1) for z in logs)
    words += ", in {a:.0f} and {b:.0f} episodes (geometric means), a ratio of {gap}"
    if pairs:
      words += f", slower in {np.sum(x > y)} of {x.size} pairs"
    same = pairs or len(x) == len(y)
    found = compare(
      claim,
      x,
      y,
      words,
      less=True,
      ratio=True,
      spec=".3f",
      test=paired if same else unpaired,
      kind=kind,
    )
    decided = found.held if seeds >= LEAST_SEEDS else None
    return found._replace(num_seeds=seeds, held=decided)
  gap, variance, p = log_rank(a, b)
  means = [np.mean(x.episodes) for x in (a, b)]
  words += f"; restricted means {means[0]:.0f} and {means[1]:.0f} episodes"
  held = None if p >= LEVEL or seeds < LEAST_SEEDS else bool(gap > 0)
  if held is None and variance:
    factor = np.exp(scipy.stats.norm.ppf([1 - LEVEL / 2, POWER]).sum() / variance**0.5)
    words += _detected(f"a hazard ratio of {factor:.2g}" if factor < 50 else math.nan)
  elif held is not None and seeds > LEAST_SEEDS:
    rests = [log_rank(a.without(i), b, 0) for i in range(len(a.solved))]
    rests += [log_rank(a, b.without(i), 0) for i in range(len(b.solved))]
    which = int(np.argmin([abs(rest[0]) / rest[1] ** 0.5 for rest in rests]))
    first = which < len(a.solved)
    rest = (a.without(which), b) if first else (a, b.without(which - len(a.solved)))
    none = statistics.Interval(*np.zeros(3))
    words += _rests_on({"one seed": Tested(none, log_rank(*rest)[2], "", math.nan)})
  return types.Finding(claim, words, held, seeds, kind, f"log-rank, {_p_words(p)}", p)


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
    a, b = (Times(*(x.reshape(-1, 1) for x in group)) for group in (a, b))
  rng = np.random.default_rng(0)
  gap, variance, drawn = 0.0, 0.0, np.zeros(num_permutations)
  for i in range(a.episodes.shape[1]):
    times, solved = (
      np.concatenate([x[:, i], y[:, i]]) for x, y in zip(a, b, strict=True)
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


@dataclasses.dataclass(frozen=True)
class Compare:
  """The claim that group `a` is greater on average than group `b`.

  None if one of the groups has no tasks, or if both have the same.

  Attributes:
    claim: the statement.
    measure: what is measured of each seed. With several problems: its mean over them.
    a: the settings that select the group.
    b: the settings that select the other group.
    measured: the template of `compare`, or a function of both groups' tasks to it.
    less, spec, test, kind: see `compare`.
  """

  claim: str
  measure: types.Measure
  a: types.Selection
  b: types.Selection
  measured: str | Callable[[types.Table, types.Table], str] = (
    "{a:.3g} and {b:.3g}, a difference of {gap}"
  )
  less: bool = False
  spec: str = "+.3g"
  test: Test = unpaired
  kind: types.Kind | None = None

  def __call__(self, table: types.Table) -> types.Finding | None:
    a, b = table.where(**self.a), table.where(**self.b)
    if not a or not b or a == b:
      return None
    return compare(
      self.claim,
      a.score(self.measure),
      b.score(self.measure),
      self.measured(a, b) if callable(self.measured) else self.measured,
      less=self.less,
      spec=self.spec,
      test=self.test,
      kind=self.kind,
    )


@dataclasses.dataclass(frozen=True)
class Check:
  """A claim about all results of a selection, decided by a function.

  None if the selection has no tasks. Undecided with too few seeds.

  Attributes:
    claim: the statement.
    check: the tasks → what is measured, and whether the claim holds.
    where: the settings that select the tasks.
    exact: whether the results do not depend on chance, so that one seed is enough.
    test: how it decides.
    kind: of the claim; None for the figure's.
  """

  claim: str
  check: Callable[[types.Table], tuple[str, bool | None]]
  where: types.Selection = dataclasses.field(default_factory=dict)
  exact: bool = False
  test: str = "counted"
  kind: types.Kind | None = None

  def __call__(self, table: types.Table) -> types.Finding | None:
    chosen = table.where(**self.where)
    if not chosen:
      return None
    measured, held = self.check(chosen)
    seeds = chosen.num_seeds()
    if not self.exact and seeds is not None and seeds < LEAST_SEEDS:
      held = None
    return types.Finding(self.claim, measured, held, seeds, self.kind, self.test)


@dataclasses.dataclass(frozen=True)
class All:
  """The claim that all parts hold; its text joins the parts' measurements.

  None if one of the parts has no tasks.

  Attributes:
    claim: the statement.
    parts: claims.
    prefix: of the text.
    opposite: whether the claim is that not all of them hold.
  """

  claim: str
  parts: Sequence[types.Claim]
  prefix: str = ""
  opposite: bool = False

  def __call__(self, table: types.Table) -> types.Finding | None:
    findings = [finding for part in self.parts if (finding := part(table)) is not None]
    if len(findings) < len(self.parts):
      return None
    both = all_of(self.claim, findings)
    held = negated(both.held) if self.opposite else both.held
    return both._replace(measured=self.prefix + both.measured, held=held)


def all_of(
  claim: str, parts: Sequence[types.Finding], separator: str = "; "
) -> types.Finding:
  """A claim that holds if all parts hold; its text joins the parts' measurements.

  The tests of several parts are corrected by Holm's method.
  """
  tests = [part for part in parts if part.p is not None]
  corrected = dict(zip(map(id, tests), holm([x.p for x in tests]), strict=True))
  held = all_hold(
    None if corrected.get(id(part), 0.0) >= LEVEL else part.held for part in parts
  )
  words = separator.join(part.measured for part in parts)
  seeds = [part.num_seeds for part in parts if part.num_seeds is not None]
  kinds = {part.kind for part in parts}
  names = ", ".join(dict.fromkeys(part.test.partition(",")[0] for part in parts))
  if tests:
    holms = f" (Holm's correction of {len(tests)}, the greatest p)" * (len(tests) > 1)
    names += f"{holms}, {_p_words(max(corrected.values()))}"
  kind = kinds.pop() if len(kinds) == 1 else None
  return types.Finding(claim, words, held, min(seeds, default=None), kind, names)


def holm(ps: Sequence[float | None]) -> list[float]:
  """p corrected for several tests by Holm's step-down method (1979)."""
  values = np.array(ps, np.float64)
  order = np.argsort(values)
  steps = values[order] * np.arange(len(values), 0, -1)
  corrected = np.empty_like(values)
  corrected[order] = np.minimum(1.0, np.maximum.accumulate(steps))
  return corrected.tolist()


def negated(held: bool | None) -> bool | None:
  """Whether the opposite of a claim holds; None if it is undecided."""
  return None if held is None else not held


def all_hold(parts: Iterable[bool | None]) -> bool | None:
  """Whether all parts hold: False if one does not; else None if one is undecided."""
  held = list(parts)
  if False in held:
    return False
  return None if None in held else True
