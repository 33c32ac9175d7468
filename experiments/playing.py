"""Agents rebuilt from a file of weights, and the episodes that they play.

This needs jax, Haiku, numpy, the imports of the agents' own modules, and the
environment, but not Acme, Reverb or TensorFlow.
"""

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


def evaluate(
  file: str,
  env: str | None,
  settings: Sequence[str],
  *,
  episodes: int,
  max_steps: int,
  seed: int,
) -> None:
  """Plays episodes of an exported agent and prints their returns.

  Args:
    file: the exported agent.
    env: the environment; None: the one that the agent was trained in.
    settings: `--set` of the command line.
    episodes: the number of episodes.
    max_steps: an episode is left after so many.
    seed: of the environment and of random actions.

  Raises:
    SetUpError: if the file names code that the command line does not name.
  """
  record = weights_lib.load_settings(file)
  if env is None:
    kind, _, rest = record["env"].partition(":")
    if kind not in user_environments.KINDS or ":" in rest:  # It names a module.
      raise _foreign(file, f"--env={record['env']}")
    env = environments.evaluation_name(record["env"])
  environment = environments.make(env, seed=seed)
  try:
    agent = make_agent(record, environments.spec(environment), settings)
    weights = weights_lib.load(file, weights_of(agent))
    returns = []
    played = play(
      agent, weights, environment, seed=seed, episodes=episodes, max_steps=max_steps
    )
    for number, (value, length, ended) in enumerate(played, start=1):
      returns.append(value)
      left = "" if ended else ", without an end"
      print(f"episode {number}: return {value:.6g}, {length:,} steps{left}", flush=True)
  except overrides.ForeignCodeError as error:
    raise _foreign(file, f"--set {shlex.quote(str(error))}") from None
  finally:
    environment.close()
  print(f"{record['agent']} on {env}: mean return {np.mean(returns):.6g}")


def _foreign(file: str, flag: str) -> errors.SetUpError:
  return errors.SetUpError(
    f"{file} names code that is not ours, which does not run unless the command line "
    f"names it too; if you trust it, add {flag}."
  )


def make_agent(
  record: dict[str, Any], spec: types.EnvironmentSpec, changes: Sequence[str] = ()
) -> types.Agent:
  """Rebuilds the agent of a config.json for an environment's spec and new settings.

  Raises:
    ForeignCodeError: if the record names code that `changes` does not name.
  """
  if record["agent"] not in presets.PRESETS:
    raise errors.SetUpError(
      f"the weights are of the agent {record['agent']!r}, which does not exist here."
    )
  preset = presets.PRESETS[record["agent"]]
  changed = {change.partition("=")[0] for change in changes}
  kept = [x for x in record["settings"] if x.partition("=")[0] not in changed]
  config = overrides.apply(preset.config_for(record["env"]), changes, kept)
  return preset.make_agent(config, spec)


def weights_of(agent: types.Agent) -> Any:
  """The shapes of an agent's weights."""
  learner = agent.learner
  key = jax.random.PRNGKey(0)
  return jax.eval_shape(lambda key: learner.params(learner.init(key)), key)


def play(
  agent: types.Agent,
  weights: Any,
  environment: Any,
  *,
  seed: int,
  episodes: int,
  max_steps: int,
) -> Iterator[tuple[float, int, bool]]:
  """Plays episodes of the evaluation policy: (return, steps, has ended) of each."""
  core = agent.actor(evaluation=True)
  for number in range(1, episodes + 1):
    key = jax.random.fold_in(jax.random.PRNGKey(seed), number)
    actor = actor_lib.Actor(agent, core, actor_lib.Constant(weights), key)
    actor.env_steps = actor_lib.MAX_ENV_STEPS  # Schedules have reached their end.
    episode = loop.EnvironmentLoop([environment], actor)
    (slot,) = episode.slots
    while not (ended := episode.step()) and slot.tracker.length < max_steps:
      pass
    yield slot.tracker.episode_return, slot.tracker.length, bool(ended)
