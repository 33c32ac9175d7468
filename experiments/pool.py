"""Computes independent tasks: in this process, in several, or on a Ray cluster."""

import collections
import contextlib
import functools
import multiprocessing
import os
import signal
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent import futures
from concurrent.futures import process as futures_process
from typing import Any, NamedTuple

from explorax.experiments import errors, processes

_POLL = 0.2  # Seconds between two checks of `stop`.
_use_one_thread = functools.cache(processes.use_one_thread)

Function = Callable[[Any], Any]
Submit = Callable[[Any], futures.Future]  # Starts a call with this argument.


class Task(NamedTuple):
  """A call of the function of all tasks."""

  name: str  # For messages.
  argument: Any  # Of the function; it can be pickled.


class Failure(NamedTuple):
  """Why a task failed."""

  problem: str  # The error and where it was raised, without a full stop.
  details: str = ""  # The traceback, if there is one.


class StoppedError(Exception):
  """A signal has stopped a task; raised by the function."""


# A task and what the function returned for it.
Outcomes = Iterator[tuple[Task, Any | Failure]]


def compute(
  function: Function,
  tasks: Sequence[Task],
  *,
  workers: int | None = None,
  ray_address: str | None = None,
  stop: Callable[[], bool] = lambda: False,
) -> Outcomes:
  """Yields each task with what the function returned for it, as soon as it is done.

  A task that fails, or whose process dies, stops no other. Each process computes on the
  CPU, with one thread.

  Args:
    function: at the top level of a module, which processes import; it returns no None.
    tasks: in the order in which they start.
    workers: number of tasks at a time; None: one per core. With one, this process
      computes them.
    ray_address: of a Ray cluster that computes them, each on a core.
    stop: checked between tasks, and often while processes compute; True ends these.

  Raises:
    SetUpError: if there is no Ray cluster at the address.
  """
  workers = min(workers or len(os.sched_getaffinity(0)), len(tasks))
  if ray_address is not None:
    submitting, workers = _on_ray(function, ray_address), len(tasks)
  else:
    submitting = _in_processes(function) if workers > 1 else _here(function)
  waiting, running = collections.deque(tasks), dict[futures.Future, Task]()
  with submitting as submit:
    while (waiting or running) and not stop():
      while waiting and len(running) < workers:
        task = waiting.popleft()
        running[submit(task.argument)] = task
      for future in futures.wait(running, _POLL, futures.FIRST_COMPLETED).done:
        task, outcome = running.pop(future), _outcome(future)
        if outcome is not None:
          yield task, outcome


def _outcome(future: futures.Future) -> Any | Failure | None:
  try:
    return future.result()
  except futures_process.BrokenProcessPool:
    return Failure("its process died, possibly out of memory")
  except Exception as error:  # Of Ray, or a result that cannot be pickled.
    return Failure(str(error).strip().splitlines()[-1].rstrip("."))


def _call(function: Function, argument: Any) -> Any | Failure | None:
  """What the function returns, or why it failed; None if a signal has stopped it."""
  try:
    return function(argument)
  except StoppedError:
    return None
  except (Exception, SystemExit) as error:  # A SystemExit would end the process.
    frame = traceback.extract_tb(error.__traceback__)[-1]
    text = f"{type(error).__name__}: {error}".rstrip(".: ")
    problem = f"{text} ({frame.filename}, line {frame.lineno})"
    return Failure(problem, traceback.format_exc())


@contextlib.contextmanager
def _here(function: Function) -> Iterator[Submit]:
  """Computes each task in this process when it is submitted."""

  def submit(argument: Any) -> futures.Future:
    future: futures.Future = futures.Future()
    future.set_result(_call(function, argument))
    return future

  yield submit


@contextlib.contextmanager
def _in_processes(function: Function) -> Iterator[Submit]:
  """Processes of this machine; only the task of one that dies is lost."""
  context = multiprocessing.get_context("spawn")  # JAX's threads survive no fork.
  calls: dict[futures.ProcessPoolExecutor, futures.Future] = {}  # The last one of each.

  def submit(argument: Any) -> futures.Future:
    for executor in [x for x, future in calls.items() if future.done()]:
      with contextlib.suppress(futures_process.BrokenProcessPool):
        calls[executor] = executor.submit(_call, function, argument)
        return calls[executor]
      del calls[executor]  # Its process has died.
    executor = futures.ProcessPoolExecutor(1, context, _begin)
    calls[executor] = executor.submit(_call, function, argument)
    return calls[executor]

  try:
    yield submit
  finally:
    for process in multiprocessing.active_children():
      process.terminate()  # A run writes a checkpoint first.
    for executor in calls:
      executor.shutdown()


def _begin() -> None:
  """Prepares a process, which ends with the one that started it."""
  signal.signal(signal.SIGINT, signal.SIG_IGN)  # A terminal sends it to all processes.
  threading.Thread(target=_end_with_parent, daemon=True).start()
  _use_one_thread()


def _end_with_parent() -> None:
  parent = multiprocessing.parent_process()
  assert parent is not None
  parent.join()
  os.kill(os.getpid(), signal.SIGTERM)


@contextlib.contextmanager
def _on_ray(function: Function, address: str) -> Iterator[Submit]:
  """Ray starts a task once more if its process or its machine died."""
  errors.check_installed("ray")
  with processes.connect(address, None):
    import ray  # Which may be absent.

    remote = ray.remote(_call_on_ray).options(num_cpus=1, max_retries=1)
    yield lambda argument: remote.remote(function, argument, os.getcwd()).future()


def _call_on_ray(function: Function, argument: Any, directory: str) -> Any:
  """`directory` is the caller's, for modules of the user's; it may not exist here."""
  _use_one_thread()
  if os.path.isdir(directory):
    os.chdir(directory)
  return _call(function, argument)
