"""Runs one agent in one environment: `python -m explorax.experiments.run --help`.

Set-up errors are one sentence on stderr and exit code 2; with `--debug` they show
where they arose. JAX and everything above it are imported when a run begins, so that
help and mistyped commands answer at once.
"""

import contextlib
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from explorax.experiments import config as config_lib
from explorax.experiments import errors
from explorax.experiments import job as job_lib
from explorax.experiments.recording import console as console_lib

if TYPE_CHECKING:
  from explorax import environments

# What config checks, environments and agents raise when they are asked for something
# that they cannot do.
_REFUSALS = (errors.SetUpError, errors.OutputError, ValueError, TypeError, ImportError)


def main(argv: Sequence[str] | None = None) -> int:
  """Does what the command line asks and returns the process's exit code.

  0: done; 1: the run failed on the way; 2: it could not start; 130 or 143: it was
  stopped by Ctrl-C or SIGTERM.

  Args:
    argv: the command line without the program's name; the process's own by default.
  """
  argv = list(sys.argv[1:] if argv is None else argv)
  # TensorFlow, which comes with Reverb, greets with warnings about GPUs.
  os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
  debug = "--debug" in argv
  try:
    config = config_lib.parse(argv)
    if isinstance(config, str):
      with contextlib.suppress(BrokenPipeError):  # `--list_envs | head` is done.
        print(_show(config), flush=True)
      return 0
    job = job_lib.set_up(config, argv)
  except _REFUSALS as error:
    if debug:
      raise
    console_lib.complain(error)
    return 2
  except KeyboardInterrupt:
    console_lib.complain("stopped before the run began.")
    return 130
  if job.checkpoints is None:
    print(f"The run in {job.directory.path} is finished: there is nothing to do.")
    return 0
  from explorax.experiments import supervision

  try:
    with contextlib.ExitStack() as stack:
      for environment in (job.environment, job.evaluation_environment):
        if environment is not None:
          stack.callback(_close, environment)
      return supervision.run(job)
  except errors.OutputError as error:
    console_lib.complain(error)
    return 1


def _show(what: str) -> str:
  if what == "help":
    return config_lib.help_text()
  if what == "list_agents":
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
    console_lib.complain(
      f"the environment could not be closed ({type(error).__name__}: {error})."
    )


if __name__ == "__main__":
  sys.exit(main())
