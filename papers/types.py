"""The types of figures: their tasks, the table of results, and findings."""

import dataclasses
import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from explorax.experiments.tasks import types as task_types

if TYPE_CHECKING:
  from matplotlib import axes as mpl_axes
  from matplotlib import figure as mpl_figure

  Axes = mpl_axes.Axes
  Drawing = mpl_figure.Figure
else:  # matplotlib is imported only when a figure is drawn.
  Axes = Drawing = Any

# Types of tasks, see `tasks.types`. The results of a figure's task are arrays by name.
Task = task_types.Task
CompletedTask = task_types.CompletedTask
Settings = task_types.Settings
Results = task_types.Results
TaskContext = task_types.TaskContext
InterruptedTaskError = task_types.InterruptedTaskError


class Table(tuple[CompletedTask, ...]):
  """The tasks of a figure with their results, selectable by their settings.

  A task computes one or several seeds, which its setting `seeds` lists. Its results are
  arrays `[S, …]` with a row for each seed. Tasks that differ only in their seeds form a
  group.
  """

  __slots__ = ()

  def where(self, **settings: Any) -> "Table":
    """The tasks with these settings, in order."""
    return Table(
      task
      for task in self
      if all(task.settings.get(name) == value for name, value in settings.items())
    )

  def values(self, name: str) -> list[Any]:
    """The values of a setting without duplicates, in the order of the tasks."""
    return list(
      dict.fromkeys(task.settings[name] for task in self if name in task.settings)
    )

  def by_problem(self) -> list["Table"]:
    """Groups of tasks that differ only in their seeds."""
    groups: dict[str, list[CompletedTask]] = {}
    for task in self:
      problem = {k: v for k, v in task.settings.items() if k != "seeds"}
      groups.setdefault(json.dumps(problem), []).append(task)
    return [Table(group) for group in groups.values()]

  def joined(self, name: str, **settings: Any) -> np.ndarray:
    """A result of the tasks with these settings, which differ only in their seeds.

    Returns:
      `[S, …]`, in the order of the seeds.

    Raises:
      ValueError: if there are no such tasks, or if they differ in other settings.
    """
    (group,) = self.where(**settings).by_problem()
    ordered = sorted(group, key=lambda task: task.settings["seeds"][0])
    return np.concatenate([task.results[name] for task in ordered])

  def per_seed(self, name: str, **settings: Any) -> np.ndarray:
    """One number per seed for each group of tasks with these settings, `[S, groups]`.

    If a seed's result is an array, such as the returns of all episodes, the number is
    its mean.
    """
    groups = [group.joined(name) for group in self.where(**settings).by_problem()]
    return np.stack([x.reshape(len(x), -1).mean(axis=1) for x in groups], axis=1)


VERDICTS = {True: "held", False: "did not hold", None: "cannot be told"}


class Finding(NamedTuple):
  """A tested claim.

  Attributes:
    claim: the statement, in a few words.
    measured: the numbers, in a few words.
    held: whether it holds; None if this cannot be told, because the interval contains
      0, there are too few seeds, or the problem is too small to show it.
    num_seeds: the number of seeds behind the numbers; None for that of the figure.
  """

  claim: str
  measured: str
  held: bool | None
  num_seeds: int | None = None

  @property
  def verdict(self) -> str:
    return VERDICTS[self.held]


@dataclasses.dataclass(frozen=True)
class Figure:
  """A figure of a paper, or one of our own.

  Attributes:
    name: such as `ez/fig3`: the paper's method and the figure's number.
    title: a few words for `--list`.
    source: the paper and the figure's number, as in a caption.
    claim: the paper's statement about the figure, in a sentence or two.
    config: a frozen dataclass of the settings, including `num_seeds`, each with its
      source; its `__post_init__` refuses impossible values.
    quick: the settings of a quick version with small problems and few seeds.
    revision: a number to increase when the tasks compute something else; stored results
      of other revisions are refused.
    tasks: config → the tasks.
    run: (a task's settings, its context) → its results. It must be a function at the
      top level of a module, because other processes import it by name.
    draw: (config, the results of all its tasks) → a drawing (from `drawing.new`).
    judge: (config, the results of all its tasks) → findings.
  """

  name: str
  title: str
  source: str
  claim: str
  config: Any
  quick: Any
  tasks: Callable[[Any], Sequence[Task]]
  run: Callable[[Settings, TaskContext], Results]
  draw: Callable[[Any, Table], Drawing]
  judge: Callable[[Any, Table], Sequence[Finding]]
  revision: int = 1

  @property
  def file_name(self) -> str:
    """`ez_fig3`, for `ez/fig3`."""
    return self.name.replace("/", "_")


def seed_chunks(num_seeds: int, seeds_per_task: int) -> list[list[int]]:
  """0 to num_seeds − 1, in lists of at most `seeds_per_task`."""
  seeds = list(range(num_seeds))
  return [seeds[i : i + seeds_per_task] for i in range(0, num_seeds, seeds_per_task)]
