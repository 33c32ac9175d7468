"""Does tasks side by side on Ray, each twice at most, and yields what comes of them."""

import collections
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from explorax.experiments import errors
from explorax.experiments.sweeps import perform, tasks

_POLL = 0.2  # Seconds between two looks at how far the tasks are.
_ATTEMPTS = 2
_MAX_FAILED_STARTS = 3  # Of workers, in a row.


class Report(NamedTuple):
  """What came of an attempt at a task.

  Attributes:
    task: its index.
    outcome: of the attempt.
    attempts: how many there were.
    again: whether there will be another one.
  """

  task: int
  outcome: perform.Outcome
  attempts: int
  again: bool


class _Running(NamedTuple):
  worker: Any
  task: int
  start: float


class Pool:
  """Workers on Ray, which are started as they are needed and replaced as they die.

  Attributes:
    size: how many there are side by side.
  """

  def __init__(
    self,
    size: int,
    start_worker: Callable[[], Any],
    *,
    time_limit: float,
    clock: Callable[[], float] = time.monotonic,
  ):
    """Starts nothing yet.

    Args:
      size: workers side by side, one at least.
      start_worker: starts one.
      time_limit: seconds that a task may take.
      clock: seconds.

    Raises:
      ValueError: for no worker.
    """
    if size < 1:
      raise ValueError(f"a pool has {size} workers; it needs 1 at least.")
    import ray

    self._ray = ray
    self.size = size
    self._start_worker = start_worker
    self._time_limit = time_limit
    self._clock = clock
    self._starting: dict[Any, Any] = {}  # What it will answer → the worker.
    self._idle: list[Any] = []
    self._running: dict[Any, _Running] = {}
    self._asked: dict[Any, int] = {}  # What will be a share → the task's index.
    self._failed_starts = 0

  def compute(
    self,
    todo: Sequence[tasks.Task],
    *,
    on_progress: Callable[[dict[int, float]], None],
    stop: Callable[[], bool],
  ) -> Iterator[Report]:
    """Does the tasks in their order.

    Args:
      todo: the tasks.
      on_progress: told now and then the share done of each task under way.
      stop: asked now and then whether to stop; tasks under way are then dropped.

    Raises:
      OutputError: if no worker can be started.
    """
    waiting = collections.deque(range(len(todo)))
    attempts = [0] * len(todo)
    shares: dict[int, float] = {}
    while (waiting or self._running) and not stop():
      self._assign(waiting, attempts, todo)
      for index, outcome in self._finished(shares):
        shares.pop(index, None)
        again = outcome.rows is None and attempts[index] < _ATTEMPTS
        if again:
          waiting.append(index)
        yield Report(index, outcome, attempts[index], again)
      on_progress(
        {run.task: shares.get(run.task, 0.0) for run in self._running.values()}
      )

  def close(self) -> None:
    """Ends the workers at once: what they compute is no longer wanted."""
    runs = [run.worker for run in self._running.values()]
    for worker in (*self._starting.values(), *self._idle, *runs):
      self._ray.kill(worker)

  def _assign(
    self,
    waiting: "collections.deque[int]",
    attempts: list[int],
    todo: Sequence[tasks.Task],
  ) -> None:
    while self._idle and waiting:
      worker, index = self._idle.pop(), waiting.popleft()
      attempts[index] += 1
      self._running[worker.perform.remote(todo[index])] = _Running(
        worker, index, self._clock()
      )
    there = len(self._starting) + len(self._running) + len(self._idle)
    for _ in range(min(self.size - there, len(waiting) - len(self._starting))):
      worker = self._start_worker()
      self._starting[worker.ready.remote()] = worker

  def _finished(
    self, shares: dict[int, float]
  ) -> Iterator[tuple[int, perform.Outcome]]:
    """The outcomes since the last look; waits a moment for one."""
    own = [*self._starting, *self._running]
    if not own:
      return
    ready, _ = self._ray.wait(own, timeout=_POLL)
    if self._asked:
      asked = [*self._asked]
      ready += self._ray.wait(asked, num_returns=len(asked), timeout=0)[0]
    for ref in ready:
      if ref in self._asked:
        self._take_share(ref, shares)
      elif ref in self._starting:
        self._take_worker(ref)
      elif ref in self._running:
        run = self._running.pop(ref)
        outcome = self._outcome(ref, run)
        yield run.task, outcome
    for ref, run in list(self._running.items()):
      if self._clock() - run.start > self._time_limit:
        del self._running[ref]
        self._ray.kill(run.worker)
        limit = f"{self._time_limit / 60:g} minutes"
        problem = f"it was not done in {limit}, the limit for a task"
        yield run.task, self._failure(problem, run)
    known = set(self._asked.values())
    for run in self._running.values():
      if run.task not in known:
        self._asked[run.worker.share.remote()] = run.task

  def _take_share(self, ref: Any, shares: dict[int, float]) -> None:
    index = self._asked.pop(ref)
    try:
      shares[index] = self._ray.get(ref)
    except self._ray.exceptions.RayError:
      shares.pop(index, None)  # Its worker has died; `_outcome` will tell.

  def _take_worker(self, ref: Any) -> None:
    worker = self._starting.pop(ref)
    try:
      self._ray.get(ref)
    except self._ray.exceptions.RayError as error:
      self._ray.kill(worker)
      self._failed_starts += 1
      if self._failed_starts >= _MAX_FAILED_STARTS:
        reason = str(error).strip().splitlines()[-1]
        raise errors.OutputError(
          f"Ray cannot start processes that do tasks ({reason}); is explorax installed "
          "on all machines of the cluster?"
        ) from error
      return
    self._failed_starts = 0
    self._idle.append(worker)

  def _outcome(self, ref: Any, run: _Running) -> perform.Outcome:
    ray = self._ray
    try:
      outcome = ray.get(ref)
    except ray.exceptions.RayError as error:
      ray.kill(run.worker)  # Its process has ended, or nobody knows what it is doing.
      if isinstance(error, ray.exceptions.OutOfMemoryError):
        return self._failure("the machine ran out of memory while it was done", run)
      if isinstance(error, ray.exceptions.RayActorError):
        return self._failure("its process ended, perhaps for want of memory", run)
      return self._failure(f"{type(error).__name__}: {error}", run)
    self._idle.append(run.worker)
    return outcome

  def _failure(self, problem: str, run: _Running) -> perform.Outcome:
    return perform.Outcome(None, problem, "", self._clock() - run.start, "")
