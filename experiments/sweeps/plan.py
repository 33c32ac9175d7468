"""A sweep from the command line: what there is to do, doing it, and what is said."""

import contextlib
import math
import os
import shlex
import signal
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from explorax.environments import bsuite_mnist, bsuite_sweeps
from explorax.experiments import errors, output, ray_cluster, signals, versions
from explorax.experiments.recording import console as console_lib
from explorax.experiments.recording import progress as progress_lib
from explorax.experiments.recording import summary
from explorax.experiments.reports import read
from explorax.experiments.sweeps import agents as agents_lib
from explorax.experiments.sweeps import (
  grids,
  index,
  lock,
  pool,
  seeds,
  selection,
  tasks,
  tuning,
  unfinished,
  worker,
)

_TIME_UP = 3  # The exit code.
_FIRST_TASKS = 3  # After so many it says how long the others will take.


class Plan:
  """A sweep: which tasks there are, and which of them are to be done."""

  def __init__(
    self, given: dict[str, Any], argv: list[str], stack: contextlib.ExitStack
  ):
    """Checks all that was asked for, and looks up what was done before.

    Args:
      given: the flags.
      argv: the command line.
      stack: whose end lets go of the directory.
    """
    self._given = given
    self._console = console_lib.Console(sys.stdout)
    if not given["sweep"]:
      raise errors.SetUpError("--sweep is missing; --list shows the names.")
    ids = selection.select(given["sweep"])
    names = _names(given)
    agents = agents_lib.identities(names)
    self._ids, self._names = ids, names
    self._seeds = seeds.of(given)
    ray_cluster.check_installed()
    ray_cluster.check_reachable(given["ray_address"])
    self._directory = _directory(given["output"])
    stack.enter_context(lock.hold(self._directory.path))
    self._store = tasks.Store(self._directory, agents, given["episodes"])
    self._store.check()
    self._index = index.Index(
      self._directory,
      self._store,
      command=shlex.join(["python", "-m", "explorax.experiments.sweep", *argv]),
    )
    everything = [
      tasks.Task(agent, bsuite_id, seed, given["episodes"])
      for seed in self._seeds
      for bsuite_id in ids
      for agent in agents
    ]
    possible = self._without_data(everything)
    self._possible = possible
    self._todo = [task for task in possible if not self._index.done(task)]
    todo = set(self._todo)
    for task in possible:
      if task not in todo:  # It was killed between keeping results and this.
        unfinished.drop(self._directory.path, task)
    before = len(possible) - len(self._todo)
    go_on = sum(unfinished.exists(self._directory.path, task) for task in self._todo)
    self._console.line(
      f"{summary.count(len(possible), 'task')} ("
      f"{summary.count(len(agents), 'agent')}, {summary.count(len(ids), 'id')}, "
      f"{summary.count(len(self._seeds), 'seed')}), into {self._directory.path}"
      + (f"; {before} of them done before" if before else "")
      + (f"; {go_on} of them go on from checkpoints" if go_on else "")
    )

  def _without_data(self, everything: list[tasks.Task]) -> list[tasks.Task]:
    """All but those that lack MNIST, if it is not there; says so once.

    What was done while it was there is done.
    """
    lacking = [
      task
      for task in everything
      if bsuite_sweeps.needs_mnist(task.bsuite_id) and not self._index.done(task)
    ]
    self._mnist_dir = os.path.abspath(
      os.path.expanduser(self._given["mnist_dir"] or bsuite_mnist.DIRECTORY)
    )
    problem = bsuite_mnist.problem(self._mnist_dir) if lacking else ""
    if not problem:
      return everything
    left_out = set(lacking)
    kept = [task for task in everything if task not in left_out]
    if not kept:
      raise errors.SetUpError(f"the mnist experiments cannot run: {problem}.")
    for task in lacking:
      self._index.missing(task, problem)
    ids = {task.bsuite_id for task in lacking}
    self._console.line(
      f"{summary.count(len(ids), 'mnist id')} left out: {problem} (--mnist_dir "
      "names another folder)."
    )
    return kept

  def run(self) -> int:
    """Does the tasks, and returns the exit code."""
    if not self._todo:
      self._index.write()
      self._write_table()
      self._console.line("all of them are done.")
      self._tell_best()
      return 0
    hours = self._given["max_hours"]
    end = math.inf if hours is None else time.monotonic() + 3600 * hours
    failed = 0
    with contextlib.ExitStack() as stack:
      stack.callback(unfinished.drop_all, self._directory.path)
      workers = self._connect(stack)
      # After Ray, which would take these signals for itself.
      request = stack.enter_context(signals.stop_on_signals(_announce))
      # After Ray as well, which forks, and jax's threads would not survive that.
      self._store.versions = versions.collect()
      self._index.write()

      def stop() -> bool:
        return request() or time.monotonic() >= end

      try:
        failed = self._compute(workers, stop)
      finally:
        self._index.write()
        self._write_table()
      if request():
        console_lib.complain("stopped; the same call goes on where it was.")
        return request.exit_code
    self._console.line(f"results in {self._directory.path / 'results.csv'}")
    if failed:
      console_lib.complain(
        f"{summary.count(failed, 'task')} failed (sweep.json has the tracebacks); the "
        "others are kept, and the same call tries those again."
      )
    left = sum(not self._index.done(task) for task in self._todo) - failed
    if left:
      console_lib.complain(
        f"the time is up, with {summary.count(left, 'task')} to go; the same call goes "
        "on where it was."
      )
      return _TIME_UP
    self._tell_best()
    return 1 if failed else 0

  def _connect(self, stack: contextlib.ExitStack) -> pool.Pool:
    """Ray, and on it the processes for the tasks."""
    given = self._given
    address = given["ray_address"]
    start = time.monotonic()
    size = stack.enter_context(ray_cluster.connect(address, given["workers"]))
    size = min(size, len(self._todo))
    self._console.line(
      f"Ray is there after {time.monotonic() - start:.0f} s; "
      f"{summary.count(size, 'task')} side by side"
    )
    # What jax has compiled may not run on other machines.
    cache = None if address else str((self._directory.path / "cache").absolute())
    place = unfinished.prepare(self._directory, given["checkpoint_minutes"])
    workers = pool.Pool(
      size,
      lambda: worker.start_worker(os.getcwd(), cache, self._mnist_dir, place),
      time_limit=60 * given["task_minutes"],
    )
    stack.callback(workers.close)
    return workers

  def _compute(self, workers: pool.Pool, stop: Callable[[], bool]) -> int:
    """Does what is to be done; returns how many tasks failed."""
    todo = self._todo
    weights = [task.weight for task in todo]
    progress = progress_lib.TaskProgress(self._console, weights, workers.size)
    begun = told = False
    done = failed = 0

    def on_progress(shares: dict[int, float]) -> None:
      nonlocal progress, begun, told
      if not begun:  # Processes were starting: its clock begins now.
        progress = progress_lib.TaskProgress(self._console, weights, workers.size)
        begun = bool(shares)
      progress.update(shares)
      left = progress.left()
      if not told and left is not None and _FIRST_TASKS <= done < len(todo):
        told = True
        progress.close()
        self._console.line(
          f"{done} tasks are done; the other {len(todo) - done} will take about "
          f"{summary.duration(left)}"
        )
      self._index.keep_up()

    with contextlib.ExitStack() as stack:
      stack.callback(lambda: progress.close())
      for report in workers.compute(todo, on_progress=on_progress, stop=stop):
        task, outcome = todo[report.task], report.outcome
        if outcome.rows is None:
          progress.close()
          more = "it is tried again" if report.again else "it is left"
          console_lib.complain(f"{task} failed: {outcome.problem}; {more}.")
          if report.again:
            continue
          failed += 1
          self._index.failed(task, outcome.problem, outcome.details, report.attempts)
        else:
          self._store.write(task, outcome.rows, outcome.seconds, outcome.runner)
          self._index.done(task)
          unfinished.drop(self._directory.path, task)
        progress.finish(report.task)
        done += 1
    return failed

  def _tell_best(self) -> None:
    """Of a tuning: the best settings, on the console and in tuning.csv."""
    if not self._given["sweep_config"]:
      return
    score = self._given["score"] or "bsuite"
    logs: tuning.AllLogs = {}
    if any(self._index.done(task) for task in self._possible):
      logs = read.read(self._directory.path).logs
    rows = tuning.compare(logs, self._names, self._ids, self._seeds, score)
    table = tuning.to_csv(rows, score)
    self._directory.write("tuning.csv", lambda file: file.write(table))
    self._console.line("\n" + tuning.tell(rows, score))

  def _write_table(self) -> None:
    table = self._store.table()
    self._directory.write("results.csv", lambda file: file.write(table))


def _names(given: dict[str, Any]) -> Sequence[str]:
  """Of the agents, each with its settings where there is a grid of them."""
  if not given["agents"]:
    raise errors.SetUpError(
      "--agents is missing; `python -m explorax.experiments.run --list_agents` shows "
      "the names."
    )
  names = agents_lib.split(given["agents"])
  config = given["sweep_config"]
  if config:
    return grids.variants(grids.load(config), config, names)
  if given["score"]:
    raise errors.SetUpError(
      f"--score={given['score']} is for --sweep_config; leave it out, or add that one."
    )
  return names


def _directory(path: str) -> output.RunDirectory:
  try:
    return output.RunDirectory.create(path)
  except errors.OutputError as error:
    raise errors.SetUpError(str(error)) from error


def _announce(number: signal.Signals) -> None:
  del number
  console_lib.alert("stopping; what is done is kept (again: at once)")
