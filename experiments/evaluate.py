"""Plays a trained agent: `python -m explorax.experiments.evaluate PATH --env=...`.

This needs jax, Haiku, numpy, the imports of the agents' own modules, and the
environment, but not Acme, Reverb or TensorFlow.
"""

import dataclasses
import sys
from collections.abc import Sequence
from typing import Annotated, Any

from explorax import ranges
from explorax.experiments import command, errors

_INTRODUCTION = """\
Plays episodes of a trained agent's evaluation policy.

  python -m explorax.experiments.evaluate PATH [flags]

PATH is a run's directory (with --seeds, of one of its seeds), or its
checkpoints/final.npz alone.
"""


@dataclasses.dataclass(frozen=True)
class Flags:
  """The flags of the command."""

  ## What to play
  # The environment. [the one that the agent was trained in]
  env: str | None = None
  # Changes a setting that the weights do not depend on (--set evaluation_policy=-1), or
  # confirms a setting of PATH that names a module of your own: PATH alone cannot make
  # this command import it.
  set: tuple[str, ...] = ()
  # Number of episodes. [5]
  episodes: Annotated[int, ranges.Range(ge=1)] = 5
  # An episode that does not end is left after so many steps. [1,000,000]
  max_steps: Annotated[int, ranges.Range(ge=1)] = 1000000
  # Seed of the environment and of random actions. [0]
  seed: Annotated[int, ranges.Range(ge=0, le=2**32 - 1)] = 0


def main(argv: Sequence[str] | None = None) -> int:
  """Runs the command and returns the exit code (see `command.main`)."""
  return command.main(
    argv, [Flags], _play, introduction=_INTRODUCTION, positional="files"
  )


def _play(flags: dict[str, Any], argv: list[str]) -> int:
  from explorax.experiments import results

  del argv
  if len(flags["files"]) != 1:
    raise errors.SetUpError("give one path, of a run's directory or its final.npz.")
  policy = results.load(flags["files"][0], settings=flags["set"], seed=flags["seed"])
  limits = {name: flags[name] for name in ("episodes", "max_steps", "seed")}
  returns = results.evaluate(policy, flags["env"], **limits)
  for number, value in enumerate(returns, start=1):
    print(f"episode {number}: return {value:.6g}")
  print(f"mean return {returns.mean():.6g}")
  return 0


if __name__ == "__main__":
  sys.exit(main())
