"""Runs one agent in one environment: `python -m explorax.experiments.run --help`.

Set-up errors are one sentence on stderr and exit code 2; with `--debug` they show
where they arose. JAX and everything above it are imported when a run begins, so that
help and mistyped commands answer at once.
"""

import contextlib
import functools
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from explorax.experiments import command
from explorax.experiments import config as config_lib
from explorax.experiments import job as job_lib
from explorax.experiments.recording import console as console_lib

if TYPE_CHECKING:
  from explorax import environments


def main(argv: Sequence[str] | None = None) -> int:
  """Does what the command line asks and returns the process's exit code.

  0: done; 1: the run failed on the way; 2: it could not start; 130, 143 or 129: it was
  stopped by Ctrl-C, SIGTERM or SIGHUP.

  Args:
    argv: the command line without the program's name; the process's own by default.
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
  job = job_lib.set_up(config_lib.from_flags(given), argv)
  if job.checkpoints is None:
    job.directory.unlock()
    print(f"The run in {job.directory.path} is finished: there is nothing to do.")
    return 0
  return functools.partial(_supervise, job)


def _supervise(job: job_lib.Job) -> int:
  from explorax.experiments import supervision

  with contextlib.ExitStack() as stack:
    stack.callback(job.directory.unlock)
    for environment in (job.parts.environment, job.parts.evaluation_environment):
      if environment is not None:
        stack.callback(_close, environment)
    outcome = supervision.run(job, console_lib.Console(sys.stdout))
    for problem in outcome.problems:
      console_lib.print_error(problem)
    return outcome.exit_code


def _listing(*, agents: bool) -> str:
  """The agents, or the environments, with what each of them is."""
  if agents:
    from explorax.experiments import presets

    rows = [(name, f"{p.summary} ({p.paper})") for name, p in presets.PRESETS.items()]
  else:
    from explorax import environments

    rows = environments.list_environments()
  width = max(len(name) for name, _ in rows)
  return "\n".join(f"{name:{width}}  {text}" for name, text in rows)


def _close(
  environment: "environments.StandardEnvironment | environments.BatchedEnvironment",
) -> None:
  """Closes it; one that has crashed may fail at that too, when all else is done."""
  try:
    environment.close()
  except Exception as error:
    console_lib.print_error(
      f"the environment could not be closed ({type(error).__name__}: {error})."
    )


if __name__ == "__main__":
  sys.exit(main())
