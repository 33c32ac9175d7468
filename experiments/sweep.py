"""Sweeps agents over environments: `python -m explorax.experiments.sweep --help`.

Each agent in each environment with each seed is a run, with the directory that
`experiments.run` leaves. Finished runs are kept; the same command again computes only
the missing ones.
"""

import dataclasses
import pathlib
import shlex
import sys
from collections.abc import Sequence
from typing import Any, Literal

from explorax.experiments import signals

if __name__ == "__main__":
  signals.end_at_once()

from explorax.experiments import command, errors, output
from explorax.experiments import config as config_lib
from explorax.experiments.recording import console as console_lib
from explorax.experiments.recording import summary

_FIRST_TUNING_SEED = 1_000_000

_INTRODUCTION = """\
Sweeps agents over environments and seeds, on all cores or a Ray cluster.

  python -m explorax.experiments.sweep --agents=NAME[,NAME...] --sweep=NAME[,NAME...]
  python -m explorax.experiments.sweep --agents=NAME[,NAME...] --envs=KIND:NAME[,...]

Each run takes the flags of `python -m explorax.experiments.run`.

Examples
  Three agents on all of bsuite's Deep Sea, three seeds each, in one program:
    python -m explorax.experiments.sweep --agents=tdu,bootstrapped_dqn,dqn_ez \\
      --sweep=deep_sea --seeds=3 --runner=device --output=results/deep_sea

  Two agents on two environments of gymnasium, five seeds each, evaluated:
    python -m explorax.experiments.sweep --agents=double_dqn,dqn_ez --seeds=5 \\
      --envs=gym:CartPole-v1,gym:MountainCar-v0 --steps=50000 --eval_every=5000

  Paper 1's agents on the 57 games of Atari, evaluated as there:
    python -m explorax.experiments.sweep --agents=rainbow_epsilon,rainbow_ez \\
      --envs=atari57 --steps=50000000 --eval_every=250000 --eval_steps=125000 \\
      --seeds=5 --output=results/atari57

  Fifty episodes of one id of each experiment of bsuite, as a quick test:
    python -m explorax.experiments.sweep --agents=dqn --sweep=TESTING --episodes=50

  The best β of QEX among those that paper 4 tried, on separate seeds:
    python -m explorax.experiments.sweep --agents=qex --sweep=deep_sea/0 --seeds=3 \\
      --sweep_config=papers/tdu/table3.toml --runner=device --output=results/tuning

  The best of six settings in an environment of gymnasium:
    python -m explorax.experiments.sweep --agents=double_dqn --envs=gym:CartPole-v1 \\
      --set double_dqn.learning_rate=1e-4,5e-4,1e-3 --set double_dqn.n_step=1,3 \\
      --steps=20000 --seeds=3 --score=final_return --output=results/tuning

  Your own agent and one of bsuite's, beside ours:
    python -m explorax.experiments.sweep \\
      --agents=dqn,my_agents:make,bsuite.baselines.random:default_agent \\
      --sweep=catch/0,bandit/0
"""

_OUTRO = f"""\
OUTPUT/AGENT/ENV/seedSEED is the directory of a run. The same command again computes the
missing runs; an interrupted one resumes from its newest checkpoint, and a larger
--steps or --episodes extends the runs. Agents, environments and seeds may be added
later; but seeds that one program trains (--runner=device) stay as many. The scores or
returns are printed at the end; `python -m explorax.experiments.report OUTPUT` makes a
page of them.
{command.EXIT_CODES}"""


@dataclasses.dataclass(frozen=True)
class Flags:
  """The flags of the command."""

  ## What to sweep
  # Agents (run --list_agents), optionally with settings: dqn@n_step=3@beta=0; or your
  # own as module:function (see run --help).
  agents: str | None = None
  # bsuite's sweeps, experiments and tags (--list), or ids such as deep_sea/0, each with
  # bsuite's own number of episodes, or --episodes if they are fewer.
  sweep: str | None = None
  # Environments of any kind (run --list_envs), beside those of --sweep; also groups of
  # Atari games (--list), as atari57, whose preprocessing may be set:
  # atari57_hard_exploration/sticky=0.25.
  envs: str | None = None

  ## Search for an agent's settings
  # Runs every combination of a grid of settings and prints the best: a .toml file with
  # [agent] and setting = [value, ...], as papers/tdu/table3.toml. A small grid needs no
  # file: --set double_dqn.learning_rate=1e-4,1e-3. The seeds start at 1,000,000 +
  # --seed, which no other sweep uses.
  sweep_config: str | None = None
  # The score to maximise: bsuite's score, the return (mean over all training episodes),
  # the final_return (mean over the last half of them), or that of the last evaluation.
  # [bsuite on bsuite, evaluation elsewhere; return with --eval_episodes=0]
  score: Literal["bsuite", "return", "final_return", "evaluation"] | None = None

  ## All runs
  # Directory of the results. [sweep in the current directory]
  output: str = "sweep"
  # Prints bsuite's sweeps and tags, groups of games, and exits.
  list: bool = False


def main(argv: Sequence[str] | None = None) -> int:
  """Runs the command and returns the exit code (see `command.main`)."""
  return command.main(
    argv,
    [Flags, config_lib.RunConfig],
    _sweep,
    introduction=_INTRODUCTION,
    outro=_OUTRO,
  )


def _sweep(flags: dict[str, Any], argv: list[str]) -> int | command.Work:
  from explorax.experiments import grid

  for name, others in (("agent", "agents"), ("env", "envs")):
    if flags[name]:
      raise errors.SetUpError(f"a sweep takes --{others}={flags[name]}, not --{name}.")
  if flags["list"]:
    return command.show(grid.listing())
  return lambda: _compute(flags, argv)


def _compute(flags: dict[str, Any], argv: list[str]) -> int:
  """Computes the missing runs, and prints the results."""
  from explorax.experiments import grid, tuning

  agents = grid.agents(flags["agents"])
  envs = grid.environments(flags["sweep"], flags["envs"])
  run_flags = {**flags, "workers": None}
  tried, run_flags["set"] = tuning.from_flags(flags, agents)
  if tried:
    agents = tuning.variants(tried, agents)
    run_flags["seed"] += _FIRST_TUNING_SEED
  ray_address = None
  if flags["runner"] != config_lib.DISTRIBUTED:  # Else it is that of the runs.
    ray_address, run_flags["ray_address"] = flags["ray_address"], None
  folder = pathlib.Path(flags["output"]).expanduser()
  configs = grid.configs(run_flags, agents, envs, folder)
  workers = grid.num_workers(configs[0], flags["workers"])
  console = console_lib.Console(sys.stdout)
  directory = output.RunDirectory.create(folder)
  try:
    configs = grid.checked(configs, console)
    number = summary.count(len(configs) * flags["seeds"], "run")
    console.line(f"{number}, into {directory.given}")
    code = grid.compute(
      configs, argv, console, workers=workers, ray_address=ray_address
    )
    if code in (0, 1) and tried:
      console.line(f"\n{tuning.report(configs, directory, flags['score'])}")
    elif code == 0:
      _print_results(directory, console)
    return code
  finally:
    directory.unlock()


def _print_results(
  directory: output.RunDirectory, console: console_lib.Console
) -> None:
  """Prints the scores and returns of all runs, and the command of the report."""
  from explorax.experiments import report

  asked = f"python -m explorax.experiments.report {shlex.quote(str(directory.given))}"
  shown = report.make([str(directory.path)]).shown
  console.line("\n" + "\n\n".join([*shown, f"The report: {asked}"]))


if __name__ == "__main__":
  sys.exit(main())
