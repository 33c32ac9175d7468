"""A sweep over environments of any kind: each task is a run of `experiments.run`.

    OUTPUT/runs/AGENT-ENV/seed0    the directory of a run

The runs hold all results, and `experiments.compare` reads them.
"""

import contextlib
import dataclasses
import pathlib
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from explorax.experiments import config as config_lib
from explorax.experiments import errors, job, output, overrides, resuming
from explorax.experiments.recording import console as console_lib
from explorax.experiments.recording import summary
from explorax.experiments.reports import comparison, comparison_page
from explorax.experiments.reports import runs as runs_lib
from explorax.experiments.sweeps import agents, plan, records, selection
from explorax.experiments.tasks import flags, pool, runs, types

# A comma between environments is followed by a kind; one within a profile is not.
_COMMA = re.compile(r",(?=\s*[\w.]+:)")


def run(given: dict[str, Any], argv: Sequence[str], stack: contextlib.ExitStack) -> int:
  """Runs the missing runs, prints the returns, and returns the exit code.

  Args:
    given: the flags.
    argv: the command line.
    stack: unlocks the directory when it is closed.

  Raises:
    SetUpError: if an agent or environment does not exist, or flags exclude each other.
  """
  console = console_lib.Console(sys.stdout)
  _check(given)
  names, seeds = selection.names(given), selection.seeds(given)
  envs = split(given["envs"])
  workers = pool.Pool(console, **flags.pool_arguments(given))
  directory = plan.make_directory(given["output"])
  stack.callback(directory.unlock)
  tasks = [
    task
    for name in names
    for env in envs
    for task in _tasks(given, name, env, seeds, directory, argv)
  ]
  console.line(
    f"{summary.count(len(tasks), 'run')} ({summary.count(len(names), 'agent')}, "
    f"{summary.count(len(envs), 'environment')}, {summary.count(len(seeds), 'seed')}), "
    f"into {directory.path}"
  )
  with workers:
    done = workers.compute(runs.FUNCTION, tasks, runs.Store(directory, "."))
    code, failed = workers.exit_code, workers.failed
  left = sum(found is None for found in done) - failed
  plan.tell_missing(failed, left, code)
  if left:
    return code
  if any(done):
    _tell_returns(directory.path, console)
  return 1 if failed else 0


def split(text: str) -> list[str]:
  """Splits a list of `kind:name` and removes duplicates."""
  return list(dict.fromkeys(name.strip() for name in _COMMA.split(text)))


def _check(given: dict[str, Any]) -> None:
  """Refuses the flags of sweeps over bsuite."""
  for name in ("sweep", "sweep_config", "score", "mnist_dir"):
    if given[name]:
      raise errors.SetUpError(
        f"--{name}={given[name]} is for sweeps over bsuite, and --envs for other "
        f"environments; leave out --{name} or --envs."
      )


def _tasks(
  given: dict[str, Any],
  name: str,
  env: str,
  seeds: Sequence[int],
  directory: output.RunDirectory,
  argv: Sequence[str],
) -> Iterator[types.Task]:
  """The tasks of an agent in an environment, checked."""
  if not agents.is_preset(name):
    agents.identity(name)  # Refuses an unknown name.
    raise errors.SetUpError(
      f"the agent {name!r} is your own, which runs on bsuite's ids only (--sweep)."
    )
  preset, settings = overrides.split_name(name)
  folder = re.sub(r"[^\w.@=,-]+", "_", f"{records.folder(name)}-{env}")
  try:
    _, env, agent_config = job.find(preset, env, settings)
    config = config_lib.RunConfig(
      agent=preset,
      settings=tuple(settings),
      env=env,
      steps=given["steps"],
      episodes=given["episodes"],
      checkpoint_minutes=max(1, round(given["checkpoint_minutes"])),
    )
    # What cannot start is refused here, once.
    with contextlib.closing(job.make_parts(config, job.Given())) as parts:
      config = dataclasses.replace(config, episodes=parts.config.episodes)
  except ValueError as error:
    raise errors.SetUpError(f"{name} on {env}: {error}") from error
  record = job.make_record(config, argv, agent_config)
  for seed in seeds:
    own = output.RunDirectory(directory.path / "runs" / folder / f"seed{seed}")
    if (own.path / "config.json").exists():
      resuming.check_same(own, own.read_settings(), {**record, "seed": seed})
    of_seed = dataclasses.replace(config, seed=seed, output=str(own.path))
    yield runs.task(str(own.path.relative_to(directory.path)), of_seed, argv)


def _tell_returns(path: pathlib.Path, console: console_lib.Console) -> None:
  """Prints the returns of all runs, and the command that makes a page of them."""
  found = comparison.compute(*runs_lib.read_all([str(path / "runs")]))
  console.line(f"\n{comparison_page.table(found)}")
  for remark in found.remarks:
    console.line(remark)
  console.line(
    f"The page: python -m explorax.experiments.compare {shlex.quote(str(path))}"
  )
