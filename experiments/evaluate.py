"""Plays an exported agent: `python -m explorax.experiments.evaluate FILE --env=...`.

This needs jax, Haiku, numpy, the imports of the agents' own modules, and the
environment, but not Acme, Reverb, TensorFlow or Orbax.
"""

import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from explorax.experiments import command, errors, flag_table

if TYPE_CHECKING:
  from explorax.agents import types

_INTRODUCTION = """\
Plays episodes of an exported agent's evaluation policy.

  python -m explorax.experiments.evaluate FILE [flags]

FILE is written by `python -m explorax.experiments.export`.
"""

# `module:Name` or `module.Name`.
_MODULE = re.compile(r"[A-Za-z_]\w*\s*[.:]")

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
  (file,), seed = given["files"], given["seed"]
  import numpy as np

  from explorax import environments
  from explorax.experiments import weights as weights_lib

  record = weights_lib.load_settings(file)
  env = given["env"] or environments.evaluation_name(record["env"])
  _check_trusted(file, record, given)
  environment = environments.make(env, seed=seed)
  try:
    agent = make_agent(record, environments.spec(environment), given["set"])
    weights = weights_lib.load(file, weights_of(agent))
    returns = []
    played = play(agent, weights, environment, seed=seed, episodes=given["episodes"])
    for number, (value, length) in enumerate(played, start=1):
      returns.append(value)
      print(f"episode {number}: return {value:.6g}, {length:,} steps", flush=True)
  finally:
    environment.close()
  print(f"{record['agent']} on {env}: mean return {np.mean(returns):.6g}")
  return 0


def _check_trusted(file: str, record: dict[str, Any], given: dict[str, Any]) -> None:
  """Refuses code that only the file names; the command line must name it as well."""
  from explorax.environments import user_environments

  kind = record["env"].partition(":")[0]
  needed = []
  if given["env"] is None and kind not in user_environments.KINDS:
    needed.append(f"--env={record['env']}")
  needed.extend(
    f"--set {shlex.quote(setting)}"
    for setting in record["settings"]
    if _MODULE.search(setting.partition("=")[2]) and setting not in given["set"]
  )
  if needed:
    raise errors.SetUpError(
      f"{file} names code of your own, which does not run unless the command line "
      f"names it too; if you trust it, add {' '.join(needed)}."
    )


def make_agent(
  record: dict[str, Any], spec: Any, changes: Sequence[str] = ()
) -> "types.Agent":
  """Rebuilds the agent of a config.json for an environment's spec and new settings."""
  from explorax.experiments import overrides, presets

  if record["agent"] not in presets.PRESETS:
    raise errors.SetUpError(
      f"the weights are of the agent {record['agent']!r}, which does not exist here."
    )
  preset = presets.PRESETS[record["agent"]]
  changed = {change.partition("=")[0] for change in changes}
  kept = [x for x in record["settings"] if x.partition("=")[0] not in changed]
  config = overrides.apply(preset.config_for(record["env"]), [*kept, *changes])
  return preset.make_agent(config, spec)


def weights_of(agent: "types.Agent") -> Any:
  """The shapes of an agent's weights."""
  import jax

  learner = agent.learner
  return jax.eval_shape(lambda key: learner.params(learner.init(key)), _key(0))


def play(
  agent: "types.Agent", weights: Any, environment: Any, *, seed: int, episodes: int
) -> Iterator[tuple[float, int]]:
  """Plays episodes of the evaluation policy: (return, steps) of each."""
  import jax

  from explorax.agents.wiring import actor as actor_lib
  from explorax.experiments.runners import loop

  class Source:
    def get_variables(self, names: Sequence[str]) -> list[Any]:
      del names
      return [weights]

  core = agent.actor(evaluation=True)
  for number in range(1, episodes + 1):
    key = jax.random.fold_in(_key(seed), number)
    actor = actor_lib.Actor(agent, core, Source(), key)
    actor.env_steps = actor_lib.MAX_ENV_STEPS  # Schedules have reached their end.
    episode = loop.EnvironmentLoop([environment], actor)
    while not episode.step():
      pass
    (slot,) = episode.slots
    yield float(slot.tracker.episode_return), slot.tracker.length


def _key(seed: int) -> Any:
  import jax

  return jax.random.PRNGKey(seed)


if __name__ == "__main__":
  sys.exit(main())
