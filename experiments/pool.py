"""Computes independent tasks: in this process, in several, or on a Ray cluster."""

import collections
import functools
import multiprocessing
import os
import signal
import traceback
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import connection as connection_lib
from typing import Any, NamedTuple

from explorax.experiments import processes

_POLL = 0.2  # Seconds between two checks of `stop`.

Function = Callable[[Any], Any]
Stop = Callable[[], bool]


class Task(NamedTuple):
  """A call of the function of all tasks.

  Attributes:
    name: for messages.
    argument: of the function; it can be pickled.
  """

  name: str
  argument: Any


class Failure(NamedTuple):
  """Why a task failed.

  Attributes:
    problem: the error and where it was raised, without a full stop.
    details: the traceback; '' if there is none.
  """

  problem: str
  details: str = ""


_DIED = Failure("its process died, possibly out of memory")


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
  stop: Stop = lambda: False,
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
  if ray_address is not None:
    return _on_ray(function, tasks, ray_address, stop)
  workers = min(workers or len(os.sched_getaffinity(0)), len(tasks))
  if workers > 1:
    return _in_processes(function, tasks, workers, stop)
  return _in_this_process(function, tasks, stop)


def _in_this_process(function: Function, tasks: Sequence[Task], stop: Stop) -> Outcomes:
  for task in tasks:
    outcome = None if stop() else _call(function, task.argument)
    if outcome is None:
      return
    yield task, outcome


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


class _Process:
  """A process that computes one task after another.

  Attributes:
    connection: readable when the task is done or the process has died.
    task: the last one.
  """

  task: Task

  def __init__(self, function: Function):
    context = multiprocessing.get_context("spawn")  # JAX's threads survive no fork.
    self.connection, other = context.Pipe()
    self._process = context.Process(target=_serve, args=(function, other))
    self._process.start()
    other.close()

  def start(self, task: Task) -> None:
    self.task = task
    self.connection.send(task.argument)

  def outcome(self) -> Any | Failure | None:
    try:
      return self.connection.recv()
    except (EOFError, ConnectionError):
      return _DIED

  def close(self) -> None:
    """Ends the process; a run in it writes a checkpoint first."""
    self.connection.close()
    self._process.terminate()
    self._process.join()


def _serve(function: Function, connection: Any) -> None:
  """The life of a process: it ends with the one that started it, or is ended by it."""
  signal.signal(signal.SIGINT, signal.SIG_IGN)  # A terminal sends it to all processes.
  _use_one_core()
  while True:
    try:
      connection.send(_call(function, connection.recv()))
    except (EOFError, ConnectionError):
      return


@functools.cache
def _use_one_core() -> None:
  os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
  processes.use_one_thread()


def _in_processes(
  function: Function, tasks: Sequence[Task], workers: int, stop: Stop
) -> Outcomes:
  waiting, idle = collections.deque(tasks), list[_Process]()
  running: dict[Any, _Process] = {}
  try:
    while (waiting or running) and not stop():
      while waiting and len(running) < workers:
        process = idle.pop() if idle else _Process(function)
        process.start(waiting.popleft())
        running[process.connection] = process
      for connection in connection_lib.wait([*running], _POLL):
        process = running.pop(connection)
        outcome = process.outcome()
        if outcome is _DIED:
          process.close()
        else:
          idle.append(process)
        if outcome is not None:
          yield process.task, outcome
  finally:
    for process in (*running.values(), *idle):
      process.close()


def _on_ray(
  function: Function, tasks: Sequence[Task], address: str, stop: Stop
) -> Outcomes:
  """Ray starts a task once more if its process or its machine died."""
  processes.check_installed()
  with processes.connect(address, None):
    import ray  # Which may be absent.

    remote = ray.remote(_call_in_ray).options(num_cpus=1, max_retries=1)
    directory = os.getcwd()
    running = {
      remote.remote(function, task.argument, directory): task for task in tasks
    }
    try:
      while running and not stop():
        for call in ray.wait([*running], timeout=_POLL)[0]:
          try:
            outcome = ray.get(call)
          except ray.exceptions.RayError as error:
            outcome = Failure(str(error).strip().splitlines()[-1].rstrip("."))
          yield running.pop(call), outcome
    finally:
      for call in running:
        ray.cancel(call, force=True)


def _call_in_ray(function: Function, argument: Any, directory: str) -> Any:
  """`directory` is the caller's, for modules of the user's; it may not exist here."""
  _use_one_core()
  if os.path.isdir(directory):
    os.chdir(directory)
  return _call(function, argument)
