"""Sets up a run of the command line, and runs it: the implementation of `run`."""

import contextlib
import functools
from collections.abc import Sequence

from explorax.experiments import command, launch
from explorax.experiments import config as config_lib
from explorax.experiments import job as job_lib
from explorax.experiments.recording import console as console_lib
from explorax.experiments.sweeps import grid


def set_up(
  config: config_lib.RunConfig, argv: Sequence[str], console: console_lib.Console
) -> int | command.Work:
  """The work that remains after all checks, or 0 if the run is finished."""
  if config.num_seeds > 1 and not config.is_one_program:
    return grid.set_up_seeds(config, argv, console)
  job = job_lib.set_up(config, argv)
  if job.checkpoints is None:
    job.directory.unlock()
    console.line(
      f"The run in {job.directory.given} is finished: there is nothing to do."
    )
    return 0
  return functools.partial(_launch, job, console)


def _launch(job: job_lib.Job, console: console_lib.Console) -> int:
  with contextlib.closing(job):
    outcome = launch.run(job, console)
    for problem in outcome.problems:
      console_lib.print_error(problem)
    return outcome.exit_code
