"""What a figure is: tasks whose results are kept, a drawing, and its claim's test."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
  from matplotlib import figure as mpl_figure

Settings = Mapping[str, Any]  # What JSON can hold: it is kept beside the results.
Results = dict[str, np.ndarray]
Tick = Callable[[float], None]  # Told the share of a task that is done, in [0, 1].


class Task(NamedTuple):
  """A part of a figure, computed in one go and kept.

  Attributes:
    name: of the task within the figure, and of its file.
    settings: all that decides the results.
    weight: how long it takes, compared with the figure's other tasks.
  """

  name: str
  settings: Settings
  weight: float = 1.0


class InterruptedTaskError(Exception):
  """A task was ended before it was complete: what it has is not to be kept."""


class Done(NamedTuple):
  """A task's results.

  Attributes:
    settings: the task's.
    results: arrays by name.
    seconds: that it took.
  """

  settings: Settings
  results: Results
  seconds: float


class Finding(NamedTuple):
  """A claim, tested on what was measured.

  Attributes:
    claim: what should be so, in a few words.
    measured: the numbers, in a few words.
    held: whether it was so; None where this scale cannot tell.
  """

  claim: str
  measured: str
  held: bool | None

  @property
  def verdict(self) -> str:
    """`held`, `did not hold` or `cannot be told`."""
    if self.held is None:
      return "cannot be told"
    return "held" if self.held else "did not hold"


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
    run: a task's settings → its results.
    draw: the results of all tasks, in their order → a drawing (on matplotlib's
      `Figure`, made by `drawing.new`).
    judge: the same results → findings.
  """

  name: str
  title: str
  source: str
  claim: str
  config: Any
  quick: Any
  tasks: Callable[[Any], Sequence[Task]]
  run: Callable[[Settings, Tick], Results]
  draw: Callable[[Sequence[Done]], "mpl_figure.Figure"]
  judge: Callable[[Sequence[Done]], Sequence[Finding]]
  revision: int = 1


def select(done: Sequence[Done], **settings: Any) -> list[Done]:
  """Those of the tasks that have these settings, in their order."""
  return [
    task
    for task in done
    if all(task.settings.get(name) == value for name, value in settings.items())
  ]
