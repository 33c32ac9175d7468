"""What a figure is: tasks whose results are kept, a drawing, and its claim's test."""

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
else:  # Nothing needs matplotlib before a figure is drawn.
  Axes = Drawing = Any

# Of tasks: see `tasks.types`. The results of figures' tasks are arrays by name.
Task = task_types.Task
CompletedTask = task_types.CompletedTask
Settings = task_types.Settings
Results = task_types.Results
TaskContext = task_types.TaskContext
InterruptedTaskError = task_types.InterruptedTaskError


class Table(tuple[CompletedTask, ...]):
  """The tasks of a figure with their results, to be selected by their settings.

  A task computes one or several seeds, listed in its setting `seeds`; the results of a
  seed are in the rows, `[S, …]`. Tasks that differ in their seeds only belong together.
  """

  __slots__ = ()

  def where(self, **settings: Any) -> "Table":
    """Those of the tasks that have these settings, in their order."""
    return Table(
      task
      for task in self
      if all(task.settings.get(name) == value for name, value in settings.items())
    )

  def values(self, name: str) -> list[Any]:
    """The values of a setting, each once, in the order of the tasks that have it."""
    return list(
      dict.fromkeys(task.settings[name] for task in self if name in task.settings)
    )

  def by_problem(self) -> list["Table"]:
    """The tasks in groups that differ in their seeds only."""
    groups: dict[str, list[CompletedTask]] = {}
    for task in self:
      problem = {k: v for k, v in task.settings.items() if k != "seeds"}
      groups.setdefault(json.dumps(problem), []).append(task)
    return [Table(group) for group in groups.values()]

  def joined(self, name: str, **settings: Any) -> np.ndarray:
    """A result of the tasks that have these settings and differ in their seeds only.

    Returns:
      `[S, …]`, in the order of the seeds.

    Raises:
      ValueError: if there are no such tasks, or if they differ in more.
    """
    (group,) = self.where(**settings).by_problem()
    ordered = sorted(group, key=lambda task: task.settings["seeds"][0])
    return np.concatenate([task.results[name] for task in ordered])

  def per_seed(self, name: str, **settings: Any) -> np.ndarray:
    """A result in each of the groups of tasks that have these settings, `[S, groups]`.

    Where it is a curve, as the returns of all episodes are, it is the curve's mean.
    """
    groups = [group.joined(name) for group in self.where(**settings).by_problem()]
    return np.stack([x.reshape(len(x), -1).mean(axis=1) for x in groups], axis=1)


VERDICTS = {True: "held", False: "did not hold", None: "cannot be told"}


class Finding(NamedTuple):
  """A claim, tested on what was measured.

  Attributes:
    claim: what should be so, in a few words.
    measured: the numbers, in a few words.
    held: whether it was so; None where this cannot be told: an interval that contains
      no difference, too few seeds, or a scale that does not show it.
    num_seeds: behind the numbers; None for the figure's own.
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
    name: `ez/fig3`: the paper's method, and the figure's number.
    title: a few words for `--list`.
    source: the paper and the number, as a caption cites them.
    claim: what the paper says that it shows, a sentence or two.
    config: a frozen dataclass of the settings, `num_seeds` among them, each with its
      source; what is impossible is refused in its `__post_init__`.
    quick: the same, of a smoke version: small problems and few seeds.
    revision: to be raised when what its tasks compute changes.
    tasks: a config → the tasks.
    run: a task's settings → its results; a function of a module, since other processes
      find it by its name.
    draw: the config and the results of all its tasks → a drawing (of `drawing.new`).
    judge: the same → findings.
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
  """0 to num_seeds − 1, in lists of at most so many."""
  seeds = list(range(num_seeds))
  return [seeds[i : i + seeds_per_task] for i in range(0, num_seeds, seeds_per_task)]
