"""What a task is, and what comes of it."""

import pathlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

Settings = Mapping[str, Any]  # What JSON can hold.
Results = dict[str, Any]  # Arrays of numpy, and what JSON can hold.


class Task(NamedTuple):
  """A part of a computation that runs in one go, and whose results are kept.

  Attributes:
    name: unique among the tasks of a store; the path of its files, `dqn/seed0`.
    settings: all that decides the results.
    weight: how long it takes, compared with the other tasks.
    context: what the function is given beside the settings, such as paths, and what
      does not decide the results.
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
    seconds: that it took, in all processes that it was resumed in.
    versions: of Python, the packages and the machine (`versions.collect`).
  """

  name: str
  settings: Settings
  results: Results
  seconds: float
  versions: Mapping[str, Any]


class InterruptedTaskError(BaseException):
  """Ends a task that is no longer wanted; a BaseException, so that no task catches it.

  Its message says why; it is empty where the whole computation stops.
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


# A task's function: `module:function` names one.
Function = Callable[[Settings, TaskContext], Results]
