"""Attempts at tasks, on Ray or in this process."""

import os
import re
import time
from collections.abc import Callable, Generator, Mapping
from typing import Any, NamedTuple

from explorax.experiments import errors
from explorax.experiments.tasks import types, worker

_POLL = 0.2  # Seconds between two checks of the running tasks.


Shares = dict[int, float]  # Task index → the share done, of running tasks.
Assignments = Mapping[int, worker.Assignment]  # By the indices of tasks.
# The index of a task, and the outcome of the attempt.
Attempts = Generator[tuple[int, worker.Outcome], None, None]


class Limits(NamedTuple):
  """Limits and callbacks of attempts.

  Attributes:
    seconds: the time limit of an attempt.
    on_progress: regularly called with the share done of each running task.
    stop: regularly called; True drops the running tasks.
  """

  seconds: float
  on_progress: Callable[[Shares], None]
  stop: Callable[[], bool]

  @property
  def too_long(self) -> str:
    """The error message for an attempt over the time limit."""
    return f"it exceeded the limit of {self.seconds / 60:g} minutes for a task"


def in_this_process(assignments: Assignments, limits: Limits) -> Attempts:
  """Runs one task after another; limits are checked when a task reports progress.

  Args:
    assignments: in the order of execution.
    limits: see `Limits`.
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
  """A running attempt on Ray; `began` is None until its process starts to compute."""

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
  """Runs tasks in parallel as Ray tasks, which share worker processes.

  Args:
    assignments: in the order of execution.
    limits: see `Limits`.
    num_workers: the largest number of tasks at a time.
    cache: a folder for JAX's compilation cache; None for none.
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
  """The outcome of a finished Ray task, however it ended."""
  import ray

  try:
    return ray.get(call)
  except ray.exceptions.OutOfMemoryError:
    problem = "the machine ran out of memory"
  except ray.exceptions.WorkerCrashedError:
    problem = "its process died, possibly out of memory"
  except ray.exceptions.RayError as error:
    # Ray's text has colours and two tracebacks; its last line is the error.
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
  """Task → the share done, of running tasks."""
  import ray

  try:
    return ray.get(board.shares.remote(), timeout=10)
  except ray.exceptions.RayError:  # Ray restarts it.
    return {}
