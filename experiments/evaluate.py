"""Plays a trained agent: `python -m explorax.experiments.evaluate PATH --env=...`.

This needs jax, Haiku, numpy, the imports of the agents' own modules, and the
environment, but not Acme, Reverb or TensorFlow.
"""

import statistics
import sys
from collections.abc import Sequence
from typing import Any

from explorax.experiments import signals

if __name__ == "__main__":
  signals.end_at_once()

from explorax import experiments
from explorax.experiments import command, compilation, errors, flag_table

_INTRODUCTION = """\
Plays episodes of a trained agent's evaluation policy.

  python -m explorax.experiments.evaluate PATH [flags]

PATH is a run's directory (with --seeds, of one of its seeds), or its
checkpoints/final.npz alone.
"""

FLAGS = {
  "What to play": (
    flag_table.Flag(
      "env",
      "=KIND:NAME",
      None,
      "The environment. [the one that the agent was trained in]",
    ),
    flag_table.Flag(
      "set",
      " FIELD=VALUE",
      [],
      "Changes a setting that the weights do not depend on\n"
      "(--set evaluation_policy=-1), or confirms a setting of PATH that names a\n"
      "module of your own: PATH alone cannot make this command import it.",
    ),
    flag_table.Flag(
      "episodes",
      "=INT",
      5,
      "Number of episodes. [5]",
      parser=flag_table.WholeNumber(1),
    ),
    flag_table.Flag(
      "max_steps",
      "=INT",
      1_000_000,
      "An episode that does not end is left after so many steps. [1,000,000]",
      parser=flag_table.WholeNumber(1),
    ),
    flag_table.Flag(
      "seed",
      "=INT",
      0,
      "Seed of the environment and of random actions. [0]",
      parser=flag_table.WholeNumber(0, 2**32 - 1),
    ),
  ),
  "How": (compilation.FLAG,),
  "Information": (command.HELP, command.DEBUG),
}


def main(argv: Sequence[str] | None = None) -> int:
  """Runs the command and returns the exit code (see `command.main`)."""
  return command.main(argv, FLAGS, _play, introduction=_INTRODUCTION, words="files")


def _play(given: dict[str, Any], argv: list[str]) -> int:
  del argv
  if len(given["files"]) != 1:
    raise errors.SetUpError(
      f"got {len(given['files'])} paths; give exactly one, of a run or its final.npz."
    )
  trained = experiments.trained.read(given["files"][0])
  env = given["env"] or trained.environment()
  limits = {name: given[name] for name in ("episodes", "max_steps", "seed")}
  policy = trained.policy(given["set"], given["seed"])
  played = experiments.trained.evaluate(policy, env, **limits)
  returns = []
  for number, (value, length, ended) in enumerate(played, start=1):
    returns.append(value)
    left = "" if ended else ", without an end"
    print(f"episode {number}: return {value:.6g}, {length:,} steps{left}", flush=True)
  mean = statistics.fmean(returns)
  print(f"{trained.record['agent']} on {env}: mean return {mean:.6g}")
  return 0


if __name__ == "__main__":
  sys.exit(main())
