"""Attempts at tasks, on Ray's workers or in this process."""

import collections
import contextlib
import functools
import os
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, NamedTuple

from explorax.experiments import errors
from explorax.experiments.tasks import types, worker

MAX_ATTEMPTS = 2
_POLL = 0.2  # Seconds between two looks at the workers.
_PATIENCE = 30.0  # Seconds for a process that was lost to end.


class Attempt(NamedTuple):
  """What came of an attempt.

  Attributes:
    task: its index.
    outcome: of the attempt.
    again: whether there will be another one.
  """

  task: int
  outcome: worker.Outcome
  again: bool


class Queue:
  """The tasks that wait for an attempt; a failed one waits once more, at the end."""

  def __init__(self, num_tasks: int):
    self._waiting = collections.deque(range(num_tasks))
    self._counts = [0] * num_tasks

  def __bool__(self) -> bool:
    return bool(self._waiting)

  def next(self) -> int:
    """The index of the task to be tried next."""
    task = self._waiting.popleft()
    self._counts[task] += 1
    return task

  def take(self, task: int, outcome: worker.Outcome) -> Attempt:
    """The outcome of the task's attempt, which decides whether it waits again."""
    again = outcome.results is None and self._counts[task] < MAX_ATTEMPTS
    if again:
      self._waiting.append(task)
    return Attempt(task, outcome, again)


Shares = dict[int, float]  # Of tasks under way.


class Limits(NamedTuple):
  """What bounds attempts, and who watches them.

  Attributes:
    seconds: that an attempt may take.
    on_progress: told now and then the share done of each task under way.
    stop: asked now and then whether to stop; tasks under way are dropped.
  """

  seconds: float
  on_progress: Callable[[Shares], None]
  stop: Callable[[], bool]


def in_this_process(
  assignments: Sequence[worker.Assignment], limits: Limits
) -> Generator[Attempt, None, None]:
  """One task after another; the limits take effect when a task ticks.

  Args:
    assignments: in the order in which they are tried.
    limits: see there.
  """
  queue = Queue(len(assignments))
  while queue and not limits.stop():
    task, deadline = queue.next(), time.monotonic() + limits.seconds

    def report(share: float, task: int = task, deadline: float = deadline) -> None:
      limits.on_progress({task: share})
      if limits.stop():
        raise types.InterruptedTaskError
      if time.monotonic() > deadline:
        raise types.InterruptedTaskError(_too_long(limits.seconds))

    try:
      outcome = worker.attempt(assignments[task], report)
    except types.InterruptedTaskError as error:
      if not str(error):
        return
      outcome = worker.Outcome(None, str(error))
    yield queue.take(task, outcome)


def on_ray(
  assignments: Sequence[worker.Assignment],
  limits: Limits,
  num_workers: int,
  cache: str | None,
) -> Generator[Attempt, None, None]:
  """Tasks side by side, on workers that end with the iteration.

  Args:
    assignments: in the order in which they are tried.
    limits: see there.
    num_workers: at most so many side by side.
    cache: a folder for what JAX compiles; None for none.

  Raises:
    OutputError: if no worker can be started.
  """
  workers = _Workers(min(num_workers, len(assignments)), cache, limits.seconds)
  queue = Queue(len(assignments))
  try:
    while (queue or workers.shares) and not limits.stop():
      while queue and workers.idle:
        task = queue.next()
        workers.begin(task, assignments[task])
      for task, outcome in workers.look():
        yield queue.take(task, outcome)
      limits.on_progress(dict(workers.shares))
  finally:
    workers.close()


class _Slot:
  """A worker, whose process Ray restarts.

  Attributes:
    actor: the worker.
    process: which of the actor's processes answered last; '' if none has.
    ended: the process that is to answer no more: it was killed, which takes a moment.
    since: when it was ended.
  """

  def __init__(self, actor: Any):
    self.actor = actor
    self.process = self.ended = ""
    self.since = time.monotonic()

  def replace(self, actor: Any) -> None:
    """Another actor takes the place of one that Ray does not restart any more."""
    self.actor, self.process = actor, ""

  def end(self) -> None:
    """From now on, another process has to answer."""
    self.ended, self.since = self.process, time.monotonic()


class _Running(NamedTuple):
  task: int
  slot: _Slot
  began: float


class _Workers:
  """Workers on Ray: starting, idle or at a task.

  Attributes:
    idle: those that are ready and have no task.
    shares: task → the share that is done, of all tasks under way.
  """

  def __init__(self, number: int, cache: str | None, time_limit: float):
    import ray

    self._ray = ray
    self._time_limit = time_limit
    self._start = functools.partial(worker.start, os.getcwd(), cache)
    self._all = [_Slot(self._start()) for _ in range(number)]
    self.idle: list[_Slot] = []
    self.shares: Shares = {}
    self._starting: dict[Any, _Slot] = {}  # Call of `share` → its worker.
    self._running: dict[Any, _Running] = {}  # Call of `compute` → the task.
    self._asked: dict[Any, int] = {}  # Call of `share` → the task.
    for slot in self._all:
      self._await(slot)

  def begin(self, task: int, assignment: worker.Assignment) -> None:
    """Gives the task to an idle worker."""
    slot = self.idle.pop()
    call = slot.actor.compute.remote(assignment)
    self._running[call] = _Running(task, slot, time.monotonic())
    self.shares[task] = 0.0

  def look(self) -> Iterator[tuple[int, worker.Outcome]]:
    """Waits a moment; yields the attempts that have ended, and updates the shares."""
    calls = [*self._running, *self._starting]
    ready, _ = self._ray.wait(calls, num_returns=1, timeout=_POLL)
    for call in ready:
      if call in self._starting:
        self._take_worker(call)
      else:
        yield self._end(call)
    self._take_shares()
    for call, (task, slot, began) in list(self._running.items()):
      if time.monotonic() - began > self._time_limit:
        del self._running[call], self.shares[task]
        self._ray.kill(slot.actor, no_restart=False)
        slot.end()
        self._await(slot)
        yield task, worker.Outcome(None, _too_long(self._time_limit))

  def close(self) -> None:
    """Ends the workers at once: what they compute is no longer wanted."""
    for slot in self._all:
      self._ray.kill(slot.actor)

  def _await(self, slot: _Slot) -> None:
    """Has the worker's start, or its restart by Ray, awaited."""
    self._starting[slot.actor.share.remote()] = slot

  def _take_worker(self, call: Any) -> None:
    slot = self._starting.pop(call)
    try:
      slot.process, _ = self._ray.get(call)
      if slot.process != slot.ended:
        self.idle.append(slot)
        return
      if time.monotonic() - slot.since > _PATIENCE:  # It only was out of reach.
        self._ray.kill(slot.actor, no_restart=False)
        slot.end()
    except self._ray.exceptions.ActorDiedError as error:  # It is not restarted.
      if not slot.process:
        reason = str(error).strip().splitlines()[-1].partition(". ")[0].rstrip(".")
        raise errors.OutputError(
          f"Ray cannot start worker processes ({reason}); is explorax installed on all "
          "machines of the cluster?"
        ) from error
      slot.replace(self._start())
    except self._ray.exceptions.RayError:
      pass  # It is not there yet.
    time.sleep(_POLL)
    self._await(slot)

  def _end(self, call: Any) -> tuple[int, worker.Outcome]:
    """The task of a call that has ended, and its outcome."""
    task, slot, _ = self._running.pop(call)
    del self.shares[task]
    exceptions = self._ray.exceptions
    try:
      outcome = self._ray.get(call)
    except (exceptions.RayActorError, exceptions.OutOfMemoryError) as error:
      slot.end()
      self._await(slot)
      problem = "its process ended, perhaps for want of memory"
      if isinstance(error, exceptions.OutOfMemoryError):
        problem = "the machine ran out of memory"
      return task, worker.Outcome(None, problem)
    except exceptions.RayError as error:
      outcome = worker.Outcome(None, f"{type(error).__name__}: {error}")
    self.idle.append(slot)
    return task, outcome

  def _take_shares(self) -> None:
    """Takes the answers that have come, and asks again."""
    answered: list[Any] = []
    if self._asked:
      number = len(self._asked)
      answered, _ = self._ray.wait([*self._asked], num_returns=number, timeout=0)
    for call in answered:
      task = self._asked.pop(call)
      with contextlib.suppress(self._ray.exceptions.RayError):  # `_end` will tell.
        _, share = self._ray.get(call)
        if task in self.shares:
          self.shares[task] = share
    for task, slot, _ in self._running.values():
      if task not in self._asked.values():
        self._asked[slot.actor.share.remote()] = task


def _too_long(time_limit: float) -> str:
  return f"it was not done in {time_limit / 60:g} minutes, the limit for a task"
