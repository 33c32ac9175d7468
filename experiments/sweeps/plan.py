"""A sweep from the command line: chooses the tasks, runs them, and reports."""

import contextlib
import os
import shlex
import sys
from collections.abc import Sequence
from typing import Any

from explorax.environments import bsuite_mnist, bsuite_sweeps
from explorax.experiments import errors, output
from explorax.experiments.recording import console as console_lib
from explorax.experiments.recording import summary
from explorax.experiments.reports import read, results
from explorax.experiments.sweeps import agents as agents_lib
from explorax.experiments.sweeps import perform, records, selection, tuning
from explorax.experiments.tasks import flags, pool, types


class Plan:
  """A sweep: its tasks, and which of them are missing."""

  def __init__(
    self, given: dict[str, Any], argv: Sequence[str], stack: contextlib.ExitStack
  ):
    """Checks the request, and reads the results so far.

    Args:
      given: the flags.
      argv: the command line.
      stack: unlocks the directory when it is closed.

    Raises:
      SetUpError: if a requested name does not exist, or settings are invalid.
    """
    self._given = given
    self._console = console_lib.Console(sys.stdout)
    self._ids = selection.ids(given["sweep"])
    if given["steps"] is not None:
      raise errors.SetUpError(
        f"--steps={given['steps']} is for --envs; bsuite's tasks end by --episodes."
      )
    self._names = selection.names(given)
    self._seeds = selection.seeds(given)
    self._pool = pool.Pool(self._console, **flags.pool_arguments(given))
    identities = {name: agents_lib.identity(name) for name in self._names}
    directory = make_directory(given["output"])
    stack.callback(directory.unlock)
    self._directory = directory
    self._store = records.store(directory, given["episodes"])
    command = shlex.join(["python", "-m", "explorax.experiments.sweep", *argv])
    self._records = records.Records(directory, self._store, identities, command)
    mnist_dir = os.path.expanduser(given["mnist_dir"] or bsuite_mnist.DIRECTORY)
    context = {
      "mnist_dir": os.path.abspath(mnist_dir),
      "checkpoint_minutes": given["checkpoint_minutes"],
    }
    self._tasks = {
      run: records.task(run, identities[run.agent], given["episodes"], context)
      for run in (
        records.Run(agent, bsuite_id, seed)
        for seed in self._seeds
        for bsuite_id in self._ids
        for agent in self._names
      )
    }
    self._leave_out_without_data(context["mnist_dir"])

  def run(self) -> int:
    """Runs the tasks, and returns the exit code."""
    tasks = list(self._tasks.values())
    self._tell_what_there_is(tasks)
    self._enter(tasks)
    self._records.write_index()
    with self._pool as workers:
      try:
        workers.compute(perform.FUNCTION, tasks, self._store, on_done=self._records.add)
      finally:
        self._enter(tasks)
        self._records.write()
      code, failed = workers.exit_code, workers.failed
    left = sum(run not in self._records.done for run in self._tasks) - failed
    tell_missing(failed, left, code)
    if left:
      return code
    self._console.line(f"Results: {self._directory.path / 'results.csv'}")
    if self._given["sweep_config"]:
      self._tell_best()
    elif self._records.done:
      self._tell_scores()
    return 1 if failed else 0

  def _leave_out_without_data(self, mnist_dir: str) -> None:
    """Drops the tasks that need MNIST's missing files, with one message.

    Results from when the files existed remain valid.
    """
    lacking = {
      run: task
      for run, task in self._tasks.items()
      if bsuite_sweeps.needs_mnist(run.bsuite_id) and run not in self._records.done
    }
    problem = bsuite_mnist.problem(mnist_dir) if lacking else ""
    if not problem:
      return
    if len(lacking) == len(self._tasks):
      raise errors.SetUpError(f"the mnist experiments cannot run: {problem}.")
    for run, task in lacking.items():
      self._records.ask(task, problem)
      del self._tasks[run]
    ids = {run.bsuite_id for run in lacking}
    self._console.line(
      f"{summary.count(len(ids), 'mnist id')} left out: {problem} (--mnist_dir names "
      "another folder)."
    )

  def _tell_what_there_is(self, tasks: Sequence[types.Task]) -> None:
    done = sum(run in self._records.done for run in self._tasks)
    resumed = sum(any(self._store.unfinished(task).glob("step_*")) for task in tasks)
    parts = [
      f"{summary.count(len(tasks), 'task')} ("
      f"{summary.count(len(self._names), 'agent')}, "
      f"{summary.count(len(self._ids), 'id')}, "
      f"{summary.count(len(self._seeds), 'seed')}), into {self._directory.path}"
    ]
    parts += [f"{done} already done"] if done else []
    parts += [f"{resumed} resume from checkpoints"] if resumed else []
    self._console.line("; ".join(parts))

  def _enter(self, tasks: Sequence[types.Task]) -> None:
    for task in tasks:
      self._records.ask(task)

  def _tell_best(self) -> None:
    """Tuning: prints the best settings and writes tuning.csv."""
    score = self._given["score"] or "bsuite"
    logs: tuning.AllLogs = {
      run: read.log(done.results["rows"], bsuite_sweeps.experiment(run.bsuite_id))
      for run, done in self._records.done.items()
    }
    rows = tuning.compare(logs, self._names, self._ids, self._seeds, score)
    table = records.to_csv(tuning.table(rows, score))
    self._directory.write("tuning.csv", lambda file: file.write(table))
    self._console.line("\n" + tuning.tell(rows, score))

  def _tell_scores(self) -> None:
    """Prints bsuite's score of each agent, and the command of the report."""
    path = self._directory.path
    found = results.compute(read.read(path))
    for experiment in found.experiments:
      cells = results.of_agents(found.by_experiment, experiment, found.agents)
      part = results.num_ids(experiment, cells)
      self._console.line(f"\n{experiment}, score" + (f" of {part}" if part else ""))
      rows = [
        [agent, summary.count(len(cell.seeds), "seed"), *cell.words()]
        for agent, cell in cells.items()
      ]
      self._console.line("\n".join(summary.aligned(rows)))
    self._console.line(
      f"\nThe report: python -m explorax.experiments.report {shlex.quote(str(path))}"
    )


def tell_missing(failed: int, left: int, code: int) -> None:
  """Says how many tasks have failed, and how many are left.

  Args:
    failed: number of tasks.
    left: number of tasks that were not computed.
    code: the pool's exit code.
  """
  if failed:
    console_lib.print_error(
      f"{summary.count(failed, 'task')} failed; the results of the others are kept. "
      "Run the same command again to retry the failed ones."
    )
  if left:
    reason = "reached --max_hours" if code == flags.TIME_UP else "stopped"
    console_lib.print_error(
      f"{reason} with {summary.count(left, 'task')} left; run the same command again "
      "to resume."
    )


def make_directory(path: str) -> output.RunDirectory:
  """The directory of a sweep, locked."""
  try:
    return output.RunDirectory.create(path, is_locked=True)
  except errors.OutputError as error:
    raise errors.SetUpError(str(error)) from error
