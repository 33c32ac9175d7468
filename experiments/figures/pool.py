"""Computes tasks in processes side by side, each with its share of the processor."""

import concurrent.futures
import contextlib
import multiprocessing
import os
import queue
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import process
from typing import Any, NamedTuple

from explorax.experiments import threads
from explorax.experiments.figures import registry, types

_POLL = 0.2  # Seconds between two looks at how far the tasks are.


class Outcome(NamedTuple):
  """What came of a task.

  Attributes:
    task: its index.
    done: its results; None if it failed.
    problem: what went wrong, a sentence; '' if nothing did.
  """

  task: int
  done: types.Done | None
  problem: str


def compute(
  figure_name: str,
  tasks: Sequence[types.Task],
  *,
  workers: int,
  on_progress: Callable[[dict[int, float]], None],
  stop: Callable[[], bool],
) -> Generator[Outcome, None, None]:
  """Computes a figure's tasks, and yields each outcome as it comes.

  Args:
    figure_name: as `registry.find` takes it.
    tasks: to be computed, the long ones first.
    workers: processes at most; where one is allowed, this process computes.
    on_progress: told now and then the share done of each task under way.
    stop: asked now and then whether to stop; tasks under way are then dropped. In
      this process a task is under way until it ticks.
  """
  if workers == 1:
    yield from _alone(figure_name, tasks, on_progress, stop)
    return
  # Forked children would inherit jax's threads in an unknown state.
  context = multiprocessing.get_context("spawn")
  ticks = context.Queue()
  executor = concurrent.futures.ProcessPoolExecutor(
    min(workers, len(tasks)),
    mp_context=context,
    initializer=_begin_worker,
    initargs=(ticks,),
  )
  with _no_ctrl_c():  # Ctrl-C goes to the whole group; this process decides.
    waiting = {
      executor.submit(_compute, figure_name, index, task.settings): index
      for index, task in enumerate(tasks)
    }
  shares: dict[int, float] = {}
  try:
    while waiting and not stop():
      finished, _ = concurrent.futures.wait(
        waiting, timeout=_POLL, return_when=concurrent.futures.FIRST_COMPLETED
      )
      _drain(ticks, shares)
      for future in finished:
        index = waiting.pop(future)
        shares.pop(index, None)
        yield _outcome(index, future)
      on_progress(shares)
  finally:
    _end(executor)


def _alone(
  figure_name: str,
  tasks: Sequence[types.Task],
  on_progress: Callable[[dict[int, float]], None],
  stop: Callable[[], bool],
) -> Generator[Outcome, None, None]:
  figure = registry.find(figure_name)
  for index, task in enumerate(tasks):

    def tick(share: float, index: int = index) -> None:
      on_progress({index: share})
      if stop():
        raise types.InterruptedTaskError

    if stop():
      return
    try:
      done, problem = _attempt(figure, task.settings, tick)
    except types.InterruptedTaskError:
      return
    yield Outcome(index, done, problem)


def _attempt(
  figure: types.Figure, settings: types.Settings, tick: types.Tick
) -> tuple[types.Done | None, str]:
  """The results, or what went wrong: plain data, which can cross processes."""
  start = time.monotonic()
  try:
    results = figure.run(settings, tick)
  except types.InterruptedTaskError:
    raise
  except Exception as error:
    return None, f"{type(error).__name__}: {str(error).removesuffix('.')}"
  return types.Done(settings, results, time.monotonic() - start), ""


_ticks: Any = None  # In a worker: where it tells of its progress.


def _begin_worker(ticks: Any) -> None:
  global _ticks
  _ticks = ticks
  threads.use_one_thread()


def _compute(
  figure_name: str, index: int, settings: types.Settings
) -> tuple[types.Done | None, str]:
  figure = registry.find(figure_name)
  return _attempt(figure, settings, lambda share: _ticks.put((index, share)))


@contextlib.contextmanager
def _no_ctrl_c() -> Iterator[None]:
  """Processes that are started in here never see Ctrl-C."""
  if threading.current_thread() is not threading.main_thread():
    yield  # Python lets only the main thread say so.
    return
  before = signal.signal(signal.SIGINT, signal.SIG_IGN)
  try:
    yield
  finally:
    signal.signal(signal.SIGINT, before)


def _drain(ticks: Any, shares: dict[int, float]) -> None:
  while True:
    try:
      index, share = ticks.get_nowait()
    except queue.Empty:
      return
    shares[index] = share


def _outcome(index: int, future: "concurrent.futures.Future[Any]") -> Outcome:
  try:
    return Outcome(index, *future.result())
  except process.BrokenProcessPool:
    problem = "a process was ended from outside, perhaps for want of memory"
    return Outcome(index, None, problem)
  except Exception as error:
    return Outcome(index, None, f"{type(error).__name__}: {error}")


def _end(executor: concurrent.futures.ProcessPoolExecutor) -> None:
  """Ends the workers at once: what they compute is no longer wanted."""
  workers = list((executor._processes or {}).values())
  executor.shutdown(wait=False, cancel_futures=True)
  for worker in workers:
    worker.terminate()


def default_workers() -> int:
  """As many as there are processors; one where there is an accelerator."""
  import jax

  return 1 if jax.default_backend() != "cpu" else os.cpu_count() or 1
