"""Computes single tasks, in whatever process it is called."""

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
  """What came of an attempt at a task: plain data, which can cross processes.

  Attributes:
    results: None if the attempt failed.
    problem: what went wrong, a sentence without its full stop; '' if nothing did.
    details: a traceback; '' if there is none.
    seconds: that it took.
    versions: with which it was computed.
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
    settings: of the task, and its context.
    folder: where it may keep what it needs to be resumed.
  """

  function: str
  settings: types.Settings
  folder: pathlib.Path


def attempt(assignment: Assignment, report: Any) -> Outcome:
  """Computes a task; whatever goes wrong is in the outcome.

  Args:
    assignment: the task.
    report: told the share that is done.

  Raises:
    InterruptedTaskError: if `report` raises it.
  """
  start = time.monotonic()
  folder = assignment.folder if assignment.folder.parent.is_dir() else None
  context = types.TaskContext(report, folder)
  try:
    compute_task = named.attribute(assignment.function, "function")
    results = compute_task(assignment.settings, context)
  except (Exception, SystemExit) as error:  # A SystemExit would end the process.
    shutil.rmtree(assignment.folder, ignore_errors=True)
    problem = f"{type(error).__name__}: {str(error).rstrip('.')}{_place(error)}"
    return Outcome(None, problem, traceback.format_exc(), time.monotonic() - start)
  seconds = context.seconds_before + time.monotonic() - start
  return Outcome(results, seconds=seconds, versions=_versions())


def compute(
  assignment: Assignment, board: Any, task: int, directory: str, cache: str | None
) -> Outcome:
  """An attempt in a process of Ray's.

  Args:
    assignment: the task.
    board: the `Board`, an actor of Ray's.
    task: its index, there.
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
  """An actor of Ray's with the share that is done of each task under way."""

  def __init__(self):
    self._shares: dict[int, float] = {}

  def enter(self, task: int, share: float) -> None:
    self._shares[task] = share

  def leave(self, task: int) -> None:
    self._shares.pop(task, None)

  def shares(self) -> dict[int, float]:
    return self._shares


@functools.cache
def prepare(directory: str, cache: str | None) -> None:
  """Prepares a process of Ray's for its first task; it computes with one thread.

  Args:
    directory: the current one of the caller, for modules of the user's; one that does
      not exist here (on another machine) is left out.
    cache: a folder for what JAX compiles, shared by all processes; None for none.
  """
  # Ray's own handler raises SystemExit, which would count as the task's failure.
  signal.signal(signal.SIGTERM, signal.SIG_DFL)
  # JAX reads these when it is imported.
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
