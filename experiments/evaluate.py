"""Plays an exported agent: `python -m explorax.experiments.evaluate FILE --env=...`.

This needs jax, Haiku, numpy, the imports of the agents' own modules, and the
environment, but not Acme, Reverb or TensorFlow.
"""

from collections.abc import Sequence
from typing import Any

from explorax import experiments
from explorax.experiments import command, errors, flag_table

_INTRODUCTION = """\
Plays episodes of an exported agent's evaluation policy.

  python -m explorax.experiments.evaluate FILE [flags]

FILE is written by `python -m explorax.experiments.export`.
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
      "(--set evaluation_policy=-1), or confirms a setting of FILE that names a\n"
      "module of your own: FILE alone cannot make this command import it.",
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
  "Information": (command.HELP, command.DEBUG),
}


def main(argv: Sequence[str] | None = None) -> int:
  """Runs the command and returns the exit code (see `command.main`)."""
  return command.main(argv, FLAGS, _play, introduction=_INTRODUCTION, words="files")


def _play(given: dict[str, Any], argv: list[str]) -> int:
  del argv
  if len(given["files"]) != 1:
    raise errors.SetUpError(
      f"got {len(given['files'])} files; give exactly one, written by "
      "`python -m explorax.experiments.export`."
    )
  (file,) = given["files"]
  experiments.playing.evaluate(
    file,
    given["env"],
    given["set"],
    episodes=given["episodes"],
    max_steps=given["max_steps"],
    seed=given["seed"],
  )
  return 0


if __name__ == "__main__":
  command.leave(main())
