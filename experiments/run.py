"""Runs one agent in one environment: `python -m explorax.experiments.run --help`.

A set-up error prints one sentence on stderr and exits with code 2; `--debug` adds the
traceback. JAX and the modules above it are imported only when a run starts, so that
help and mistyped commands answer at once.
"""

import contextlib
import functools
import importlib
import sys
from collections.abc import Sequence
from typing import Any

from explorax.experiments import command
from explorax.experiments import config as config_lib
from explorax.experiments import job as job_lib
from explorax.experiments.recording import console as console_lib


def main(argv: Sequence[str] | None = None) -> int:
  """Runs the command and returns the process's exit code.

  0: finished; 1: the run failed; 2: the run could not start; 130, 143 or 129: Ctrl-C,
  SIGTERM or SIGHUP stopped the run.

  Args:
    argv: the command line without the program's name; None: that of the process.
  """
  return command.main(
    argv,
    config_lib.flags(),
    _run,
    introduction=config_lib.INTRODUCTION,
    outro=config_lib.OUTRO,
  )


def _run(given: dict[str, Any], argv: list[str]) -> int | command.Work:
  if given["list_agents"] or given["list_envs"]:
    return command.show(_listing(agents=given["list_agents"]))
  config = config_lib.from_flags(given)
  console = console_lib.Console(sys.stdout)
  console.line(config.title)  # Before anything that takes time.

  if config.num_seeds > 1 and config.runner == config_lib.LOCAL:
    from explorax.experiments import local_seeds

    return local_seeds.set_up(config, argv, console)

  from explorax.experiments.recording import progress

  with progress.importing(console):
    job = job_lib.set_up(config, argv)
    importlib.import_module(f"explorax.experiments.runners.{config.runner}")
  if job.checkpoints is None:
    job.directory.unlock()
    console.line(
      f"The run in {job.directory.path} is finished: there is nothing to do."
    )
    return 0
  return functools.partial(_supervise, job, console)


def _supervise(job: job_lib.Job, console: console_lib.Console) -> int:
  from explorax.experiments import supervision

  with contextlib.closing(job):
    outcome = supervision.run(job, console)
    for problem in outcome.problems:
      console_lib.print_error(problem)
    return outcome.exit_code


def _listing(*, agents: bool) -> str:
  """The agents, or the environments, each with a one-line summary."""
  if agents:
    from explorax.experiments import presets

    rows = [(name, f"{p.summary} ({p.paper})") for name, p in presets.PRESETS.items()]
  else:
    from explorax import environments

    rows = environments.list_environments()
  width = max(len(name) for name, _ in rows)
  return "\n".join(f"{name:{width}}  {text}" for name, text in rows)


if __name__ == "__main__":
  sys.exit(main())
