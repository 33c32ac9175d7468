"""Attempts at tasks, on Ray or in this process."""

import os
import re
import time
from collections.abc import Callable, Generator, Mapping
from typing import Any, NamedTuple

from explorax.experiments import errors
from explorax.experiments.tasks import types, worker

_POLL = 0.2  # Seconds between two looks at the tasks under way.


Shares = dict[int, float]  # Of tasks under way.
Assignments = Mapping[int, worker.Assignment]  # By the indices of tasks.
# The index of a task, and what came of the attempt.
Attempts = Generator[tuple[int, worker.Outcome], None, None]


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

  @property
  def too_long(self) -> str:
    """What is said of an attempt that takes longer."""
    return f"it was not done in {self.seconds / 60:g} minutes, the limit for a task"


def in_this_process(assignments: Assignments, limits: Limits) -> Attempts:
  """One task after another; the limits take effect when a task ticks.

  Args:
    assignments: in the order in which they are tried.
    limits: see there.
  """
  for task, assignment in assignments.items():
    if limits.stop():
      return
    deadline = time.monotonic() + limits.seconds

    def report(share: float, task: int = task, deadline: float = deadline) -> None:
      limits.on_progress({task: share})
      if limits.stop():
        raise types.InterruptedTaskError
      if time.monotonic() > deadline:
        raise types.InterruptedTaskError(limits.too_long)

    try:
      outcome = worker.attempt(assignment, report)
    except types.InterruptedTaskError as error:
      if not str(error):
        return
      outcome = worker.Outcome(None, str(error))
    yield task, outcome


class _Running:
  """An attempt under way on Ray; `began` is None until its process computes."""

  def __init__(self, task: int):
    self.task = task
    self.began: float | None = None
    self.is_late = False


def on_ray(
  assignments: Assignments,
  limits: Limits,
  num_workers: int,
  cache: str | None,
) -> Attempts:
  """Tasks side by side, each a task of Ray's, whose processes are used again.

  Args:
    assignments: in the order in which they are tried.
    limits: see there.
    num_workers: at most so many side by side.
    cache: a folder for what JAX compiles; None for none.
  """
  import ray

  waiting = list(assignments.items())
  compute = ray.remote(worker.compute).options(num_cpus=1, max_retries=0)
  board: Any = ray.remote(worker.Board).options(num_cpus=0, max_restarts=-1).remote()
  running: dict[Any, _Running] = {}  # Ray's reference to the outcome → the attempt.
  try:
    while (waiting or running) and not limits.stop():
      while waiting and len(running) < num_workers:
        task, assignment = waiting.pop(0)
        call = compute.remote(assignment, board, task, os.getcwd(), cache)
        running[call] = _Running(task)
      for call in ray.wait([*running], timeout=_POLL)[0]:
        attempt = running.pop(call)
        outcome = _outcome(call)
        if attempt.is_late and outcome.results is None:
          outcome = worker.Outcome(None, limits.too_long)
        yield attempt.task, outcome
      shares = _shares(board)
      for call, attempt in running.items():
        if attempt.began is None and attempt.task in shares:
          attempt.began = time.monotonic()
        began = attempt.began
        if began is not None and time.monotonic() - began > limits.seconds:
          attempt.is_late = True
          ray.cancel(call, force=True)  # Ends its process.
      limits.on_progress({x.task: shares.get(x.task, 0.0) for x in running.values()})
  finally:
    for call in running:
      ray.cancel(call, force=True)
    ray.kill(board)


def _outcome(call: Any) -> worker.Outcome:
  """The outcome of a task of Ray's that has ended, in whatever way."""
  import ray

  try:
    return ray.get(call)
  except ray.exceptions.OutOfMemoryError:
    problem = "the machine ran out of memory"
  except ray.exceptions.WorkerCrashedError:
    problem = "its process ended, perhaps for want of memory"
  except ray.exceptions.RayError as error:
    # In colours, with the tracebacks of two processes; the last line says what it was.
    details = re.sub(r"\x1b\[[\d;]*m", "", str(error)).strip()
    last = (details or type(error).__name__).splitlines()[-1]
    problem = last.strip().rstrip(".")
    if "No module named 'explorax" in details:
      raise errors.OutputError(
        f"a machine of the cluster cannot compute tasks ({problem}); install explorax "
        "there."
      ) from error
    return worker.Outcome(None, problem, details)
  return worker.Outcome(None, problem)


def _shares(board: Any) -> Shares:
  """Task → the share that is done, of those under way."""
  import ray

  try:
    return ray.get(board.shares.remote(), timeout=10)
  except ray.exceptions.RayError:  # It is restarted.
    return {}
