"""Sweeps agents over environments: `python -m explorax.experiments.sweep --help`.

Each agent in each environment with each seed is a run, with the directory that
`experiments.run` leaves. Finished runs are kept; the same command again computes only
the missing ones.
"""

import contextlib
import dataclasses
import pathlib
import shlex
import sys
from collections.abc import Sequence
from typing import Any, Literal

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

  The best of six settings in an environment of gymnasium:
    python -m explorax.experiments.sweep --agents=double_dqn --envs=gym:CartPole-v1 \\
      --set double_dqn.learning_rate=1e-4,5e-4,1e-3 --set double_dqn.n_step=1,3 \\
      --steps=20000 --seeds=3 --output=results/tuning

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
  # bsuite's experiments (deep_sea), tags (exploration), SWEEP, TESTING, or ids such as
  # deep_sea/0. Without --episodes or --steps each id has bsuite's own number of
  # episodes.
  sweep: str | None = None
  # Environments of any kind (run --list_envs), beside those of --sweep; also groups of
  # Atari games, as atari57, whose preprocessing may be set:
  # atari57_hard_exploration/sticky=0.25.
  envs: str | None = None

  ## Search for an agent's settings
  # The score to maximise, if --set AGENT.FIELD=VALUE,VALUE lists values: every
  # combination is run, and the best by its mean is printed. The return is the mean over
  # all training episodes, the evaluation the last one. The seeds start at 1,000,000 +
  # --seed, which no other sweep uses. --flagfile=papers/tdu/table3.flags has the grids
  # of paper 4. [evaluation; return with --eval_episodes=0]
  score: Literal["return", "evaluation"] | None = None

  ## All runs
  # Directory of the results. [sweep in the current directory]
  output: str = "sweep"


def main(argv: Sequence[str] | None = None) -> int:
  """Runs the command and returns the exit code (see `command.main`)."""
  return command.main(
    argv,
    [Flags, config_lib.RunConfig],
    _sweep,
    introduction=_INTRODUCTION,
    outro=_OUTRO,
  )


def _sweep(flags: dict[str, Any], argv: list[str]) -> command.Work:
  del argv
  from explorax.experiments import grid, report, tuning

  for name, others in (("agent", "agents"), ("env", "envs")):
    if flags[name]:
      raise errors.SetUpError(f"a sweep takes --{others}={flags[name]}, not --{name}.")
  agents = grid.agents(flags["agents"])
  envs = grid.environments(flags["sweep"], flags["envs"])
  tried, settings = tuning.split(flags["set"], agents)
  run_flags = {**flags, "workers": None, "set": settings}
  if tried:
    agents = tuning.variants(tried, agents)
    run_flags["seed"] += _FIRST_TUNING_SEED
  elif flags["score"]:
    raise errors.SetUpError("--score is for --set AGENT.FIELD=VALUE,VALUE.")
  ray_address = None
  if flags["runner"] != config_lib.DISTRIBUTED:  # Else it is that of the runs.
    ray_address, run_flags["ray_address"] = flags["ray_address"], None
  folder = pathlib.Path(flags["output"]).expanduser()
  configs = grid.configs(run_flags, agents, envs, folder)
  evaluates = all(config.evaluates for config in configs)
  score = flags["score"] or ("evaluation" if evaluates else "return")
  if score == "evaluation" and not evaluates:
    raise errors.SetUpError("--score=evaluation is for runs with evaluations.")
  grid.check(configs)
  console = console_lib.Console(sys.stdout)
  directory = output.RunDirectory.create(folder)

  def work() -> int:
    with contextlib.ExitStack() as stack:
      stack.callback(directory.unlock)
      number = summary.count(len(configs) * flags["seeds"], "run")
      console.line(f"{number}, into {directory.path}")
      code = grid.compute(
        configs, console, workers=flags["workers"], ray_address=ray_address
      )
      if code in (0, 1) and tried:
        console.line(f"\n{tuning.report(configs, directory, score)}")
      elif code == 0:
        asked = f"python -m explorax.experiments.report {shlex.quote(str(folder))}"
        tables = report.make([str(folder)]).shown
        console.line("\n" + "\n\n".join([*tables, f"The report: {asked}"]))
      return code

  return work


if __name__ == "__main__":
  sys.exit(main())
