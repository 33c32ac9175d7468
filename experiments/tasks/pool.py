"""Runs the missing ones of many tasks in parallel, and saves their results."""

import contextlib
import importlib.util
import math
import os
import signal
import time
from collections.abc import Callable, Sequence
from typing import Any

from explorax.experiments import ray_cluster, signals
from explorax.experiments.recording import console as console_lib
from explorax.experiments.recording import progress as progress_lib
from explorax.experiments.recording import summary
from explorax.experiments.tasks import attempts, flags, types
from explorax.experiments.tasks import worker as worker_lib

OnDone = Callable[[types.CompletedTask], None]


class Pool:
  """Runs tasks on Ray, or one at a time in this process.

  Use it as a context: Ctrl-C, SIGTERM and the time limit stop it between two steps, and
  finished results are kept. It starts Ray when it is first needed.

  Attributes:
    failed: number of failed tasks, over all calls of `compute`.
  """

  def __init__(
    self,
    console: console_lib.Console,
    *,
    workers: int | None = None,
    ray_address: str | None = None,
    task_minutes: float = math.inf,
    max_hours: float | None = None,
  ):
    """Starts the clock.

    Args:
      console: for progress.
      workers: number of tasks at a time; None: one per core, or one without Ray. With
        one, this process computes and Ray is not started.
      ray_address: of a Ray cluster; None: Ray is started on this machine.
      task_minutes: the time limit of an attempt.
      max_hours: after which the pool stops; None for no limit.

    Raises:
      SetUpError: if Ray is requested but missing, or does not answer.
    """
    self.failed = 0
    self._console = console
    self._address = ray_address
    self._time_limit = 60 * task_minutes
    hours = math.inf if max_hours is None else max_hours
    self._end = time.monotonic() + 3600 * hours
    if ray_address is not None:
      ray_cluster.check_installed()
      ray_cluster.check_reachable(ray_address)
    elif importlib.util.find_spec("ray") is None:
      if workers is not None and workers > 1:
        console.line("Ray (explorax[distributed]) is missing: one task at a time.")
      workers = 1
    else:
      ray_cluster.prepare()
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
    """0: all done; 1: a task failed; 3: the time limit; 130 or 143: a signal."""
    if self._request():
      return self._request.exit_code
    if self._is_time_up():
      return flags.TIME_UP
    return 1 if self.failed else 0

  def is_stopped(self) -> bool:
    """Whether a signal or the time limit has stopped it."""
    return self._request() or self._is_time_up()

  def compute(
    self,
    function: str,
    tasks: Sequence[types.Task],
    store: types.Store,
    *,
    on_done: OnDone = lambda done: None,
  ) -> list[types.CompletedTask | None]:
    """Returns the results of the tasks: the stored ones, and the missing ones computed.

    A failed attempt is repeated once. If it fails again, an error message is printed,
    its traceback is saved to a file, and the other tasks are computed.

    Args:
      function: `module:function`, called with the settings of a task, including its
        context, and a `TaskContext`.
      tasks: in the order of execution.
      store: of their results.
      on_done: called with each result once it is saved.

    Returns:
      One per task; None for a failed task, or if the pool was stopped.

    Raises:
      OutputError: if results cannot be saved.
      SetUpError: if Ray cannot be started.
    """
    done = [self._kept(task, store) for task in tasks]
    missing = {
      index: worker_lib.Assignment(
        function, {**task.settings, **task.context}, store.unfinished(task)
      )
      for index, task in enumerate(tasks)
      if done[index] is None
    }
    weights = {index: tasks[index].weight for index in missing}
    with contextlib.closing(progress_lib.TaskProgress(self._console, weights)) as shown:
      for again in (True, False):
        if not missing or self.is_stopped():
          break
        failed = {}
        with contextlib.closing(self._attempts(missing, store, shown.update)) as ended:
          for index, outcome in ended:
            if outcome.results is not None:
              done[index] = result = self._keep(tasks[index], outcome, store)
              on_done(result)
            else:
              failed[index] = missing[index]
              self._tell_failure(tasks[index], outcome, again, store)
            if outcome.results is not None or not again:
              shown.finish(index)
        missing = failed
    return done

  def _keep(
    self, task: types.Task, outcome: worker_lib.Outcome, store: types.Store
  ) -> types.CompletedTask:
    result = types.CompletedTask(
      task.name,
      task.settings,
      outcome.results or {},
      outcome.seconds,
      outcome.versions,
    )
    store.write(task, result)
    return result

  def _kept(self, task: types.Task, store: types.Store) -> types.CompletedTask | None:
    try:
      return store.read(task)
    except types.UnusableResultsError as error:
      self._console.line(f"{error}; {task.name} is computed again.")
      return None

  def _connect(self) -> int:
    """Connects to Ray, or starts it; returns the number of tasks at a time."""
    if self._num_workers is None:
      if self._address is None and (self._asked_workers or default_workers()) == 1:
        self._num_workers = 1
      else:
        began = time.monotonic()
        self._num_workers = self._stack.enter_context(
          ray_cluster.connect(self._address, self._asked_workers)
        )
        self._console.line(
          f"Ray is ready after {time.monotonic() - began:.0f} s: "
          f"{summary.count(self._num_workers, 'task')} at a time."
        )
    return self._num_workers

  def _attempts(
    self,
    assignments: attempts.Assignments,
    store: types.Store,
    on_progress: Callable[[attempts.Shares], None],
  ) -> attempts.Attempts:
    num_workers = self._connect()
    limits = attempts.Limits(self._time_limit, on_progress, self.is_stopped)
    if num_workers == 1 and self._address is None:
      return attempts.in_this_process(assignments, limits)
    # Other machines may not be able to run JAX's compiled programs.
    folder = (store.directory.path / "cache").absolute()
    cache = None if self._address else str(folder)
    return attempts.on_ray(assignments, limits, num_workers, cache)

  def _tell_failure(
    self,
    task: types.Task,
    outcome: worker_lib.Outcome,
    again: bool,
    store: types.Store,
  ) -> None:
    text = f"{task.name} failed: {outcome.problem}"
    if again:
      console_lib.print_error(f"{text}; trying again.")
      return
    self.failed += 1
    path = store.write_failure(task, outcome.problem, outcome.details)
    console_lib.print_error(f"{text} ({path}).")

  def _is_time_up(self) -> bool:
    return time.monotonic() >= self._end


def default_workers() -> int:
  """The number of cores."""
  return len(os.sched_getaffinity(0))


def _announce(number: signal.Signals) -> None:
  del number
  console_lib.alert(
    "stopping; finished results are kept (send it again to quit at once)"
  )
