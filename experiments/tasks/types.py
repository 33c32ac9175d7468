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
    seconds: its duration.
    versions: of Python, the packages and the machine (`versions.collect`).
  """

  name: str
  settings: Settings
  results: Results
  seconds: float
  versions: Mapping[str, Any]


class Failure(NamedTuple):
  """Why a task failed.

  Attributes:
    problem: the error, a sentence without its full stop.
    details: a traceback; '' if there is none.
  """

  problem: str
  details: str = ""


class Store(Protocol):
  """Where the results of tasks are kept.

  Attributes:
    directory: of all results.
  """

  directory: output.RunDirectory

  def read(self, task: Task) -> CompletedTask | None:
    """The task's results; None if there are none that can be used."""

  def write(self, task: Task, done: CompletedTask) -> None:
    """Saves a task's results, and removes an earlier failure."""

  def write_failure(self, task: Task, failure: Failure) -> pathlib.Path:
    """Saves why the task failed; returns the file."""


class InterruptedTaskError(BaseException):
  """Interrupts a running task; a BaseException, so that no task catches it."""


class TaskContext(NamedTuple):
  """What a running task may use.

  Attributes:
    report: reports progress: `context.report(0.5)` when half of the task is done.
  """

  report: Callable[[float], None] = lambda share: None
