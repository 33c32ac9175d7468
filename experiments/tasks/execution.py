"""Executes tasks, on Ray or in this process."""

import functools
import os
import re
import signal
import time
import traceback
from collections.abc import Callable, Generator, Mapping
from typing import Any, NamedTuple

from explorax.experiments import named, threads, versions
from explorax.experiments.tasks import types

_POLL = 0.2  # Seconds between two reports of a task, and two checks of all.

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
      outcome = _execute(work.function, task, report)
    except types.InterruptedTaskError:
      return
    yield index, outcome


def on_ray(work: Work, num_workers: int, cache: str | None) -> Outcomes:
  """Executes tasks in parallel as Ray tasks, which share worker processes.

  Ray starts a task once more if its process died.

  Args:
    work: the tasks.
    num_workers: the largest number of tasks at a time.
    cache: a folder for JAX's compilation cache; None for none.
  """
  import ray

  waiting = list(work.tasks.items())
  execute = ray.remote(_execute_on_ray).options(num_cpus=1, max_retries=1)
  always = {"max_restarts": -1, "max_task_retries": -1}
  board: Any = ray.remote(_Board).options(num_cpus=0, **always).remote()
  running: dict[Any, int] = {}  # Ray's reference to the outcome → the task's index.
  try:
    while (waiting or running) and not work.stop():
      while waiting and len(running) < num_workers:
        index, task = waiting.pop(0)
        call = execute.remote(work.function, task, board, index, os.getcwd(), cache)
        running[call] = index
      for call in ray.wait([*running], timeout=_POLL)[0]:
        yield running.pop(call), _outcome(call)
      shares = ray.get(board.get.remote())
      work.on_progress({index: shares.get(index, 0.0) for index in running.values()})
  finally:
    for call in running:
      ray.cancel(call, force=True)
    ray.kill(board)


@functools.cache
def prepare_worker(directory: str, cache: str | None) -> None:
  """Prepares a Ray worker for its first task; it computes with one thread.

  Args:
    directory: the caller's current directory, for the user's modules; ignored if it
      does not exist here (on another machine).
    cache: a folder for JAX's compilation cache, shared by all processes; None for none.
  """
  # Ray's own handler raises SystemExit, which would count as the task's failure.
  signal.signal(signal.SIGTERM, signal.SIG_DFL)
  # JAX reads these at its import.
  os.environ.update(JAX_PLATFORMS="cpu", TF_CPP_MIN_LOG_LEVEL="3")
  if cache is not None and not os.environ.get("JAX_COMPILATION_CACHE_DIR"):
    os.environ.update(
      JAX_COMPILATION_CACHE_DIR=cache,
      JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS="0",
      JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES="-1",
    )
  threads.use_one_thread()
  if os.path.isdir(directory):
    os.chdir(directory)


class _Board:
  """A Ray actor that holds the share done of each task."""

  def __init__(self) -> None:
    self._shares: Shares = {}

  def set(self, index: int, share: float) -> None:
    self._shares[index] = share

  def get(self) -> Shares:
    return self._shares


def _execute(
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


def _execute_on_ray(
  function: str,
  task: types.Task,
  board: Any,
  index: int,
  directory: str,
  cache: str | None,
) -> types.CompletedTask | types.Failure:
  """Executes a task in a Ray worker, which reports the share done to the board."""
  prepare_worker(directory, cache)
  reported = time.monotonic()

  def report(share: float) -> None:
    nonlocal reported
    if time.monotonic() - reported > _POLL:
      board.set.remote(index, share)
      reported = time.monotonic()

  return _execute(function, task, report)


def _outcome(call: Any) -> types.CompletedTask | types.Failure:
  """The outcome of a Ray task, however it ended."""
  import ray

  try:
    return ray.get(call)
  except ray.exceptions.OutOfMemoryError:
    return types.Failure("the machine ran out of memory")
  except ray.exceptions.WorkerCrashedError:
    return types.Failure("its process died, possibly out of memory")
  except ray.exceptions.RayError as error:
    # Ray's text has colours and two tracebacks; its last line is the error.
    details = re.sub(r"\x1b\[[\d;]*m", "", str(error)).strip()
    last = (details or type(error).__name__).splitlines()[-1]
    return types.Failure(last.strip().rstrip("."), details)


@functools.cache
def _versions() -> dict[str, Any]:
  return versions.collect()


def _place(error: BaseException) -> str:
  """` (my_agents.py, line 12)`: where it was raised."""
  frames = traceback.extract_tb(error.__traceback__)
  return f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""
