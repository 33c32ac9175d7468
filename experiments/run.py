"""Runs one agent in one environment: `python -m explorax.experiments.run --help`.

A set-up error prints one sentence on stderr and exits with code 2; `--debug` adds the
traceback. JAX and the modules above it are imported only when a run starts, so that
help and mistyped commands answer at once.
"""

import sys
from collections.abc import Sequence
from typing import Any

from explorax.experiments import signals

if __name__ == "__main__":
  signals.end_at_once()

from explorax import experiments
from explorax.experiments import command
from explorax.experiments import config as config_lib
from explorax.experiments.recording import console as console_lib

_INTRODUCTION = """\
Runs an exploration agent in an environment and records the results.

  python -m explorax.experiments.run --agent=NAME --env=KIND:NAME [flags]

Examples
  TDU on Deep Sea (N = 10), 1000 episodes:
    python -m explorax.experiments.run --agent=tdu --env=bsuite:deep_sea/0 \\
      --episodes=1000

  The same with replay in Reverb, and with two settings of the agent changed:
    python -m explorax.experiments.run --agent=tdu --env=bsuite:deep_sea/0 \\
      --replay=reverb --set batch_size=64 --set hidden_sizes=100,100

  The same, evaluated every 1000 steps, with a video of the last evaluation:
    python -m explorax.experiments.run --agent=tdu --env=bsuite:deep_sea/0 \\
      --episodes=1000 --eval_every=1000 --video

  Deep Sea in JAX, acting and learning in one compiled program, without Reverb:
    python -m explorax.experiments.run --agent=tdu --env=jax:deep_sea/20 \\
      --steps=20000 --runner=device

  The same with 30 seeds at the same time:
    python -m explorax.experiments.run --agent=tdu --env=jax:deep_sea/20 \\
      --steps=20000 --runner=device --seeds=30

  Five seeds of CartPole as separate runs, as many at a time as there are cores:
    python -m explorax.experiments.run --agent=double_dqn --env=gym:CartPole-v1 \\
      --steps=50000 --seeds=5

  NGU on eight games, which C++ threads step while the device learns:
    python -m explorax.experiments.run --agent=ngu --env=atari:MontezumaRevenge \\
      --steps=1000000 --runner=device --num_envs=8

  Four actors, a learner and replay as separate processes on Ray:
    python -m explorax.experiments.run --agent=r2d2 --env=gym:CartPole-v1 \\
      --steps=50000 --runner=distributed --num_actors=4

  50,000 steps of a gymnasium environment, into a directory of your choice:
    python -m explorax.experiments.run --agent=dqn --env=gym:CartPole-v1 \\
      --steps=50000 --seed=1 --output=results/cartpole

  An environment of your own (a function that returns an environment of dm_env or
  gymnasium, or one written in JAX):
    python -m explorax.experiments.run --agent=dqn --env=my_module:make_env \\
      --episodes=500
"""

_OUTRO = """\
Ctrl-C writes a checkpoint and ends the run; the same command again resumes it, and
with a larger --steps or --episodes extends a finished run.
Exit codes: 0 finished, 1 failed, 2 could not start, 130 Ctrl-C, 143 SIGTERM,
129 SIGHUP.
"""


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
    introduction=_INTRODUCTION,
    outro=_OUTRO,
  )


def _run(given: dict[str, Any], argv: list[str]) -> int | command.Work:
  if given["list_agents"] or given["list_envs"]:
    return command.show(experiments.running.listing(agents=given["list_agents"]))
  console = console_lib.Console(sys.stdout)
  if given["config"]:
    with console.importing():
      given = experiments.config_file.merged(given, argv)
  config = config_lib.from_flags(given)
  console.line(config.title)  # Before anything that takes time.
  with console.importing():
    running = experiments.running
  return running.start(config, argv, console)


if __name__ == "__main__":
  sys.exit(main())
