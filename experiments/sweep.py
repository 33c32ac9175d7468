"""Sweeps agents over environments: `python -m explorax.experiments.sweep --help`.

Each combination of agent, bsuite id or environment, and seed is a task, which Ray runs
on one core. Finished tasks are kept; the same command again runs only the missing ones.
"""

import contextlib
import functools
import sys
from collections.abc import Sequence
from typing import Any

from explorax.experiments import command, flag_table
from explorax.experiments import config as config_lib
from explorax.experiments.tasks import flags

_INTRODUCTION = """\
Sweeps agents over bsuite's experiments, or over any environments, on all cores or on a
Ray cluster.

  python -m explorax.experiments.sweep --agents=NAME[,NAME...] --sweep=NAME[,NAME...]
  python -m explorax.experiments.sweep --agents=NAME[,NAME...] --envs=KIND:NAME[,...]

Examples
  Three agents on all of Deep Sea, three seeds each:
    python -m explorax.experiments.sweep --agents=tdu,bootstrapped_dqn,dqn_ez \\
      --sweep=deep_sea --seeds=3 --output=results/deep_sea

  Two agents on two environments of gymnasium, five seeds each:
    python -m explorax.experiments.sweep --agents=double_dqn,dqn_ez \\
      --envs=gym:CartPole-v1,gym:MountainCar-v0 --steps=50000 --seeds=5

  Fifty episodes of one id of each experiment, as a quick test:
    python -m explorax.experiments.sweep --agents=dqn --sweep=TESTING --episodes=50

  The best β of QEX among those that paper 4 tried, on separate seeds:
    python -m explorax.experiments.sweep --agents=qex --sweep=deep_sea/0 --seeds=3 \\
      --sweep_config=table3 --output=results/tuning

  Your own agent and one of bsuite's, beside ours:
    python -m explorax.experiments.sweep \\
      --agents=dqn,my_agents:make,bsuite.baselines.random:default_agent \\
      --sweep=catch/0,bandit/0
"""

_OUTRO = f"""\
With --sweep, OUTPUT holds results.csv (one table of all results),
bsuite_csv/AGENT/seedSEED (for bsuite's csv_load) and sweep.json (settings, versions,
and the missing tasks with the reason). The same command again runs the missing tasks.
An interrupted task of our agents resumes bit for bit from its newest checkpoint; a task
of your own agents restarts. Seeds, ids and agents may be added later. The scores are
printed at the end; `python -m explorax.experiments.report OUTPUT` makes a page of them.

With --envs, OUTPUT/runs holds the directory of each run, as `explorax.experiments.run`
writes it. A larger --steps or --episodes extends the runs. The returns are printed at
the end; `python -m explorax.experiments.compare OUTPUT` makes a page of them.
{flags.EXIT_CODES}"""

FLAGS = {
  "What to run": (
    flag_table.Flag(
      "agents",
      "=NAME,...",
      None,
      "Agents (run --list_agents), optionally with settings: dqn@n_step=3@beta=0;\n"
      "or your own as module:function. The function is called with\n"
      "(observation_spec, action_spec, seed=...) and returns an object with bsuite's\n"
      "select_action(timestep) and update(timestep, action, new_timestep).",
    ),
    flag_table.Flag(
      "sweep",
      "=NAME,...",
      None,
      "bsuite's sweeps, experiments and tags (--list), or ids such as deep_sea/0.",
    ),
    flag_table.Flag(
      "envs",
      "=KIND:NAME,...",
      None,
      "Environments of any kind (run --list_envs) instead of --sweep, for agents of\n"
      "ours. Each task is a run with the local runner and the replay in memory; it\n"
      "ends after --steps or --episodes.",
    ),
    flag_table.Flag(
      "seeds",
      "=INT",
      1,
      "Number of seeds; the first one is --seed. [1]",
      parser=flag_table.WholeNumber(1, config_lib.MAX_SEEDS),
    ),
    flag_table.Flag(
      "seed",
      "=INT",
      0,
      "The first seed. [0]",
      parser=flag_table.WholeNumber(0),
    ),
    flag_table.Flag(
      "episodes",
      "=INT",
      None,
      "Limits the episodes of each task; with --sweep for quick tests. [bsuite's own\n"
      "numbers]",
      parser=flag_table.WholeNumber(1),
    ),
    flag_table.Flag(
      "steps",
      "=INT",
      None,
      "Limits the environment steps of each task (only with --envs).",
      parser=flag_table.WholeNumber(1),
    ),
    flag_table.Flag(
      "mnist_dir",
      "=DIR",
      None,
      "Folder of the two files of MNIST's training set; without them the sweep skips\n"
      "the mnist experiments. [/tmp/mnist]",
    ),
  ),
  "Search for an agent's settings": (
    flag_table.Flag(
      "sweep_config",
      "=GRID",
      None,
      "Runs every combination of a grid of settings and prints the best: table3\n"
      "(paper 4's grid), or a .toml or .json file with [agent] and\n"
      "setting = [value, ...]. The seeds start at 1,000,000 + --seed, which no other\n"
      "sweep uses.",
    ),
    flag_table.Flag(
      "score",
      "=NAME",
      None,
      "The score to maximise: bsuite's score, the return (mean over all episodes) or\n"
      "the final_return (mean over the last half of them). [bsuite]",
      choices=("bsuite", "return", "final_return"),
    ),
  ),
  "How": (
    *flags.FLAGS,
    flag_table.Flag(
      "checkpoint_minutes",
      "=NUMBER",
      5.0,
      "Minutes between two checkpoints of a task. [5]",
      parser=flag_table.PositiveNumber(),
    ),
    flag_table.Flag(
      "output",
      "=DIR",
      "sweep",
      "Directory of the results. [sweep in the current directory]",
    ),
  ),
  "Information": (
    flag_table.Flag("list", "", False, "Prints bsuite's sweeps and tags and exits."),
    command.HELP,
    command.DEBUG,
  ),
}


def main(argv: Sequence[str] | None = None) -> int:
  """Runs the command and returns the exit code (see `command.main`)."""
  return command.main(argv, FLAGS, _sweep, introduction=_INTRODUCTION, outro=_OUTRO)


def _sweep(given: dict[str, Any], argv: list[str]) -> int | command.Work:
  if given["list"]:
    from explorax.experiments.sweeps import selection

    return command.show(selection.listing())
  return functools.partial(_compute, given, argv)


def _compute(given: dict[str, Any], argv: list[str]) -> int:
  from explorax.experiments.sweeps import environments, plan

  with contextlib.ExitStack() as stack:
    if given["envs"]:
      return environments.run(given, argv, stack)
    return plan.Plan(given, argv, stack).run()


if __name__ == "__main__":
  sys.exit(main())
