"""The work of `run`: sets up a run, or several seeds, and launches it."""

import contextlib
from collections.abc import Sequence

from explorax import environments
from explorax.experiments import command, errors, grid, presets, session
from explorax.experiments import config as config_lib
from explorax.experiments.recording import console as console_lib


def start(
  config: config_lib.RunConfig, argv: Sequence[str], console: console_lib.Console
) -> int | command.Work:
  """Checks and creates what the run needs; returns what remains, or the exit code."""
  if config.num_seeds > 1 and not config.is_one_program:
    return grid.set_up_seeds(config, argv, console)
  made = session.set_up(config, argv)
  if made.checkpoints is None:
    made.close()
    console.line(
      f"The run in {made.directory.given} is finished: there is nothing to do."
    )
    return 0

  def work() -> int:
    with contextlib.closing(made):
      try:
        return made.run(console)
      except errors.SetUpError:  # Of parts that start with the run.
        raise
      except (Exception, SystemExit) as error:
        console_lib.print_error(session.sentence(error))
        return 1

  return work


def listing(*, agents: bool) -> str:
  """The agents, or the environments, each with a one-line summary."""
  rows = environments.list_environments()
  if agents:
    rows = [(name, f"{p.summary} ({p.paper})") for name, p in presets.PRESETS.items()]
  width = max(len(name) for name, _ in rows)
  return "\n".join(f"{name:{width}}  {text}" for name, text in rows)
