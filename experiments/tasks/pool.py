"""Runs the missing ones of many tasks in parallel, and saves their results."""

import contextlib
import importlib.util
import os
import signal
import time
from collections.abc import Sequence
from typing import Any

from explorax.experiments import processes, recording, signals
from explorax.experiments import tasks as tasks_lib
from explorax.experiments.recording import console as console_lib
from explorax.experiments.recording import summary
from explorax.experiments.tasks import execution, types


class Pool:
  """Runs tasks on Ray, or one at a time in this process.

  Use it as a context: Ctrl-C and SIGTERM stop it between two steps, and finished
  results are kept. It starts Ray when it is first needed.

  Attributes:
    failed: number of failed tasks, over all calls of `compute`.
  """

  def __init__(
    self,
    console: console_lib.Console,
    *,
    workers: int | None = None,
    ray_address: str | None = None,
  ):
    """Checks that Ray is there if it is requested.

    Args:
      console: for progress.
      workers: number of tasks at a time; None: one per core, or one without Ray. With
        one, this process computes and Ray is not started.
      ray_address: of a Ray cluster; None: Ray is started on this machine.

    Raises:
      SetUpError: if Ray is requested but missing, or does not answer.
    """
    self.failed = 0
    self._console = console
    self._address = ray_address
    if ray_address is not None:
      processes.check_installed()
      processes.check_reachable(ray_address)
    elif importlib.util.find_spec("ray") is None:
      if workers is not None and workers > 1:
        console.line("Ray (explorax[distributed]) is missing: one task at a time.")
      workers = 1
    else:
      processes.prepare()
    self._asked_workers = workers
    self._num_workers: int | None = None  # Known once Ray is connected.
    self._stack = contextlib.ExitStack()
    self._request = signals.StopRequest()

  def __enter__(self) -> "Pool":
    self._request = self._stack.enter_context(signals.stop_on_signals(_announce))
    return self

  def __exit__(self, *exception: Any) -> None:
    self._stack.close()

  @property
  def exit_code(self) -> int:
    """0: all done; 1: a task failed; 130, 143 or 129: a signal."""
    if self._request():
      return self._request.exit_code
    return 1 if self.failed else 0

  def is_stopped(self) -> bool:
    """Whether a signal has stopped it."""
    return self._request()

  def compute(
    self, function: str, tasks: Sequence[types.Task], store: types.Store
  ) -> list[types.CompletedTask | None]:
    """Returns the results of the tasks: the stored ones, and the missing ones computed.

    If a task fails, an error message is printed, its traceback is saved to a file, and
    the other tasks are computed.

    Args:
      function: `module:function`, called with the settings of a task, including its
        context, and a `TaskContext`.
      tasks: in the order of execution.
      store: of their results.

    Returns:
      One per task; None for a failed task, or if the pool was stopped.

    Raises:
      OutputError: if results cannot be saved.
      SetUpError: if Ray cannot be started.
    """
    done = [store.read(task) for task in tasks]
    missing = {i: task for i, task in enumerate(tasks) if done[i] is None}
    if not missing or self.is_stopped():
      return done
    weights = {index: task.weight for index, task in missing.items()}
    with contextlib.closing(
      recording.progress.TaskProgress(self._console, weights)
    ) as progress:
      work = execution.Work(function, missing, progress.update, self.is_stopped)
      with contextlib.closing(self._execute(work)) as outcomes:
        for index, outcome in outcomes:
          if isinstance(outcome, types.Failure):
            self._report_failure(tasks[index], outcome, store)
          else:
            store.write(tasks[index], outcome)
            done[index] = outcome
          progress.finish(index)
    return done

  def _connect(self) -> int:
    """Connects to Ray, or starts it; returns the number of tasks at a time."""
    if self._num_workers is None:
      if self._address is None and (self._asked_workers or default_workers()) == 1:
        self._num_workers = 1
      else:
        began = time.monotonic()
        self._num_workers = self._stack.enter_context(
          processes.connect(self._address, self._asked_workers)
        )
        self._console.line(
          f"Ray is ready after {time.monotonic() - began:.0f} s: "
          f"{summary.count(self._num_workers, 'task')} at a time."
        )
    return self._num_workers

  def _execute(self, work: execution.Work) -> execution.Outcomes:
    num_workers = self._connect()
    if num_workers == 1 and self._address is None:
      return execution.in_this_process(work)
    return tasks_lib.ray_execution.execute(work, num_workers)

  def _report_failure(
    self, task: types.Task, failure: types.Failure, store: types.Store
  ) -> None:
    self.failed += 1
    path = store.write_failure(task, failure)
    console_lib.print_error(f"{task.name} failed: {failure.problem} ({path}).")


def default_workers() -> int:
  """The number of cores."""
  return len(os.sched_getaffinity(0))


def _announce(number: signal.Signals) -> None:
  del number
  console_lib.alert(
    "stopping; finished results are kept (send it again to quit at once)"
  )
