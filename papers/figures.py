"""What a figure is: its runs, panels and claims, declared as values.

A module of a paper lists its figures in `FIGURES`; `reproduce.py` finds, computes,
draws and judges them. `docs/papers/figures.md` has an example.

A `Grid` makes a task for each line, each combination of its axes (the tuples among the
settings; other values are the same for all) and each part of the seeds. `compute` gets
a task's settings, with `seeds`, a list, among them, and returns arrays whose first axis
is the seeds. `--set` and `quick` change settings of all grids by name; a setting of the
lines, such as `agent`, selects those lines.

Panels (`draw.py`) and claims (`judge.py`) select tasks by settings: `Table.where`.
Where the runs depend on earlier results, such as a tuning, `then` lists further grids.
"""

import collections
import dataclasses
import importlib
import itertools
import json
import pkgutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from explorax import notation, papers
from explorax.experiments import errors

if TYPE_CHECKING:
  from explorax.papers import draw, judge

Settings = Mapping[str, Any]  # In JSON's types.
Results = dict[str, np.ndarray]  # The first axis is the seeds.
Compute = Callable[[Settings], Results]
# Settings that select tasks of a table, see `Table.where`.
Selection = Mapping[str, Any]
# What is measured of a table's seeds, `[S, ...]`: a result's name, or a function.
Measure = str | Callable[["Table"], np.ndarray]


class Task(NamedTuple):
  """A part of a figure that is computed as a whole, and whose results are saved."""

  compute: Compute  # At the top level of a module.
  settings: Settings  # All that determines the results.


class CompletedTask(NamedTuple):
  """A task's settings and results."""

  settings: Settings
  results: Results
  seconds: float
  versions: Settings  # Of Python, the packages and the machine.


def key(task: Task | CompletedTask) -> str:
  """The settings as text: tasks with the same one have the same results."""
  return json.dumps(task.settings, sort_keys=True)


@dataclasses.dataclass(frozen=True)
class Grid:
  """Lines × axes × seeds, as tasks."""

  compute: Compute
  lines: Sequence[Settings] = ({},)  # The settings in which lines of a drawing differ.
  # Setting → its values, a tuple; or one value of all tasks.
  axes: Settings = dataclasses.field(default_factory=dict)
  num_seeds: int = 5  # Of each line at each point of the axes.
  first_seed: int = 0
  seeds_per_task: int = 1  # Computed together.

  def tasks(self) -> list[Task]:
    values = [_listed(x) for x in self.axes.values()]
    seeds = [*range(self.first_seed, self.first_seed + self.num_seeds)]
    tasks = []
    for line, point in itertools.product(self.lines, itertools.product(*values)):
      settings = {**line, **dict(zip(self.axes, point, strict=True))}
      for start in range(0, self.num_seeds, self.seeds_per_task):
        part = seeds[start : start + self.seeds_per_task]
        tasks.append(Task(self.compute, {**settings, "seeds": part}))
    return tasks

  def changed(self, changes: Settings) -> "Grid":
    """With other values of settings; of those of lines, with these lines alone."""
    lines = [
      line
      for line in self.lines
      if all(line[k] in _listed(changes[k]) for k in line if k in changes)
    ]
    axes = {k: changes.get(k, v) for k, v in self.axes.items()}
    seeds = {k: changes[k] for k in _OF_SEEDS if k in changes}
    return dataclasses.replace(self, lines=lines, axes=axes, **seeds)


def _listed(value: Any) -> Sequence[Any]:
  return value if isinstance(value, tuple) else (value,)


_OF_SEEDS = dict.fromkeys(("num_seeds", "first_seed", "seeds_per_task"))


class Times(NamedTuple):
  """Episodes until something happens, `[S, P]`; where not `solved`, the run's limit."""

  episodes: np.ndarray
  solved: np.ndarray


class Table(tuple[CompletedTask, ...]):
  """The tasks of a figure with their results, selectable by their settings.

  Tasks that differ only in their seeds form a group: a problem.
  """

  __slots__ = ()

  def where(self, **settings: Any) -> "Table":
    """The tasks with these settings, in order.

    A setting that a task does not have is None. A tuple selects one of its values, a
    function those for which it is true: `where(beta=bool)` leaves out β = 0.
    """
    chosen = self
    for name, value in settings.items():
      chosen = Table([x for x in chosen if _matches(x.settings.get(name), value)])
    return chosen

  def values(self, name: str) -> list[Any]:
    """The values of a setting without duplicates, in the order of the tasks."""
    return list(dict.fromkeys(x.settings[name] for x in self if name in x.settings))

  def seeds(self) -> list[int]:
    return sorted({x for task in self for x in task.settings.get("seeds", ())})

  def without_seed(self, seed: int) -> "Table":
    """The results of the other seeds."""
    tasks = []
    for task in self:
      kept = [i for i, x in enumerate(task.settings["seeds"]) if x != seed]
      results = {name: x[kept] for name, x in task.results.items()}
      seeds = [task.settings["seeds"][i] for i in kept]
      if seeds:
        settings = {**task.settings, "seeds": seeds}
        tasks.append(task._replace(settings=settings, results=results))
    return Table(tasks)

  def by_problem(self) -> list["Table"]:
    """Groups of tasks that differ only in their seeds."""
    groups = collections.defaultdict[str, list[CompletedTask]](list)
    for task in self:
      problem = {k: v for k, v in task.settings.items() if k != "seeds"}
      groups[json.dumps(problem, sort_keys=True)].append(task)
    return [Table(group) for group in groups.values()]

  def joined(self, name: str, **settings: Any) -> np.ndarray:
    """A result of the tasks with these settings, which differ only in their seeds.

    Returns:
      `[S, ...]`, in the order of the seeds.

    Raises:
      ValueError: if there are no such tasks, or if they differ in other settings.
    """
    (group,) = self.where(**settings).by_problem()
    ordered = sorted(group, key=lambda task: task.settings["seeds"][0])
    return np.concatenate([task.results[name] for task in ordered])

  def scores(self, measure: Measure) -> np.ndarray:
    """One number of each seed and problem, `[S, problems]`: the mean of a result."""
    if callable(measure):
      return measure(self)
    if not self:
      return np.zeros((0, 0))
    groups = [group.joined(measure) for group in self.by_problem()]
    return np.stack([x.reshape(len(x), -1).mean(axis=1) for x in groups], axis=1)

  def score(self, measure: Measure) -> np.ndarray:
    """One number of each seed, `[S]`: the mean of what is measured."""
    x = self.scores(measure)
    return x.mean(axis=tuple(range(1, x.ndim)))

  def times(self, event: str = "solved") -> Times:
    """When something happened, `[S, problems]`.

    `event` is a result, 0 of runs in which it did not happen, which are as long as the
    result `limit`, or without one `episodes`.
    """
    end = "limit" if all("limit" in task.results for task in self) else "episodes"
    at = self.scores(event)
    return Times(np.where(at > 0, at, self.scores(end)), at > 0)

  def solved(self) -> np.ndarray:
    """Whether each run solved its problem, 0 or 1: `[runs, 1]`, a measure of runs."""
    return self.times().solved.astype(np.float64).reshape(-1, 1)

  def over(self, setting: str, measure: Measure) -> tuple[np.ndarray, np.ndarray]:
    """The values of a setting `[N]`, rising, and the scores of each, `[S, N]`."""
    values = sorted(self.values(setting))
    scores = [self.where(**{setting: value}).score(measure) for value in values]
    return np.array(values), np.stack(scores, axis=1)


def _matches(value: Any, wanted: Any) -> bool:
  if isinstance(wanted, tuple):
    return value in wanted
  return bool(wanted(value)) if callable(wanted) else value == wanted


@dataclasses.dataclass(frozen=True)
class Figure:
  """A figure of a paper, or one of our own: what is computed, drawn and claimed.

  Attributes:
    name: such as `ez/fig3`: the paper's method and the figure's number.
    title: a few words for `--list`, and above the drawing.
    source: the paper and the figure's number, as in a caption.
    runs: the grids of its tasks.
    quick: changes of their settings for a version that takes a minute or so.
    panels: rows of panels; none if it is a table alone.
    claims: that are tested.
    problem: the setting whose values are left out in turn to see whether a verdict is
      robust; '' for none.
    then: the results → further grids.
    table: the results → a table in Markdown for the page, if any.
  """

  name: str
  title: str
  source: str
  runs: Sequence[Grid]
  quick: Settings
  panels: Sequence[Sequence["draw.Panel"]]
  claims: Sequence["judge.Claim"]
  problem: str = ""
  then: Callable[[Table], Sequence[Grid]] | None = None
  table: Callable[[Table], str] | None = None

  @property
  def file_name(self) -> str:
    """`ez_fig3`, for `ez/fig3`."""
    return self.name.replace("/", "_")

  def stages(
    self, changes: Settings, complete: Callable[[Sequence[Task]], Table | None]
  ) -> Table | None:
    """The results of all tasks, of which `complete` has those of some; None without."""

    def completed(grids: Sequence[Grid]) -> Table | None:
      tasks = [task for grid in grids for task in grid.changed(changes).tasks()]
      return complete([*{key(task): task for task in tasks}.values()])

    table = completed(self.runs)
    if table is None or self.then is None:
      return table
    further = completed(self.then(table))
    return None if further is None else Table([*table, *further])


def parse_changes(figure: Figure, assignments: Sequence[str]) -> dict[str, Any]:
  """`size=10,14` or `max_episodes=500` as changes of a figure's settings.

  Raises:
    SetUpError: if no grid has such a setting, or no task remains.
  """
  settings = [x for grid in figure.runs for x in (*grid.lines, grid.axes)]
  known = {name: None for x in settings for name in x} | _OF_SEEDS
  changes = {}
  for assignment in assignments:
    name, _, text = assignment.partition("=")
    if name not in known:
      raise errors.SetUpError(
        f"{figure.name} has no setting {name!r}.{notation.nearest(name, known)} "
        f"There are {', '.join(known)}."
      )
    changes[name] = notation.parse(text)
    if not any(grid.changed(changes).tasks() for grid in figure.runs):
      raise errors.SetUpError(f"{figure.name} has no runs with --set {assignment}.")
  return changes


def every() -> dict[str, Figure]:
  """All figures by name, from `FIGURES` in the modules of this package."""
  found = {}
  for module in pkgutil.walk_packages(papers.__path__, f"{papers.__name__}."):
    if not module.ispkg:
      for figure in getattr(importlib.import_module(module.name), "FIGURES", ()):
        found[figure.name] = figure
  return dict(sorted(found.items()))


def choose(names: str | None, known: Mapping[str, Figure]) -> Iterator[Figure]:
  """The figures for comma-separated names, in the order of the names.

  Names are those of figures, `ez` for all figures of that paper, or `all`; or
  `module:NAME` for a user's own figure.

  Raises:
    SetUpError: if `names` is empty, or if a figure does not exist.
  """
  if not names:
    raise errors.SetUpError("--figure is missing; --list lists the names.")
  for name in names.split(","):
    if ":" in name:
      yield notation.import_attribute(name, "figure")
      continue
    chosen = [x for key, x in known.items() if name in (key, key.split("/")[0], "all")]
    if not chosen:
      raise errors.SetUpError(
        f"there is no figure {name!r}.{notation.nearest(name, known)} "
        "--list lists all figures."
      )
    yield from chosen
