"""The users' own agents: any object with the methods of bsuite's `Agent`.

select_action(timestep) → action
update(timestep, action, new_timestep) → None

Such an agent cannot be saved: an interrupted run starts again.
"""

import inspect
import operator
import random
from typing import Any

import dm_env
import numpy as np

from explorax import environments, notation
from explorax.experiments import config as config_lib
from explorax.experiments.runners import common, course


def make(name: str, spec: environments.EnvironmentSpec, seed: int) -> Any:
  """Calls `module:function`, which makes an agent for environments of a spec.

  Like the `default_agent` of bsuite's baselines, it gets an observation spec, an action
  spec and, if it accepts it, `seed=`. The current directory is importable. This seeds
  numpy's and Python's global generators, which bsuite's baselines use.

  Raises:
    ValueError: if there is no such module or function.
    TypeError: if the function takes other arguments.
  """
  factory = notation.import_attribute(name, "agent")
  random.seed(seed)
  np.random.seed(seed)
  specs, seeded = (spec.observations, spec.actions), {"seed": seed}
  try:
    inspect.signature(factory).bind(*specs, **seeded)
  except TypeError:  # It takes no seed.
    seeded = {}
  return factory(*specs, **seeded)


def run(
  agent: Any,
  environment: dm_env.Environment,
  config: config_lib.RunConfig,
  hooks: common.Hooks = common.NO_HOOKS,
  *,
  evaluation_environment: None = None,
) -> list[common.Result]:
  """bsuite's own loop (`bsuite/baselines/experiment.py`), with a check of actions.

  Args:
    agent: from `make`.
    environment, config, hooks: as in `local.run`.
    evaluation_environment: not supported.

  Raises:
    ValueError: for an invalid action.
  """
  del evaluation_environment
  num_actions = environment.action_spec().num_values
  clock = course.Clock()
  clock.mark_warm(0)
  env_steps = episodes = 0

  def is_complete() -> bool:
    return config.is_reached(env_steps, episodes) or hooks.ended()

  def columns() -> dict[str, Any]:
    return {
      "env_steps": env_steps,
      "learner_updates": env_steps,
      "steps_per_second": clock.steps_per_second(env_steps),
      "wall_seconds": clock.seconds,
      "seed": config.seed,
    }

  timestep, tracker = dm_env.termination(0.0, None), common.EpisodeTracker()
  while not is_complete() and not hooks.stop():
    if timestep.last():
      hooks.on_activity(common.ACTING, env_steps)
      timestep, tracker = environment.reset(), common.EpisodeTracker()
    action = _legal(agent.select_action(timestep), num_actions)
    before, timestep = timestep, environment.step(action)
    agent.update(before, action, timestep)
    tracker.stepped(timestep.reward)
    env_steps += 1
    if env_steps % config.log_every == 0:
      hooks.on_log(common.LogRow(**columns(), metrics={}))
    if timestep.last():
      episodes += 1
      episode = common.Episode(
        **columns(),
        episode=episodes,
        episode_return=tracker.episode_return,
        episode_length=tracker.length,
        policy="policy",
        metrics=environments.episode_metrics(environment),
      )
      hooks.on_episodes([episode])
  result = common.Result(
    weights=None,
    env_steps=env_steps,
    episodes=episodes,
    learner_updates=env_steps,
    steps_per_second=clock.steps_per_second(env_steps),
    interrupted=not is_complete(),
  )
  return [result]


def _legal(action: Any, num_actions: int) -> int:
  try:
    index = operator.index(np.asarray(action).item())
  except (TypeError, ValueError):
    index = -1
  if not 0 <= index < num_actions:
    raise ValueError(
      f"the agent chose the action {action!r}; it must be one integer from 0 to "
      f"{num_actions - 1}"
    )
  return index
