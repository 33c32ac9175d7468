"""Sweeps agents over environments: `python -m explorax.experiments.sweep --help`.

Each agent in each environment with each seed is a run, with the directory that
`experiments.run` leaves. Finished runs are kept; the same command again computes only
the missing ones.
"""

import contextlib
import functools
import pathlib
import shlex
import sys
from collections.abc import Sequence
from typing import Any

from explorax.experiments import command, errors, flag_table
from explorax.experiments import config as config_lib
from explorax.experiments.recording import console as console_lib

_INTRODUCTION = """\
Sweeps agents over environments and seeds, on all cores or on a Ray cluster.

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
      --sweep_config=table3 --runner=device --output=results/tuning

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

OWN_FLAGS = {
  "What to sweep": (
    flag_table.Flag(
      "agents",
      "=NAME,...",
      None,
      "Agents (run --list_agents), optionally with settings: dqn@n_step=3@beta=0;\n"
      "or your own as module:function (see run --help).",
    ),
    flag_table.Flag(
      "sweep",
      "=NAME,...",
      None,
      "bsuite's sweeps, experiments and tags (--list), or ids such as deep_sea/0,\n"
      "each with bsuite's own number of episodes, or --episodes if they are fewer.",
    ),
    flag_table.Flag(
      "envs",
      "=KIND:NAME,...",
      None,
      "Environments of any kind (run --list_envs), beside those of --sweep; also\n"
      "groups of Atari games (--list), as atari57, whose preprocessing may be set:\n"
      "atari57_hard_exploration/sticky=0.25.",
    ),
  ),
  "Search for an agent's settings": (
    flag_table.Flag(
      "sweep_config",
      "=GRID",
      None,
      "Runs every combination of a grid of settings and prints the best: table3\n"
      "(paper 4's grid), or a .toml file with [agent] and setting = [value, ...].\n"
      "The seeds start at 1,000,000 + --seed, which no other sweep uses.",
    ),
    flag_table.Flag(
      "score",
      "=NAME",
      None,
      "The score to maximise: bsuite's score, the return (mean over all episodes) or\n"
      "the final_return (mean over the last half of them). [bsuite on bsuite, return\n"
      "elsewhere]",
      choices=("bsuite", "return", "final_return"),
    ),
  ),
  "All runs": (
    flag_table.Flag(
      "output",
      "=DIR",
      "sweep",
      "Directory of the results. [sweep in the current directory]",
    ),
    flag_table.Flag(
      "list", "", False, "Prints bsuite's sweeps and tags, groups of games, and exits."
    ),
  ),
}
# The flags of a run that a sweep replaces.
_REPLACED = ("agent", "env", "output", "list_agents", "list_envs")
FLAGS: flag_table.Groups = {
  **OWN_FLAGS,
  **{
    heading: [flag for flag in group if flag.name not in _REPLACED]
    for heading, group in config_lib.flags().items()
  },
}
_FIRST_TUNING_SEED = 1_000_000


def main(argv: Sequence[str] | None = None) -> int:
  """Runs the command and returns the exit code (see `command.main`)."""
  return command.main(argv, FLAGS, _sweep, introduction=_INTRODUCTION, outro=_OUTRO)


def _sweep(given: dict[str, Any], argv: list[str]) -> int | command.Work:
  if given["list"]:
    from explorax.experiments.sweeps import selection

    return command.show(selection.listing())
  return functools.partial(_compute, given, argv)


def _compute(given: dict[str, Any], argv: list[str]) -> int:
  """Computes the missing runs, and prints the results."""
  from explorax.experiments import output
  from explorax.experiments.recording import summary
  from explorax.experiments.sweeps import grid, grids, selection, tuning
  from explorax.experiments.tasks import index, pool

  agents, envs = selection.agents(given["agents"]), selection.environments(given)
  run_flags = {**given, "workers": None}
  if given["sweep_config"]:
    grid_name = given["sweep_config"]
    agents = list(grids.variants(grids.load(grid_name), grid_name, agents))
    run_flags["seed"] += _FIRST_TUNING_SEED
  elif given["score"]:
    raise errors.SetUpError(
      f"--score={given['score']} has no effect without --sweep_config; add it, or "
      "leave out --score."
    )
  if given["runner"] != config_lib.DISTRIBUTED:
    run_flags["ray_address"] = None  # Of the pool.
  root = str(pathlib.Path(given["output"]).expanduser())
  configs = grid.configs(run_flags, agents, envs, root)
  console = console_lib.Console(sys.stdout)
  workers = pool.Pool(
    console,
    workers=grid.num_workers(configs[0], given["workers"]),
    ray_address=given["ray_address"] if run_flags["ray_address"] is None else None,
  )
  with contextlib.ExitStack() as stack:
    try:
      directory = output.RunDirectory.create(root, is_locked=True)
    except errors.OutputError as error:
      raise errors.SetUpError(str(error)) from error
    stack.callback(directory.unlock)
    found = grid.Grid(configs, directory, argv, console)
    counts = (
      summary.count(len(agents), "agent"),
      summary.count(len(envs), "environment"),
      summary.count(given["seeds"], "seed"),
    )
    number = summary.count(len(configs) * given["seeds"], "run")
    console.line(f"{number} ({', '.join(counts)}), into {directory.given}")
    asked = shlex.join(["python", "-m", "explorax.experiments.sweep", *argv])
    index.add(directory, asked, found.entries())
    with workers:
      code = found.compute(workers)
    if code in (0, 1) and given["sweep_config"]:
      console.line(tuning.report(found, given["score"]))
    elif code in (0, 1):
      _print_results(directory.path, console)
    return code


def _print_results(path: pathlib.Path, console: console_lib.Console) -> None:
  """Prints the scores and returns of all runs, and the command of the report."""
  from explorax.experiments.reports import page, runs

  found = runs.read_all([str(path)])
  if found.runs:
    console.line(f"\n{page.text(page.compute(found))}")
    report = f"python -m explorax.experiments.report {shlex.quote(str(path))}"
    console.line(f"The report: {report}")


if __name__ == "__main__":
  command.leave(main())
