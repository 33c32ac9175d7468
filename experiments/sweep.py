"""Sweeps agents over bsuite: `python -m explorax.experiments.sweep --help`.

Every agent on every id with every seed is a task, which Ray runs on a core of its own.
What is done is kept, and the same command does only what is missing.
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
Sweeps agents over bsuite's experiments, on all cores or on a Ray cluster.

  python -m explorax.experiments.sweep --agents=NAME[,NAME...] --sweep=NAME[,NAME...]

Examples
  Three agents on all of Deep Sea, three seeds each:
    python -m explorax.experiments.sweep --agents=tdu,bootstrapped_dqn,dqn_ez \\
      --sweep=deep_sea --seeds=3 --output=results/deep_sea

  To try it out, fifty episodes of one id of each experiment:
    python -m explorax.experiments.sweep --agents=dqn --sweep=TESTING --episodes=50

  The best β of QEX, of those that paper 4 tried, on seeds of its own:
    python -m explorax.experiments.sweep --agents=qex --sweep=deep_sea/0 --seeds=3 \\
      --sweep_config=table3 --output=results/tuning

  An agent of your own, and one of bsuite's, beside ours:
    python -m explorax.experiments.sweep \\
      --agents=dqn,my_agents:make,bsuite.baselines.random:default_agent \\
      --sweep=catch/0,bandit/0
"""

_OUTRO = f"""\
OUTPUT holds results.csv (one table of all), bsuite_csv/AGENT/seedSEED (for bsuite's own
csv_load) and sweep.json (settings, versions, and which tasks are missing and why).
The same command again does what is missing; an interrupted task of our agents resumes
from its newest checkpoint, to the bit, one of your own agents starts again. More seeds,
ids and agents may be added.
{flags.EXIT_CODES}"""

FLAGS = {
  "What to run": (
    flag_table.Flag(
      "agents",
      "=NAME,...",
      None,
      "Agents (run --list_agents), with settings if need be: dqn@n_step=3@beta=0;\n"
      "or your own as module:function, called with\n"
      "(observation_spec, action_spec, seed=...): anything that has bsuite's\n"
      "select_action(timestep) and update(timestep, action, new_timestep).",
    ),
    flag_table.Flag(
      "sweep",
      "=NAME,...",
      None,
      "bsuite's sweeps, experiments and tags (--list), or ids such as deep_sea/0.",
    ),
    flag_table.Flag(
      "seeds",
      "=INT",
      1,
      "How many seeds, --seed being the first. [1]",
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
      "Caps the episodes of each task, for trying things out. [bsuite's own numbers]",
      parser=flag_table.WholeNumber(1),
    ),
    flag_table.Flag(
      "mnist_dir",
      "=DIR",
      None,
      "Where the two files of MNIST's training set are; without them the mnist\n"
      "experiments are left out. [/tmp/mnist]",
    ),
  ),
  "To choose an agent's settings": (
    flag_table.Flag(
      "sweep_config",
      "=GRID",
      None,
      "Tries all of an agent's settings in a grid and names the best: table3 (paper\n"
      "4's), or a .toml or .json file with [agent] and setting = [value, ...]. Its\n"
      "seeds are 1,000,000 + --seed and on, which no other sweep takes.",
    ),
    flag_table.Flag(
      "score",
      "=NAME",
      None,
      "What is best: bsuite's score, the return (of an episode, averaged over all\n"
      "of them) or the final_return (over the last half). [bsuite]",
      choices=("bsuite", "return", "final_return"),
    ),
  ),
  "How": (
    *flags.FLAGS,
    flag_table.Flag(
      "checkpoint_minutes",
      "=NUMBER",
      5.0,
      "Between two checkpoints of a task. [5]",
      parser=flag_table.PositiveNumber(),
    ),
    flag_table.Flag(
      "output",
      "=DIR",
      "sweep",
      "Where results go. [sweep in the current directory]",
    ),
  ),
  "To look around": (
    flag_table.Flag("list", "", False, "Shows bsuite's sweeps and tags and exits."),
    command.HELP,
    command.DEBUG,
  ),
}


def main(argv: Sequence[str] | None = None) -> int:
  """Does what the command line asks and returns the exit code (`command.main`)."""
  return command.main(argv, FLAGS, _sweep, introduction=_INTRODUCTION, outro=_OUTRO)


def _sweep(given: dict[str, Any], argv: list[str]) -> int | command.Work:
  if given["list"]:
    from explorax.experiments.sweeps import selection

    return command.show(selection.listing())
  return functools.partial(_compute, given, argv)


def _compute(given: dict[str, Any], argv: list[str]) -> int:
  from explorax.experiments.sweeps import plan

  with contextlib.ExitStack() as stack:
    return plan.Plan(given, argv, stack).run()


if __name__ == "__main__":
  sys.exit(main())
