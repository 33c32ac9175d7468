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
one seed, or one problem such as a game, is left out, with the same correction, says so.

`Compare` is a claim as a value: what is measured, and the settings that select both
groups. `compare` is the same of two arrays, `sooner` of episodes to solve. A `Check`
decides by a function of its own, `All` joins claims, `corrected` corrects several.
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import scipy  # It imports `stats` when it is first used.

from explorax.experiments.recording import statistics
from explorax.papers import significance, types

LEAST_SEEDS = 3  # With fewer seeds, no claim is decided.
_MOST_LEFT_OUT = 30  # One of more seeds does not decide.

_Pair = tuple[significance.Times, significance.Times]


def sign(claim: str, wins: int, losses: int, words: str, **more: Any) -> types.Finding:
  """Whether the first of two wins most pairs: the exact sign test, without ties.

  `{share}` in the words is the share of pairs won. `more` are of the finding.
  """
  num = wins + losses
  p = float(scipy.stats.binomtest(wins, num).pvalue) if num else 1.0
  held = None if p >= significance.LEVEL else bool(wins > losses)
  words = words.format(
    share=significance.share(wins, num).to_text(".2f") if num else "none"
  )
  return types.Finding(
    claim, words, held, test=f"sign, {significance.p_words(p)}", p=p, **more
  )


def compare(
  claim: str,
  a: np.ndarray,
  b: np.ndarray,
  measured: str = "{a:.3g} and {b:.3g}, a difference of {gap}",
  *,
  less: bool = False,
  ratio: bool = False,
  spec: str = "+.3g",
  test: significance.Test = significance.unpaired,
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
    games: the names of G games, each of which is left out in turn if there are others.
  """
  a, b = (np.asarray(x, np.float64) for x in (a, b))
  per_seed = [x.reshape(len(x), -1).mean(axis=1) for x in (a, b)]
  if np.isin(np.concatenate(per_seed), (0, 1)).all():
    test = significance.fisher
  found, means = test(*per_seed), [np.mean(x) for x in per_seed]
  gap, detectable, seeds = found.gap, found.detectable, min(len(a), len(b))
  held = None if found.p >= significance.LEVEL else bool((gap.value < 0) == less)

  def shown(gap: statistics.Interval) -> str:
    return (gap.map(np.exp) if ratio else gap).to_text(spec)

  left_out = []
  # Also if it is undecided, for the correction of other claims without the same game.
  for i, game in enumerate(games if len(games) > 1 else ()):
    rest = test(*(np.delete(x, i, axis=1).mean(axis=1) for x in (a, b)))
    left_out.append(types.LeftOut(game, rest.p, shown(rest.gap)))
  if held is not None and max(map(len, per_seed)) <= _MOST_LEFT_OUT:
    rests = significance.left_out(test, per_seed, LEAST_SEEDS)
    left_out.append(types.LeftOut(types.SEED, max((x.p for x in rests), default=0.0)))
  if ratio:
    means, detectable = [np.exp(x) for x in means], np.exp(detectable)
  few = seeds < LEAST_SEEDS
  return types.Finding(
    claim,
    measured.format(a=means[0], b=means[1], gap=shown(gap)),
    None if few else held,
    seeds,
    kind,
    f"{found.name}, {significance.p_words(found.p)}",
    found.p,
    "" if few else _difference(detectable, "a factor of " * ratio),
    tuple(left_out),
  )


def _difference(value: float, what: str = "") -> str:
  return f"{what}{value:.2g}" if np.isfinite(value) else "no difference"


def sooner(
  claim: str,
  groups: Iterable[significance.Times],
  names: str,
  kind: types.Kind | None = None,
  unit: str = "episodes",
) -> types.Finding:
  """Whether the first of two groups solves problems in fewer episodes than the second.

  If all runs solved theirs, the test is of the ratio, of pairs of the same problem and
  seed if both groups have the same ones. Otherwise runs are censored at their limit;
  the ratio of the pairs that both solved is beside the test, which it does not change.
  """
  a, b = groups
  shares = [f"{np.sum(x.solved):.0f} of {x.solved.size}" for x in (a, b)]
  words = f"{names}: solved {' and '.join(shares)}"
  seeds = min(len(a.episodes), len(b.episodes))
  pairs = a.episodes.shape == b.episodes.shape
  if a.solved.all() and b.solved.all():
    same = pairs or len(a.episodes) == len(b.episodes)
    test = significance.paired if same else significance.unpaired

    def logs(x: significance.Times) -> np.ndarray:
      return np.log(x.episodes).ravel() if pairs else np.log(x.episodes).mean(axis=1)

    words += (
      f", in {{a:.0f}} and {{b:.0f}} {unit} (geometric means), a ratio of {{gap}}"
    )
    if pairs:
      words += f", slower in {np.sum(logs(a) > logs(b))} of {a.episodes.size} pairs"
    found = compare(
      claim,
      logs(a),
      logs(b),
      words,
      less=True,
      ratio=True,
      spec=".3f",
      test=test,
      kind=kind,
    )

    def p_of(rests: Sequence[_Pair]) -> float:
      return max(test(logs(x), logs(y)).p for x, y in rests)

    return found._replace(
      num_seeds=seeds,
      held=found.held if seeds >= LEAST_SEEDS else None,
      left_out=_without_each(a, b, p_of, same),
    )
  gap, variance, p = significance.log_rank(a, b)
  means = [np.mean(x.episodes) for x in (a, b)]
  words += f"; restricted means {means[0]:.0f} and {means[1]:.0f} {unit}"
  if pairs and np.sum(both := np.minimum(a.solved, b.solved) > 0) >= LEAST_SEEDS:
    ratio = statistics.mean(np.log(a.episodes / b.episodes)[both]).map(np.exp)
    words += (
      f", a ratio of {ratio.to_text('.2f')} in {both.sum()} pairs that both solved"
    )
  held = None if p >= significance.LEVEL or seeds < LEAST_SEEDS else bool(gap > 0)
  detectable = ""
  if variance:
    quantiles = scipy.stats.norm.ppf([1 - significance.LEVEL / 2, significance.POWER])
    factor = np.exp(quantiles.sum() / variance**0.5)
    detectable = _difference(factor if factor < 50 else math.inf, "a hazard ratio of ")
  left_out = _without_each(a, b, _greatest_log_rank, pairs=False)
  name = f"log-rank, {significance.p_words(p)}"
  return types.Finding(claim, words, held, seeds, kind, name, p, detectable, left_out)


def _greatest_log_rank(rests: Sequence[_Pair]) -> float:
  """The p of the log-rank test of the groups that differ least."""
  gaps = [significance.log_rank(*rest, num_permutations=0)[0] for rest in rests]
  return significance.log_rank(*rests[int(np.argmin(np.abs(gaps)))])[2]


def _without_each(
  a: significance.Times,
  b: significance.Times,
  greatest_p: Callable[[Sequence[_Pair]], float],
  pairs: bool,
) -> tuple[types.LeftOut, ...]:
  """A test without one seed, of both groups of pairs, and without each problem."""
  if pairs:
    rests = [(a.without(i), b.without(i)) for i in range(len(a.solved))]
  else:
    rests = [(a.without(i), b) for i in range(len(a.solved))]
    rests += [(a, b.without(i)) for i in range(len(b.solved))]
  names = dict.fromkeys((*a.problems, *b.problems))
  found = []
  if min(len(a.solved), len(b.solved)) > 1:
    found.append(types.LeftOut(types.SEED, greatest_p(rests)))
  if len(names) > 1:
    found += [
      types.LeftOut(x, greatest_p([(a.without_problem(x), b.without_problem(x))]))
      for x in names
    ]
  return tuple(found)


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
    less, spec, test, kind, games: see `compare`.
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
  test: significance.Test = significance.unpaired
  kind: types.Kind | None = None
  games: Sequence[str] = ()

  def __call__(self, table: types.Table) -> types.Finding | None:
    a, b = table.where(**self.a), table.where(**self.b)
    if not a or not b or a == b:
      return None
    return compare(
      self.claim,
      a.scores(self.measure),
      b.scores(self.measure),
      self.measured(a, b) if callable(self.measured) else self.measured,
      less=self.less,
      spec=self.spec,
      test=self.test,
      kind=self.kind,
      games=self.games,
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
  judged = _with_holm(parts)
  parts, ps = [one for one, _ in judged], [p for _, p in judged if p is not None]
  held = all_hold(part.held for part in parts)
  words = separator.join(part.words for part in parts)
  seeds = [part.num_seeds for part in parts if part.num_seeds is not None]
  kinds = {part.kind for part in parts}
  names = ", ".join(dict.fromkeys(part.test.partition(",")[0] for part in parts))
  if ps:
    holms = f" (Holm's correction of {len(ps)}, the greatest p)" * (len(ps) > 1)
    names += f"{holms}, {significance.p_words(max(ps))}"
  kind = kinds.pop() if len(kinds) == 1 else None
  return types.Finding(claim, words, held, min(seeds, default=None), kind, names)


def corrected(parts: Sequence[types.Claim]) -> list[types.Claim]:
  """The claims, each decided with Holm's correction of the tests of all of them."""
  latest: list[Any] = [None, {}]  # A table, and the findings of it, by claim.

  def named(findings: Sequence[types.Finding]) -> Iterator[types.Finding]:
    judged = _with_holm(findings)
    words = f"with Holm's correction of {sum(p is not None for _, p in judged)}"
    for one, p in judged:
      test = "" if p is None else f"; {words}, {significance.p_words(p)}"
      yield one._replace(test=one.test + test)

  def judge(i: int, table: types.Table) -> types.Finding | None:
    if latest[0] is not table:
      found = {i: one for i, part in enumerate(parts) if (one := part(table))}
      latest[:] = table, dict(zip(found, named(list(found.values())), strict=True))
    return latest[1].get(i)

  return [functools.partial(judge, i) for i in range(len(parts))]


def _with_holm(
  findings: Sequence[types.Finding],
) -> list[tuple[types.Finding, float | None]]:
  """Each finding with Holm's correction of all tests, and its corrected p, if any.

  The test without a seed is corrected with the others as they are; the one without a
  game, with the others without that game, too.
  """
  tested = [one for one in findings if one.p is not None]

  def corrected(number: int, p: float, game: str = "") -> float:
    ps = [
      next((x.p for x in one.left_out if game and x.what == game), one.p or 0.0)
      for one in tested
    ]
    ps[number] = p
    return significance.holm(ps)[number]

  judged: list[tuple[types.Finding, float | None]] = []
  number = 0
  for one in findings:
    p = one.p
    if p is not None:
      p = corrected(number, p)
      if one.held is not None and p >= significance.LEVEL:
        detectable = f"{one.detectable} (without the correction)"
        one = one._replace(held=None, detectable=detectable * bool(one.detectable))
      one = one._replace(
        left_out=tuple(
          x._replace(p=corrected(number, x.p, x.what if x.what != types.SEED else ""))
          for x in one.left_out
        ),
      )
      number += 1
    judged.append((one, p))
  return judged


def negated(held: bool | None) -> bool | None:
  """Whether the opposite of a claim holds; None if it is undecided."""
  return None if held is None else not held


def all_hold(parts: Iterable[bool | None]) -> bool | None:
  """Whether all parts hold: False if one does not; else None if one is undecided."""
  held = list(parts)
  if False in held:
    return False
  return None if None in held else True
