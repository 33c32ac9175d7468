"""Agents rebuilt from a file of weights, and the episodes that they play.

This needs jax, Haiku, numpy, the imports of the agents' own modules, and the
environment, but not Acme, Reverb or TensorFlow.
"""

import re
import shlex
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import numpy as np

from explorax import environments
from explorax.agents import types
from explorax.agents.wiring import actor as actor_lib
from explorax.environments import user_environments
from explorax.experiments import errors, overrides, presets
from explorax.experiments import weights as weights_lib
from explorax.experiments.runners import loop

# `module:Name` or `module.Name`.
_MODULE = re.compile(r"[A-Za-z_]\w*\s*[.:]")


def evaluate(
  file: str, env: str | None, settings: Sequence[str], episodes: int, seed: int
) -> None:
  """Plays episodes of an exported agent and prints their returns.

  Args:
    file: the exported agent.
    env: the environment; None: the one that the agent was trained in.
    settings: `--set` of the command line.
    episodes: the number of episodes.
    seed: of the environment and of random actions.

  Raises:
    SetUpError: if the file names code that the command line does not name.
  """
  record = weights_lib.load_settings(file)
  _check_trusted(file, record, env, settings)
  env = env or environments.evaluation_name(record["env"])
  environment = environments.make(env, seed=seed)
  try:
    agent = make_agent(record, environments.spec(environment), settings)
    weights = weights_lib.load(file, weights_of(agent))
    returns = []
    played = play(agent, weights, environment, seed=seed, episodes=episodes)
    for number, (value, length) in enumerate(played, start=1):
      returns.append(value)
      print(f"episode {number}: return {value:.6g}, {length:,} steps", flush=True)
  finally:
    environment.close()
  print(f"{record['agent']} on {env}: mean return {np.mean(returns):.6g}")


def _check_trusted(
  file: str, record: dict[str, Any], env: str | None, settings: Sequence[str]
) -> None:
  """Refuses code that only the file names; the command line must name it as well."""
  kind = record["env"].partition(":")[0]
  needed = []
  if env is None and kind not in user_environments.KINDS:
    needed.append(f"--env={record['env']}")
  needed.extend(
    f"--set {shlex.quote(setting)}"
    for setting in record["settings"]
    if _MODULE.search(setting.partition("=")[2]) and setting not in settings
  )
  if needed:
    raise errors.SetUpError(
      f"{file} names code of your own, which does not run unless the command line "
      f"names it too; if you trust it, add {' '.join(needed)}."
    )


def make_agent(
  record: dict[str, Any], spec: types.EnvironmentSpec, changes: Sequence[str] = ()
) -> types.Agent:
  """Rebuilds the agent of a config.json for an environment's spec and new settings."""
  if record["agent"] not in presets.PRESETS:
    raise errors.SetUpError(
      f"the weights are of the agent {record['agent']!r}, which does not exist here."
    )
  preset = presets.PRESETS[record["agent"]]
  changed = {change.partition("=")[0] for change in changes}
  kept = [x for x in record["settings"] if x.partition("=")[0] not in changed]
  config = overrides.apply(preset.config_for(record["env"]), [*kept, *changes])
  return preset.make_agent(config, spec)


def weights_of(agent: types.Agent) -> Any:
  """The shapes of an agent's weights."""
  learner = agent.learner
  key = jax.random.PRNGKey(0)
  return jax.eval_shape(lambda key: learner.params(learner.init(key)), key)


def play(
  agent: types.Agent, weights: Any, environment: Any, *, seed: int, episodes: int
) -> Iterator[tuple[float, int]]:
  """Plays episodes of the evaluation policy: (return, steps) of each."""

  class Source:
    def get_variables(self, names: Sequence[str]) -> list[Any]:
      del names
      return [weights]

  core = agent.actor(evaluation=True)
  for number in range(1, episodes + 1):
    key = jax.random.fold_in(jax.random.PRNGKey(seed), number)
    actor = actor_lib.Actor(agent, core, Source(), key)
    actor.env_steps = actor_lib.MAX_ENV_STEPS  # Schedules have reached their end.
    episode = loop.EnvironmentLoop([environment], actor)
    while not episode.step():
      pass
    (slot,) = episode.slots
    yield float(slot.tracker.episode_return), slot.tracker.length
