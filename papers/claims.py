"""Claims, and the test of most of them: whether one group of seeds is above another.

A claim holds if the 95 % interval of the difference of means lies on the claim's side
of 0, and does not hold if it lies on the other side. If the interval contains 0, it is
undecided: there are too few seeds, or the problem does not separate the groups.

`Compare` is a claim as a value: what is measured, and the settings that select both
groups. `compare` is the same test of two arrays, for claims that are functions of the
table. A `Check` decides by a function of its own, `All` joins claims.
"""

import dataclasses
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from explorax.experiments.recording import statistics
from explorax.papers import types

LEAST_SEEDS = 3  # With fewer seeds, no claim is decided.

Test = Callable[[np.ndarray, np.ndarray], statistics.Interval]


def paired(a: np.ndarray, b: np.ndarray) -> statistics.Interval:
  """The mean difference of seeds that share a problem, with Student's t-interval."""
  return statistics.mean(a - b)


def resampled(a: np.ndarray, b: np.ndarray) -> statistics.Interval:
  """The mean difference of seeds that share a problem, with a bootstrap interval."""
  return statistics.bootstrap((a - b)[:, None]).at(0)


unpaired: Test = statistics.difference  # Welch's t-interval.


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
) -> types.Finding:
  """Whether `a` `[S]` is greater on average than `b` `[S']`.

  Args:
    claim: the statement to test.
    a: one number per seed.
    b: one number per seed of the other group.
    measured: a template of the finding's text: `{a}` and `{b}` stand for the means, and
      `{gap}` for their difference and its interval.
    less: whether the claim is that `a` is less than `b`.
    ratio: whether the groups are logarithms: then `{a}` and `{b}` are geometric means,
      and `{gap}` is their ratio.
    spec: the format of the numbers in `{gap}`.
    test: gives the interval of the difference.
  """
  gap, means = test(a, b), [np.mean(a), np.mean(b)]
  held, seeds = gap.is_below() if less else gap.is_above(), min(len(a), len(b))
  if ratio:
    gap, means = gap.map(np.exp), [np.exp(x) for x in means]
  words = measured.format(a=means[0], b=means[1], gap=gap.words(spec))
  return types.Finding(claim, words, held if seeds >= LEAST_SEEDS else None, seeds)


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
    less, ratio, spec, test: see `compare`. With `ratio`, the measure's logarithm is
      averaged.
  """

  claim: str
  measure: types.Measure
  a: types.Selection
  b: types.Selection
  measured: str | Callable[[types.Table, types.Table], str] = (
    "{a:.3g} and {b:.3g}, a difference of {gap}"
  )
  less: bool = False
  ratio: bool = False
  spec: str = "+.3g"
  test: Test = unpaired

  def __call__(self, table: types.Table) -> types.Finding | None:
    a, b = table.where(**self.a), table.where(**self.b)
    if not a or not b or a == b:
      return None
    return compare(
      self.claim,
      self._score(a),
      self._score(b),
      self.measured(a, b) if callable(self.measured) else self.measured,
      less=self.less,
      ratio=self.ratio,
      spec=self.spec,
      test=self.test,
    )

  def _score(self, table: types.Table) -> np.ndarray:
    if not self.ratio:
      return table.score(self.measure)
    return np.log(table.scores(self.measure)).mean(axis=1)


@dataclasses.dataclass(frozen=True)
class Check:
  """A claim about all results of a selection, decided by a function.

  None if the selection has no tasks. Undecided with too few seeds.

  Attributes:
    claim: the statement.
    check: the tasks → what is measured, and whether the claim holds.
    where: the settings that select the tasks.
    exact: whether the results do not depend on chance, so that one seed is enough.
  """

  claim: str
  check: Callable[[types.Table], tuple[str, bool | None]]
  where: types.Selection = dataclasses.field(default_factory=dict)
  exact: bool = False

  def __call__(self, table: types.Table) -> types.Finding | None:
    chosen = table.where(**self.where)
    if not chosen:
      return None
    measured, held = self.check(chosen)
    seeds = chosen.num_seeds()
    if not self.exact and seeds is not None and seeds < LEAST_SEEDS:
      held = None
    return types.Finding(self.claim, measured, held, seeds)


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
  """A claim that holds if all parts hold; its text joins the parts' measurements."""
  words = separator.join(part.measured for part in parts)
  seeds = [part.num_seeds for part in parts if part.num_seeds is not None]
  held = all_hold(part.held for part in parts)
  return types.Finding(claim, words, held, min(seeds, default=None))


def negated(held: bool | None) -> bool | None:
  """Whether the opposite of a claim holds; None if it is undecided."""
  return None if held is None else not held


def all_hold(parts: Iterable[bool | None]) -> bool | None:
  """Whether all parts hold: False if one does not; else None if one is undecided."""
  held = list(parts)
  if False in held:
    return False
  return None if None in held else True
