"""The types of figures: a figure, its tasks, the table of results, and findings."""

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeVar

import numpy as np

from explorax import ranges
from explorax.papers import significance

if TYPE_CHECKING:
  from matplotlib import axes as mpl_axes
  from matplotlib import figure as mpl_figure

  Axes = mpl_axes.Axes
  Drawing = mpl_figure.Figure
else:  # matplotlib is imported only when a figure is drawn.
  Axes = Drawing = Any

Settings = Mapping[str, Any]  # In JSON's types.
Results = dict[str, Any]  # numpy arrays, and values in JSON's types.


T = TypeVar("T")
# The type of a setting with one or more values: `Distinct[ranges.PositiveInt]`.
Distinct = Annotated[tuple[T, ...], ranges.Distinct()]
Rising = Annotated[tuple[T, ...], ranges.Rising()]
Size = Annotated[int, ranges.Range(ge=2)]  # Of a problem.


class Task(NamedTuple):
  """A part of a figure that is computed as a whole, and whose results are saved.

  Attributes:
    name: unique in its figure.
    settings: everything that determines the results.
    weight: its expected duration, relative to the other tasks.
  """

  name: str
  settings: Settings
  weight: float = 1.0


class CompletedTask(NamedTuple):
  """A task's results.

  Attributes:
    name: the task's.
    settings: the task's.
    results: by name.
    seconds: its duration.
    versions: of Python, the packages and the machine (`versions.collect`).
  """

  name: str
  settings: Settings
  results: Results
  seconds: float
  versions: Mapping[str, Any]


class Table(tuple[CompletedTask, ...]):
  """The tasks of a figure with their results, selectable by their settings.

  A task computes one or several seeds, which its setting `seeds` lists. Its results are
  arrays `[S, …]` with a row for each seed. Tasks that differ only in their seeds form a
  group: a problem.
  """

  __slots__ = ()

  def where(self, **settings: Any) -> "Table":
    """The tasks with these settings, in order.

    A setting that a task does not have is None. A function in place of a value is a
    predicate: `where(beta=bool)` selects the tasks whose `beta` is not 0.
    """
    return Table(
      task
      for task in self
      if all(_matches(task.settings.get(k), value) for k, value in settings.items())
    )

  def values(self, name: str) -> list[Any]:
    """The values of a setting without duplicates, in the order of the tasks."""
    return list(
      dict.fromkeys(task.settings[name] for task in self if name in task.settings)
    )

  def num_seeds(self) -> int | None:
    """The number of different seeds; None if the tasks have no such setting."""
    return len({x for task in self for x in task.settings.get("seeds", ())}) or None

  def by_problem(self) -> list["Table"]:
    """Groups of tasks that differ only in their seeds."""
    groups: dict[str, list[CompletedTask]] = {}
    for task in self:
      problem = {k: v for k, v in task.settings.items() if k != "seeds"}
      groups.setdefault(json.dumps(problem, sort_keys=True), []).append(task)
    return [Table(group) for group in groups.values()]

  def joined(self, name: str, **settings: Any) -> np.ndarray:
    """A result of the tasks with these settings, which differ only in their seeds.

    Returns:
      `[S, …]`, in the order of the seeds.

    Raises:
      ValueError: if there are no such tasks, or if they differ in other settings.
    """
    (group,) = self.where(**settings).by_problem()
    ordered = sorted(group, key=lambda task: task.settings.get("seeds", [0])[0])
    return np.concatenate([task.results[name] for task in ordered])

  def per_seed(self, name: str, **settings: Any) -> np.ndarray:
    """One number per seed for each problem with these settings, `[S, problems]`.

    If a seed's result is an array, such as the returns of all episodes, the number is
    its mean.
    """
    groups = [group.joined(name) for group in self.where(**settings).by_problem()]
    return np.stack([x.reshape(len(x), -1).mean(axis=1) for x in groups], axis=1)

  def curve(self, measure: "Measure") -> np.ndarray:
    """The measured `[S, …]` of one problem."""
    return measure(self) if callable(measure) else self.joined(measure)

  def scores(self, measure: "Measure") -> np.ndarray:
    """The measured `[S, problems]`, in the order of the problems."""
    return measure(self) if callable(measure) else self.per_seed(measure)

  def score(self, measure: "Measure") -> np.ndarray:
    """One number for each seed, `[S]`: the mean of what is measured."""
    x = self.scores(measure)
    return x.reshape(len(x), -1).mean(axis=1)


def _matches(value: Any, wanted: Any) -> bool:
  return bool(wanted(value)) if callable(wanted) else value == wanted


# What is measured of a table's seeds, `[S, …]`: a result's name, or a function.
Measure = str | Callable[[Table], np.ndarray]
# Settings that select tasks of a table, see `Table.where`.
Selection = Mapping[str, Any]

VERDICTS = {True: "held", False: "did not hold", None: "undecided"}
# What a claim is about.
Kind = Literal["learning", "exploration", "operator", "formula", "published", "ours"]
KINDS: dict[Kind, str] = {
  "learning": "the paper's, of agents that learn",
  "exploration": "the paper's, of rules that act without learning",
  "operator": "the paper's, of operators on small decision processes",
  "formula": "the paper's, of formulas and of the problems themselves",
  "published": "the paper's own table, judged again",
  "ours": "not in the paper",
}


SEED = "one seed"


class LeftOut(NamedTuple):
  """A test without one seed, or without one problem such as a game.

  Attributes:
    what: is left out: `SEED`, or the problem's name.
    p: of the test; for `SEED`, the greatest of all seeds.
    gap: the difference and its interval without the problem, if it has them.
  """

  what: str
  p: float
  gap: str = ""


class Finding(NamedTuple):
  """A tested claim.

  Attributes:
    claim: the statement, in a few words.
    measured: the numbers, in a few words.
    held: whether it holds; None if this is undecided, because the test does not decide,
      there are too few seeds, or the problem is too small to show it.
    num_seeds: the number of seeds behind the numbers; None for that of the figure.
    kind: what it is about; None for what the figure is about.
    test: the test that decides, with its p; or how it is decided without one.
    p: of the test, not corrected for other tests; None without a test.
    detectable: the difference that would have been detected, in a few words.
    left_out: the same test without a seed or a problem.
  """

  claim: str
  measured: str
  held: bool | None
  num_seeds: int | None = None
  kind: Kind | None = None
  test: str = "counted"
  p: float | None = None
  detectable: str = ""
  left_out: tuple[LeftOut, ...] = ()

  @property
  def verdict(self) -> str:
    return VERDICTS[self.held]

  @property
  def words(self) -> str:
    """What was measured, and the limits of the verdict.

    If it is undecided: what would have been detected. Else: whether it rests on one
    seed or on one problem.
    """
    if self.held is None:
      detected = f"; {self.detectable} would have been detected"
      return self.measured + detected * bool(self.detectable)
    words = self.measured
    undecided = [one for one in self.left_out if one.p >= significance.LEVEL]
    for of_seeds in (True, False):
      tests = [one for one in undecided if (one.what == SEED) == of_seeds]
      if tests:
        without, p = tests[0].what, significance.p_words(max(one.p for one in tests))
        if len(tests) > 1:
          without, p = " or ".join(x.what for x in tests), p.replace("=", "up to")
          if len(tests) > 3:
            problems = len({one.what for one in self.left_out} - {SEED})
            without = f"any one of {len(tests)} of the {problems} problems"
        elif tests[0].gap:
          without += f": {tests[0].gap}"
        words += f"; undecided without {without}, {p}"
    return words


# A claim: tests itself on the results. None if their tasks are not in the table, which
# happens for the smaller problems of quick versions.
Claim = Callable[[Table], Finding | None]


@dataclasses.dataclass(frozen=True)
class Figure:
  """A figure of a paper, or one of our own: what is computed, drawn and claimed.

  Attributes:
    name: such as `ez/fig3`: the paper's method and the figure's number.
    title: a few words for `--list`, and above the drawing.
    source: the paper and the figure's number, as in a caption.
    claim: the paper's statement about the figure, in a sentence or two.
    config: a frozen dataclass of the settings, including `num_seeds`, each with its
      source.
    quick: the settings of a quick version with small problems and few seeds.
    tasks: config → the tasks.
    then: (config, their results) → further tasks, such as those with settings that the
      first ones have chosen; None for none.
    compute: a task's settings → its results. It must be a function at the top level of
      a module, because other processes import it by name.
    panels: config → rows of panels (`panels.Panel`). A panel that is in several cells
      covers them; None leaves a cell empty.
    claims: config → the claims.
    text: (config, results) → Markdown below the drawing, such as a table, if any.
    caption: what the lines, marks and intervals of the drawing are.
    kind: of its claims, except those that say their own.
    height: of a row of panels, in inches.
    large: whether its full version takes many hours, or a cluster; then it must be
      chosen by its name, and the documentation may be without its results.
  """

  name: str
  title: str
  source: str
  claim: str
  config: Any
  quick: Any
  tasks: Callable[[Any], Sequence[Task]]
  compute: Callable[[Settings], Results]
  panels: Callable[[Any], Sequence[Sequence[Any]]]
  claims: Callable[[Any], Sequence[Claim]]
  caption: str = "Lines: means over seeds; bands: 95 % bootstrap intervals."
  kind: Kind = "learning"
  height: float = 2.9
  then: Callable[[Any, Table], Sequence[Task]] | None = None
  text: Callable[[Any, Table], str] | None = None
  large: bool = False

  @property
  def file_name(self) -> str:
    """`ez_fig3`, for `ez/fig3`."""
    return self.name.replace("/", "_")

  def judge(self, config: Any, table: Table) -> list[Finding]:
    """Tests the claims on the results of all tasks.

    What was measured is each finding's `words`. Each p has six digits: the last ones
    differ between machines.
    """
    return [
      finding._replace(
        num_seeds=finding.num_seeds or config.num_seeds,
        kind=finding.kind or self.kind,
        p=None if finding.p is None else float(f"{finding.p:.6g}"),
        measured=finding.words,
        detectable="",
        left_out=(),
      )
      for claim in self.claims(config)
      if (finding := claim(table)) is not None
    ]


def split(
  name: str,
  settings: Settings,
  num_seeds: int,
  seeds_per_task: int = 1,
  seconds_per_seed: float = 1.0,
  first_seed: int = 0,
) -> list[Task]:
  """Tasks for consecutive seeds of a problem, at most so many seeds in each."""
  every = range(first_seed, first_seed + num_seeds)
  chunks = [
    list(every[start : start + seeds_per_task])
    for start in range(0, num_seeds, seeds_per_task)
  ]
  return [
    Task(
      f"{name}_seed{seeds[0]}",
      {**settings, "seeds": seeds},
      seconds_per_seed * len(seeds),
    )
    for seeds in chunks
  ]
