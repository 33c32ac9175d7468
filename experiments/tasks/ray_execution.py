"""Executes tasks on Ray."""

import functools
import os
import re
import signal
import time
from typing import Any

import ray

from explorax.experiments import processes
from explorax.experiments.tasks import execution, types

_POLL = 0.2  # Seconds between two reports of a task, and two checks of all.


def execute(work: execution.Work, num_workers: int) -> execution.Outcomes:
  """Executes tasks in parallel as Ray tasks, which share worker processes.

  Ray starts a task once more if its process died.

  Args:
    work: the tasks.
    num_workers: the largest number of tasks at a time.
  """
  waiting = list(work.tasks.items())
  remote = ray.remote(_execute).options(num_cpus=1, max_retries=1)
  always = {"max_restarts": -1, "max_task_retries": -1}
  board: Any = ray.remote(_Board).options(num_cpus=0, **always).remote()
  running: dict[Any, int] = {}  # Ray's reference to the outcome → the task's index.
  try:
    while (waiting or running) and not work.stop():
      while waiting and len(running) < num_workers:
        index, task = waiting.pop(0)
        call = remote.remote(work.function, task, board, index, os.getcwd())
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
def prepare_worker(directory: str) -> None:
  """Prepares a Ray worker for its first task; it computes with one thread.

  Args:
    directory: the caller's current directory, for the user's modules; ignored if it
      does not exist here (on another machine).
  """
  # Ray's own handler raises SystemExit, which would count as the task's failure.
  signal.signal(signal.SIGTERM, signal.SIG_DFL)
  # JAX reads these at its import.
  os.environ.update(JAX_PLATFORMS="cpu", TF_CPP_MIN_LOG_LEVEL="3")
  processes.use_one_thread()
  if os.path.isdir(directory):
    os.chdir(directory)


class _Board:
  """A Ray actor that holds the share done of each task."""

  def __init__(self) -> None:
    self._shares: execution.Shares = {}

  def set(self, index: int, share: float) -> None:
    self._shares[index] = share

  def get(self) -> execution.Shares:
    return self._shares


def _execute(
  function: str, task: types.Task, board: Any, index: int, directory: str
) -> types.CompletedTask | types.Failure:
  """Executes a task in a Ray worker, which reports the share done to the board."""
  prepare_worker(directory)
  reported = time.monotonic()

  def report(share: float) -> None:
    nonlocal reported
    if time.monotonic() - reported > _POLL:
      board.set.remote(index, share)
      reported = time.monotonic()

  return execution.execute(function, task, report)


def _outcome(call: Any) -> types.CompletedTask | types.Failure:
  """The outcome of a Ray task, however it ended."""
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
