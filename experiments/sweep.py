"""Sweeps agents over bsuite: `python -m explorax.experiments.sweep --help`.

Every agent on every id with every seed is a task, which Ray runs on a core of its own.
What is done is kept, and not done again by another call.
"""

import contextlib
import math
import os
import shlex
import socket
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from explorax.experiments import command as command_lib
from explorax.experiments import console as console_lib
from explorax.experiments import errors, flag_table

if TYPE_CHECKING:
  import signal

  from explorax.experiments import output
  from explorax.experiments.sweeps import pool, tasks

_TIME_UP = 3  # The exit code.
_FIRST_TASKS = 3  # After so many it says how long the others will take.
_INDEX_PERIOD = 10.0  # Seconds between two writings of the index.

_INTRODUCTION = """\
Sweeps agents over bsuite's experiments, on all cores or on a Ray cluster.

  python -m explorax.experiments.sweep --agents=NAME[,NAME...] --sweep=NAME[,NAME...]

Examples
  Three agents on all of Deep Sea, three seeds each:
    python -m explorax.experiments.sweep --agents=tdu,bootstrapped_dqn,dqn_ez \\
      --sweep=deep_sea --seeds=3 --output=results/deep_sea

  To try it out, fifty episodes of one id of each experiment:
    python -m explorax.experiments.sweep --agents=dqn --sweep=TESTING --episodes=50

  The best β of QEX, of those that paper 4 tried, on seeds of its own:
    python -m explorax.experiments.sweep --agents=qex --sweep=deep_sea/0 --seeds=3 \\
      --sweep_config=table3 --output=results/tuning

  An agent of your own, and one of bsuite's, beside ours:
    python -m explorax.experiments.sweep \\
      --agents=dqn,my_agents:make,bsuite.baselines.random:default_agent \\
      --sweep=catch/0,bandit/0
"""

_OUTRO = """\
OUTPUT holds results.csv (one table of all), bsuite_csv/AGENT/seedSEED (for bsuite's own
csv_load) and sweep.json (settings, versions, and which tasks are missing and why).
The same call again does what is missing; a task of ours that was interrupted goes on
from its newest checkpoint, to the bit, one of your own agents begins anew. More seeds,
ids and agents may be added.
Exit codes: 0 done, 1 a task failed, 2 could not start, 3 --max_hours were up,
130 Ctrl-C, 143 SIGTERM.
"""

_TUNING_SEED = 1_000_000  # The first one of a tuning; those before it are for others.
_MAX_SEED = _TUNING_SEED - 1

FLAGS = {
  "What to run": (
    flag_table.Flag(
      "agents",
      "=NAME,...",
      None,
      "Agents (run --list_agents), with settings if need be: dqn@n_step=3@beta=0;\n"
      "or your own as module:function, called with\n"
      "(observation_spec, action_spec, seed=...): anything that has bsuite's\n"
      "select_action(timestep) and update(timestep, action, new_timestep).",
    ),
    flag_table.Flag(
      "sweep",
      "=NAME,...",
      None,
      "bsuite's sweeps, experiments and tags (--list), or ids such as deep_sea/0.",
    ),
    flag_table.Flag(
      "seeds",
      "=INT",
      1,
      "How many seeds, --seed being the first. [1]",
      parser=flag_table.WholeNumber(1, command_lib.MAX_SEEDS),
    ),
    flag_table.Flag(
      "seed",
      "=INT",
      0,
      "The first seed. [0]",
      parser=flag_table.WholeNumber(0, _MAX_SEED),
    ),
    flag_table.Flag(
      "episodes",
      "=INT",
      None,
      "Caps the episodes of each task, for trying things out. [bsuite's own numbers]",
      parser=flag_table.WholeNumber(1),
    ),
    flag_table.Flag(
      "mnist_dir",
      "=DIR",
      None,
      "Where the two files of MNIST's training set are; without them the mnist\n"
      "experiments are left out. [/tmp/mnist]",
    ),
  ),
  "To choose an agent's settings": (
    flag_table.Flag(
      "sweep_config",
      "=GRID",
      None,
      "Tries all of an agent's settings in a grid and names the best: table3 (paper\n"
      "4's), or a .toml or .json file with [agent] and setting = [value, ...]. Its\n"
      "seeds are 1,000,000 + --seed and on, which no other sweep takes.",
    ),
    flag_table.Flag(
      "score",
      "=NAME",
      None,
      "What is best: bsuite's score, the return (of an episode, averaged over all\n"
      "of them) or the final_return (over the last half). [bsuite]",
      choices=("bsuite", "return", "final_return"),
    ),
  ),
  "How": (
    flag_table.Flag(
      "workers",
      "=INT",
      None,
      "Tasks side by side. [one for each core]",
      parser=flag_table.WholeNumber(1),
    ),
    flag_table.Flag(
      "ray_address",
      "=ADDRESS",
      None,
      "Of a Ray cluster, all of whose machines have explorax installed. [Ray is\n"
      "started on this machine]",
    ),
    flag_table.Flag(
      "task_minutes",
      "=NUMBER",
      1440.0,
      "A task that takes longer has failed. [1440]",
      parser=flag_table.PositiveNumber(),
    ),
    flag_table.Flag(
      "checkpoint_minutes",
      "=NUMBER",
      5.0,
      "Between two checkpoints of a task. [5]",
      parser=flag_table.PositiveNumber(),
    ),
    flag_table.Flag(
      "max_hours",
      "=NUMBER",
      None,
      "Ends after so long: what is done is kept, of tasks under way their newest\n"
      "checkpoints, and the same call goes on. [no limit]",
      parser=flag_table.PositiveNumber(),
    ),
    flag_table.Flag(
      "output",
      "=DIR",
      "sweep",
      "Where results go. [sweep in the current directory]",
    ),
  ),
  "To look around": (
    flag_table.Flag("list", "", False, "Shows bsuite's sweeps and tags and exits."),
    flag_table.Flag("help", "", False, "Shows this and exits."),
    flag_table.Flag("debug", "", False, "Shows where in the code an error arose."),
  ),
}


def main(argv: Sequence[str] | None = None) -> int:
  """Does what the command line asks and returns the process's exit code.

  Args:
    argv: the command line without the program's name; the process's own by default.
  """
  argv = list(sys.argv[1:] if argv is None else argv)
  os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
  try:
    given = flag_table.parse(FLAGS, argv)
    if given["help"]:
      return _print(flag_table.help_text(_INTRODUCTION, FLAGS, _OUTRO))
    from explorax.experiments.sweeps import selection

    if given["list"]:
      return _print(selection.listing())
    with contextlib.ExitStack() as stack:
      plan = _Plan(given, argv, stack)
      return plan.run()
  except (errors.SetUpError, errors.OutputError, ValueError) as error:
    if "--debug" in argv:
      traceback.print_exc()
    console_lib.complain(error)
    return 1 if isinstance(error, errors.OutputError) else 2
  except KeyboardInterrupt:
    console_lib.complain("stopped before anything began.")
    return 130


class _Plan:
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
    from explorax.experiments.sweeps import agents as agent_names
    from explorax.experiments.sweeps import (
      cluster,
      index,
      lock,
      selection,
      tasks,
      unfinished,
    )

    self._given = given
    self._console = console_lib.Console(sys.stdout)
    if not given["sweep"]:
      raise errors.SetUpError("--sweep is missing; --list shows the names.")
    ids = selection.select(given["sweep"])
    names = _names(given)
    agents = agent_names.identities(names)
    seeds = _seeds(given)
    self._ids, self._names, self._seeds = ids, names, seeds
    cluster.check_installed()
    _check_reachable(given["ray_address"])
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
      for seed in seeds
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
      f"{_count(len(possible), 'task')} ({_count(len(agents), 'agent')}, "
      f"{_count(len(ids), 'id')}, {_count(len(seeds), 'seed')}), into "
      f"{self._directory.path}"
      + (f"; {before} of them done before" if before else "")
      + (f"; {go_on} of them go on from checkpoints" if go_on else "")
    )

  def _without_data(self, everything: "list[tasks.Task]") -> "list[tasks.Task]":
    """All but those that lack MNIST, if it is not there; says so once."""
    from explorax.environments import bsuite_mnist, bsuite_sweeps

    lacking = {
      t.bsuite_id for t in everything if bsuite_sweeps.needs_mnist(t.bsuite_id)
    }
    self._mnist_dir = os.path.abspath(
      os.path.expanduser(self._given["mnist_dir"] or bsuite_mnist.DIRECTORY)
    )
    problem = bsuite_mnist.problem(self._mnist_dir) if lacking else ""
    if not problem:
      return everything
    kept = [task for task in everything if task.bsuite_id not in lacking]
    if not kept:
      raise errors.SetUpError(f"the mnist experiments cannot run: {problem}.")
    for task in everything:
      if task.bsuite_id in lacking:
        self._index.missing(task, problem)
    self._console.line(
      f"{_count(len(lacking), 'mnist id')} left out: {problem} (--mnist_dir names "
      "another folder)."
    )
    return kept

  def run(self) -> int:
    """Does the tasks, and returns the exit code."""
    from explorax.experiments import signals, versions
    from explorax.experiments.sweeps import unfinished

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
      compute = self._connect(stack)
      # After Ray, which would take these signals for itself.
      request = stack.enter_context(signals.stop_on_signals(_announce))
      # After Ray as well, which forks, and jax's threads would not survive that.
      self._index.versions = versions.collect()
      self._index.write()

      def stop() -> bool:
        return request() or time.monotonic() >= end

      try:
        failed = self._compute(compute, stop)
      finally:
        self._index.write()
        self._write_table()
      if request():
        console_lib.complain("stopped; the same call goes on where it was.")
        return request.exit_code
    if any(not self._index.done(task) for task in self._todo) and not failed:
      console_lib.complain("the time is up; the same call goes on where it was.")
      return _TIME_UP
    self._console.line(f"results in {self._directory.path / 'results.csv'}")
    if failed:
      console_lib.complain(
        f"{_count(failed, 'task')} failed (sweep.json has the tracebacks); the others "
        "are kept, and the same call tries those again."
      )
    self._tell_best()
    return 1 if failed else 0

  def _connect(self, stack: contextlib.ExitStack) -> "pool.Pool":
    """Ray, and on it the processes for the tasks."""
    from explorax.experiments.sweeps import cluster, pool, unfinished

    given = self._given
    address = given["ray_address"]
    start = time.monotonic()
    size = stack.enter_context(cluster.connect(address, given["workers"]))
    size = min(size, len(self._todo))
    self._console.line(
      f"Ray is there after {time.monotonic() - start:.0f} s; "
      f"{_count(size, 'task')} side by side"
    )
    # What jax has compiled may not run on other machines.
    cache = None if address else str((self._directory.path / "cache").absolute())
    place = unfinished.prepare(self._directory, given["checkpoint_minutes"])
    workers = pool.Pool(
      size,
      lambda: cluster.start_worker(os.getcwd(), cache, self._mnist_dir, place),
      time_limit=60 * given["task_minutes"],
    )
    stack.callback(workers.close)
    return workers

  def _compute(self, workers: "pool.Pool", stop: Callable[[], bool]) -> int:
    """Does what is to be done; returns how many tasks failed."""
    from explorax.experiments import summary
    from explorax.experiments.figures import progress as progress_lib
    from explorax.experiments.sweeps import unfinished

    todo = self._todo
    weights = [task.weight for task in todo]
    progress = progress_lib.Progress(self._console, weights, workers.size)
    begun = told = False
    done = failed = 0
    written = time.monotonic()

    def on_progress(shares: dict[int, float]) -> None:
      nonlocal progress, begun, told
      if not begun:  # Processes were starting: its clock begins now.
        progress = progress_lib.Progress(self._console, weights, workers.size)
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
        if time.monotonic() - written > _INDEX_PERIOD:
          written = time.monotonic()
          self._index.write()
    return failed

  def _tell_best(self) -> None:
    """Of a tuning: the best settings, on the console and in tuning.csv."""
    if not self._given["sweep_config"]:
      return
    from explorax.experiments.reports import read
    from explorax.experiments.sweeps import tuning

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
  from explorax.experiments.sweeps import agents, grids

  if not given["agents"]:
    raise errors.SetUpError(
      "--agents is missing; `python -m explorax.experiments.run --list_agents` shows "
      "the names."
    )
  names = agents.split(given["agents"])
  config = given["sweep_config"]
  if config:
    return grids.variants(grids.load(config), config, names)
  if given["score"]:
    raise errors.SetUpError(
      f"--score={given['score']} is for --sweep_config; leave it out, or add that one."
    )
  return names


def _check_reachable(address: str | None) -> None:
  """Refuses a `host:port` where nothing listens, for which Ray would wait minutes."""
  host, _, port = (address or "").rpartition(":")
  if not host or not port.isdecimal() or "/" in host:
    return  # `auto` and `ray://…` are for Ray to look up.
  try:
    socket.create_connection((host, int(port)), timeout=5).close()
  except (OSError, OverflowError) as error:
    raise errors.SetUpError(
      f"no Ray cluster answers at --ray_address={address} ({error}); start one with "
      "`ray start --head`, or leave the flag out."
    ) from error


def _seeds(given: dict[str, Any]) -> range:
  first, count = given["seed"], given["seeds"]
  if first + count - 1 > _MAX_SEED:
    raise errors.SetUpError(
      f"--seed={first} and --seeds={count} go beyond the last seed, {_MAX_SEED}; use a "
      "smaller --seed."
    )
  start = first + (_TUNING_SEED if given["sweep_config"] else 0)
  return range(start, start + count)


def _directory(path: str) -> "output.RunDirectory":
  from explorax.experiments import output

  try:
    return output.RunDirectory.create(path)
  except errors.OutputError as error:
    raise errors.SetUpError(str(error)) from error


def _count(number: int, noun: str) -> str:
  return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _print(text: str) -> int:
  with contextlib.suppress(BrokenPipeError):
    print(text, flush=True)
  return 0


def _announce(number: "signal.Signals") -> None:
  del number
  console_lib.alert("stopping; what is done is kept (again: at once)")


if __name__ == "__main__":
  sys.exit(main())
