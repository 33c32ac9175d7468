"""Executes tasks in this process; see also `ray_execution`."""

import functools
import time
import traceback
from collections.abc import Callable, Generator, Mapping
from typing import Any, NamedTuple

from explorax.experiments import named, versions
from explorax.experiments.tasks import types

Shares = dict[int, float]  # Task index → the share done, of running tasks.
# The index of a task, and its results or why it failed.
Outcomes = Generator[tuple[int, types.CompletedTask | types.Failure], None, None]


class Work(NamedTuple):
  """Tasks to execute.

  Attributes:
    function: `module:function` of all tasks.
    tasks: by their indices, in the order of execution.
    on_progress: regularly called with the share done of each running task.
    stop: regularly called; True drops the running tasks.
  """

  function: str
  tasks: Mapping[int, types.Task]
  on_progress: Callable[[Shares], None]
  stop: Callable[[], bool]


def in_this_process(work: Work) -> Outcomes:
  """Executes one task after another; `stop` is checked when a task reports progress."""
  for index, task in work.tasks.items():
    if work.stop():
      return

    def report(share: float, index: int = index) -> None:
      work.on_progress({index: share})
      if work.stop():
        raise types.InterruptedTaskError

    try:
      outcome = execute(work.function, task, report)
    except types.InterruptedTaskError:
      return
    yield index, outcome


def execute(
  function: str, task: types.Task, report: Callable[[float], None]
) -> types.CompletedTask | types.Failure:
  """Executes a task; raises only an InterruptedTaskError, if `report` raises it."""
  start = time.monotonic()
  try:
    compute = named.attribute(function, "function")
    settings = {**task.settings, **task.context}
    results = compute(settings, types.TaskContext(report))
  except (Exception, SystemExit) as error:  # A SystemExit would end the process.
    problem = f"{type(error).__name__}: {str(error).rstrip('.')}{_place(error)}"
    return types.Failure(problem, traceback.format_exc())
  seconds = time.monotonic() - start
  return types.CompletedTask(task.name, task.settings, results, seconds, _versions())


@functools.cache
def _versions() -> dict[str, Any]:
  return versions.collect()


def _place(error: BaseException) -> str:
  """` (my_agents.py, line 12)`: where it was raised."""
  frames = traceback.extract_tb(error.__traceback__)
  return f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""
