"""Runs one agent in one environment: `python -m explorax.experiments.run --help`.

A set-up error prints one sentence on stderr and exits with code 2; `--debug` adds the
traceback. JAX and the modules above it are imported only when a run starts, so that
help and mistyped commands answer at once.
"""

import contextlib
import dataclasses
import sys
from collections.abc import Sequence
from typing import Any

from explorax.experiments import command
from explorax.experiments import config as config_lib
from explorax.experiments import settings as settings_lib
from explorax.experiments.recording import console as console_lib

_INTRODUCTION = """\
Runs an exploration agent in an environment and records the results.

  python -m explorax.experiments.run --agent=NAME --env=KIND:NAME [flags]

Examples
  TDU on Deep Sea (N = 10), with two settings of the agent changed:
    python -m explorax.experiments.run --agent=tdu --env=bsuite:deep_sea/0 \\
      --episodes=1000 --set batch_size=64 --set hidden_sizes=100,100

  50,000 steps of a gymnasium environment, evaluated, into a directory of your choice:
    python -m explorax.experiments.run --agent=dqn --env=gym:CartPole-v1 \\
      --steps=50000 --eval_every=5000 --output=results/cartpole

  Thirty seeds at the same time, acting and learning in one compiled program:
    python -m explorax.experiments.run --agent=tdu --env=jax:deep_sea/20 \\
      --steps=20000 --runner=device --seeds=30

  An environment of your own (a function that returns an environment of dm_env or
  gymnasium, or one written in JAX):
    python -m explorax.experiments.run --agent=dqn --env=my_module:make_env \\
      --episodes=500
"""

_OUTRO = f"""\
Ctrl-C writes a checkpoint and ends the run; the same command again resumes it, and
with a larger --steps or --episodes extends a finished run.
{command.EXIT_CODES}"""


@dataclasses.dataclass(frozen=True)
class Flags:
  """The flags of the command, beside those of a run."""

  ## Information
  # Prints the agents and exits.
  list_agents: bool = False
  # Prints the environments and exits.
  list_envs: bool = False
  # Prints the settings of --agent, with values, units and sources, and exits. Some
  # agents have others for some kinds of --env.
  list_settings: bool = False


def main(argv: Sequence[str] | None = None) -> int:
  """Runs the command and returns the exit code (see `command.main`)."""
  return command.main(
    argv, [config_lib.RunConfig, Flags], _run, introduction=_INTRODUCTION, outro=_OUTRO
  )


def _run(flags: dict[str, Any], argv: list[str]) -> int | command.Work:
  if any(flags[name] for name in ("list_agents", "list_envs", "list_settings")):
    return command.show(_listing(flags))
  config = config_lib.from_flags(flags)
  console = console_lib.Console(sys.stdout)
  console.line(config.title)  # Before anything that takes time.
  from explorax.experiments import grid, session

  if config.num_seeds > 1 and not config.is_one_program:
    return grid.set_up_seeds(config, argv, console)
  made = session.set_up(config, argv)
  if made.is_finished:
    made.close()
    console.line(f"The run in {made.directory.path} is finished: nothing is left.")
    return 0

  def work() -> int:
    with contextlib.closing(made):
      return made.run(console)

  return work


def _listing(flags: dict[str, Any]) -> str:
  """The agents, the environments, or the settings of an agent."""
  from explorax import environments
  from explorax.experiments import presets

  if flags["list_settings"]:
    preset = presets.find(flags["agent"])
    config = preset.config_for(flags["env"]) if flags["env"] else preset.config
    return settings_lib.listing(settings_lib.apply(config, flags["set"]))
  rows = environments.list_environments()
  if flags["list_agents"]:
    rows = [(name, f"{p.summary} ({p.paper})") for name, p in presets.PRESETS.items()]
  width = max(len(name) for name, _ in rows)
  return "\n".join(f"{name:{width}}  {text}" for name, text in rows)


if __name__ == "__main__":
  sys.exit(main())
