"""Tasks and their results."""

import pathlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

from explorax.experiments import output

Settings = Mapping[str, Any]  # In JSON's types.
Results = dict[str, Any]  # numpy arrays, and values in JSON's types.


class Task(NamedTuple):
  """A part of a computation that runs as a whole, and whose results are saved.

  Attributes:
    name: unique among the tasks of a store; the path of its files, `dqn/seed0`.
    settings: everything that determines the results.
    weight: its expected duration, relative to the other tasks.
    context: further arguments of the function that do not determine the results, for
      example paths.
  """

  name: str
  settings: Settings
  weight: float = 1.0
  context: Mapping[str, Any] = {}


class CompletedTask(NamedTuple):
  """A task's results.

  Attributes:
    name: the task's.
    settings: the task's.
    results: by name.
    seconds: its duration, over all processes that ran it.
    versions: of Python, the packages and the machine (`versions.collect`).
  """

  name: str
  settings: Settings
  results: Results
  seconds: float
  versions: Mapping[str, Any]


class UnusableResultsError(Exception):
  """Stored results cannot be used; the message says why."""


class Store(Protocol):
  """Where the results of tasks are kept.

  Attributes:
    directory: of all results.
  """

  directory: output.RunDirectory

  def read(self, task: Task) -> CompletedTask | None:
    """The task's results; None if there are none.

    Raises:
      UnusableResultsError: if they cannot be used.
    """

  def write(self, task: Task, done: CompletedTask) -> None:
    """Saves a task's results, and forgets an earlier failure."""

  def write_failure(self, task: Task, problem: str, details: str) -> pathlib.Path:
    """Saves why the task failed; returns the file."""

  def unfinished(self, task: Task) -> pathlib.Path | None:
    """The folder for the state from which the task can resume; None for none."""


class InterruptedTaskError(BaseException):
  """Interrupts a running task; a BaseException, so that no task catches it.

  The message says why; it is empty if the whole computation stops.
  """


class TaskContext:
  """What a running task may use.

  Attributes:
    report: reports progress: `context.report(0.5)` when half of the task is done.
    folder: where the task may save its state to resume; the folder may not exist yet.
      It survives the end of the process and is removed when the task finishes or
      raises an error. None if no folder is available, for example on a machine of a
      cluster that does not share the file system.
    seconds_before: a task that resumes sets this to the seconds it already took.
  """

  def __init__(
    self,
    report: Callable[[float], None] = lambda share: None,
    folder: pathlib.Path | None = None,
  ):
    self.report = report
    self.folder = folder
    self.seconds_before = 0.0


# A task's function, given as `module:function`.
Function = Callable[[Settings, TaskContext], Results]
