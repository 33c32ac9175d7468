"""Runs single tasks, in any process."""

import functools
import os
import pathlib
import shutil
import signal
import time
import traceback
from collections.abc import Mapping
from typing import Any, NamedTuple

from explorax.experiments import named, threads, versions
from explorax.experiments.tasks import types

_PERIOD = 0.2  # Seconds between two reports of an attempt.


class Outcome(NamedTuple):
  """The outcome of an attempt at a task, as plain data that can be pickled.

  Attributes:
    results: None if the attempt failed.
    problem: the error, a sentence without its full stop; '' if there was none.
    details: a traceback; '' if there was none.
    seconds: its duration.
    versions: of the process that computed it.
  """

  results: types.Results | None
  problem: str = ""
  details: str = ""
  seconds: float = 0.0
  versions: Mapping[str, Any] = {}


class Assignment(NamedTuple):
  """A task for a worker.

  Attributes:
    function: `module:function`.
    settings: of the task, including its context.
    folder: for the state from which the task can resume; None for none.
  """

  function: str
  settings: types.Settings
  folder: pathlib.Path | None


def attempt(assignment: Assignment, report: Any) -> Outcome:
  """Runs a task; any error is stored in the outcome.

  Args:
    assignment: the task.
    report: called with the share that is done.

  Raises:
    InterruptedTaskError: if `report` raises it.
  """
  start = time.monotonic()
  folder = assignment.folder
  if folder is not None and not folder.parent.is_dir():
    folder = None
  context = types.TaskContext(report, folder)
  try:
    compute_task = named.attribute(assignment.function, "function")
    results = compute_task(assignment.settings, context)
  except (Exception, SystemExit) as error:  # A SystemExit would end the process.
    if folder is not None:
      shutil.rmtree(folder, ignore_errors=True)
    problem = f"{type(error).__name__}: {str(error).rstrip('.')}{_place(error)}"
    return Outcome(None, problem, traceback.format_exc(), time.monotonic() - start)
  seconds = context.seconds_before + time.monotonic() - start
  return Outcome(results, seconds=seconds, versions=_versions())


def compute(
  assignment: Assignment, board: Any, task: int, directory: str, cache: str | None
) -> Outcome:
  """Runs an attempt in a Ray worker.

  Args:
    assignment: the task.
    board: the `Board`, a Ray actor.
    task: its index on the board.
    directory: see `prepare`.
    cache: see `prepare`.
  """
  prepare(directory, cache)
  board.enter.remote(task, 0.0)
  reported = time.monotonic()

  def report(share: float) -> None:
    nonlocal reported
    if time.monotonic() - reported > _PERIOD:
      board.enter.remote(task, share)
      reported = time.monotonic()

  try:
    return attempt(assignment, report)
  finally:
    board.leave.remote(task)


class Board:
  """A Ray actor that stores the share done of each running task."""

  def __init__(self) -> None:
    self._shares: dict[int, float] = {}

  def enter(self, task: int, share: float) -> None:
    self._shares[task] = share

  def leave(self, task: int) -> None:
    self._shares.pop(task, None)

  def shares(self) -> dict[int, float]:
    return self._shares


@functools.cache
def prepare(directory: str, cache: str | None) -> None:
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


@functools.cache
def _versions() -> dict[str, Any]:
  return versions.collect()


def _place(error: BaseException) -> str:
  """` (my_agents.py, line 12)`: where it was raised."""
  frames = traceback.extract_tb(error.__traceback__)
  return f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""
