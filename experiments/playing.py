"""Agents rebuilt from a run or a file of weights, and the episodes that they play.

This needs jax, Haiku, numpy, the imports of the agents' own modules, and the
environment, but not Acme, Reverb or TensorFlow.
"""

import shlex
from collections.abc import Iterator, Sequence
from typing import Any

import jax

from explorax import environments
from explorax.agents import types
from explorax.agents.wiring import actor as actor_lib
from explorax.environments import user_environments
from explorax.experiments import errors, overrides, presets, trained
from explorax.experiments import weights as weights_lib
from explorax.experiments.runners import loop


def evaluate(
  found: trained.Trained,
  env: Any,
  settings: Sequence[str],
  *,
  episodes: int,
  max_steps: int,
  seed: int,
) -> Iterator[tuple[float, int, bool]]:
  """Plays episodes of a trained agent; see `play`.

  Args:
    found: the agent.
    env: the environment's name, or the environment, which is not closed; None: the one
      that the agent was trained in.
    settings: `--set` of the command line.
    episodes: the number of episodes.
    max_steps: an episode is left after so many.
    seed: of the environment and of random actions.

  Raises:
    SetUpError: if the file names code that the caller does not name, or if the agent
      does not fit the environment.
  """
  name = environment_of(found) if env is None else env
  is_named = isinstance(name, str)
  environment: Any = environments.make(name, seed=seed) if is_named else name
  try:
    spec = environments.spec(environment)
    found.check_spec(spec, name if is_named else "the environment")
    agent = rebuilt(found, spec, settings)
    weights = weights_lib.fitted(found.path, found.arrays, weights_of(agent))
    yield from play(
      agent, weights, environment, seed=seed, episodes=episodes, max_steps=max_steps
    )
  finally:
    if is_named:
      environment.close()


def environment_of(found: trained.Trained) -> str:
  """The name of the environment for evaluation, unless it names a module.

  Raises:
    SetUpError: if it does, with what to add to the command.
  """
  name = found.record["env"]
  if user_environments.names_code(name):
    raise _foreign(found, f"--env={name}")
  return environments.evaluation_name(name)


def rebuilt(
  found: trained.Trained, spec: types.EnvironmentSpec, settings: Sequence[str]
) -> types.Agent:
  """The agent, for an environment's spec and changed settings.

  Raises:
    SetUpError: if its settings name code that `settings` do not name.
  """
  try:
    return make_agent(found.record, spec, settings)
  except overrides.ForeignCodeError as error:
    raise _foreign(found, f"--set {shlex.quote(str(error))}") from None


def _foreign(found: trained.Trained, flag: str) -> errors.SetUpError:
  return errors.SetUpError(
    f"{found.path} names code that is not ours, which does not run unless you name it "
    f"too; if you trust it, add {flag} (in Python, env= or settings=)."
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
