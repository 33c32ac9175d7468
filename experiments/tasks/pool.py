"""Computes what is missing of many tasks, side by side, and keeps what is done."""

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
from explorax.experiments.tasks import store as store_lib
from explorax.experiments.tasks import worker as worker_lib

OnDone = Callable[[types.CompletedTask], None]


class Pool:
  """Where tasks are computed: on Ray, or in this process if that is one at a time.

  A context: Ctrl-C, SIGTERM and the end of the time stop it between two steps, and what
  is done is kept. Ray is started when it is first needed.

  Attributes:
    failed: how many tasks have failed, in all calls of `compute`.
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
      workers: tasks side by side; None: as many as there are cores, one without Ray.
        With one, nothing is started: this process computes.
      ray_address: of a Ray cluster; None: Ray is started on this machine.
      task_minutes: an attempt at a task that takes longer has failed.
      max_hours: after which the pool stops; None for no limit.

    Raises:
      SetUpError: if Ray is asked for and missing, or does not answer.
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
        console.line("Ray is missing (explorax[distributed]): one task after another.")
      workers = 1
    else:
      ray_cluster.prepare()
    self._asked_workers = workers
    self._num_workers: int | None = None  # Once Ray is there.
    self._stack = contextlib.ExitStack()
    self._request = signals.StopRequest()

  def __enter__(self) -> "Pool":
    self._request = self._stack.enter_context(signals.stop_on_signals(_announce))
    return self

  def __exit__(self, *exception: Any) -> None:
    self._stack.close()

  @property
  def exit_code(self) -> int:
    """0 if all is done, 1 if a task failed, 3 if the time is up, 130 or 143."""
    if self._request():
      return self._request.exit_code
    if self._is_time_up():
      return flags.TIME_UP
    return 1 if self.failed else 0

  def is_stopped(self) -> bool:
    """Whether a signal or the end of the time has stopped it."""
    return self._request() or self._is_time_up()

  def compute(
    self,
    function: str,
    tasks: Sequence[types.Task],
    store: store_lib.Store,
    *,
    on_done: OnDone = lambda done: None,
  ) -> list[types.CompletedTask | None]:
    """The results of the tasks, those that the store has and those that are missing.

    A failed attempt is repeated once. Then the task has failed: a sentence says so, its
    traceback is kept in a file, and the others are computed.

    Args:
      function: `module:function`, called with the settings of a task, its context
        among them, and a `TaskContext`.
      tasks: in the order in which they are begun.
      store: of their results.
      on_done: called with each result as it is kept.

    Returns:
      One for each task; None where it failed or the pool was stopped.

    Raises:
      OutputError: if results cannot be kept.
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
    self, task: types.Task, outcome: worker_lib.Outcome, store: store_lib.Store
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

  def _kept(
    self, task: types.Task, store: store_lib.Store
  ) -> types.CompletedTask | None:
    try:
      return store.read(task)
    except store_lib.UnusableResultsError as error:
      self._console.line(f"{error}; {task.name} is computed again.")
      return None

  def _connect(self) -> int:
    """How many tasks fit side by side, on a Ray that is started if need be."""
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
          f"{summary.count(self._num_workers, 'task')} side by side."
        )
    return self._num_workers

  def _attempts(
    self,
    assignments: attempts.Assignments,
    store: store_lib.Store,
    on_progress: Callable[[attempts.Shares], None],
  ) -> attempts.Attempts:
    num_workers = self._connect()
    limits = attempts.Limits(self._time_limit, on_progress, self.is_stopped)
    if num_workers == 1 and self._address is None:
      return attempts.in_this_process(assignments, limits)
    # What JAX has compiled may not run on other machines.
    folder = (store.directory.path / "cache").absolute()
    cache = None if self._address else str(folder)
    return attempts.on_ray(assignments, limits, num_workers, cache)

  def _tell_failure(
    self,
    task: types.Task,
    outcome: worker_lib.Outcome,
    again: bool,
    store: store_lib.Store,
  ) -> None:
    text = f"{task.name} failed: {outcome.problem}"
    if again:
      console_lib.print_error(f"{text}; it is tried again.")
      return
    self.failed += 1
    path = store.write_failure(task, outcome.problem, outcome.details)
    console_lib.print_error(f"{text} ({path}).")

  def _is_time_up(self) -> bool:
    return time.monotonic() >= self._end


def default_workers() -> int:
  """As many as there are cores."""
  return len(os.sched_getaffinity(0))


def _announce(number: signal.Signals) -> None:
  del number
  console_lib.alert("stopping; what is done is kept (again: at once)")
