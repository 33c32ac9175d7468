"""What a run needs: its agent and its environments, checked, the cheapest first."""

import contextlib
import dataclasses
import functools
import resource
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import numpy as np

from explorax import environments, notation
from explorax.agents import types
from explorax.agents.wiring import builder
from explorax.environments import jax_adapter, rendering
from explorax.experiments import config as config_lib
from explorax.experiments import errors, presets, processes, trained
from explorax.experiments import settings as settings_lib
from explorax.experiments.recording import loggers
from explorax.experiments.runners import common, device, user_agents


@dataclasses.dataclass(frozen=True)
class CallerObjects:
  """Objects that a Python caller provides, and closes; None: the config names them."""

  agent: trained.Agent | types.Agent | None = None
  environment: Any = None  # Of any protocol that `environments.wrap` takes.
  evaluation_environment: Any = None  # Also by its name.
  params: Sequence[Any] = ()  # Of an environment written in JAX, one for each seed.


NO_OBJECTS = CallerObjects()


@dataclasses.dataclass(frozen=True)
class Parts:
  """What a runner needs, checked.

  Attributes:
    agent: as the runner takes it.
    make_environment: makes another environment of the run, and is picklable; None if
      the caller provided the environment.
    params: of `CallerObjects`.
  """

  config: config_lib.RunConfig
  agent: Any
  environment: environments.StandardEnvironment | environments.BatchedEnvironment
  evaluation_environment: environments.StandardEnvironment | None
  make_environment: common.MakeEnvironment | None
  params: Sequence[Any]


def resolve(
  config: config_lib.RunConfig, agent: trained.Agent | types.Agent | None = None
) -> tuple[config_lib.RunConfig, dict[str, Any]]:
  """The config with all names and bsuite's own length, and its part of `config.json`.

  `agent` is that of the caller, if there is one.
  """
  if config.has_user_agent:
    settings: Any = {"module": config.agent.partition(":")[0]}
  elif isinstance(agent, types.Agent):
    settings = settings_lib.to_json(agent.config)
  else:
    preset = presets.find(config.agent)
    env = preset.environment_for(config.env)
    agent_config = settings_lib.apply(preset.config_for(env), config.settings)
    settings = settings_lib.to_json(agent_config)
    config = dataclasses.replace(config, env=env)
  kind, _, bsuite_id = config.env.partition(":")
  if kind == "bsuite" and not config.length:
    with contextlib.suppress(KeyError):  # Its environment cannot be made.
      episodes = environments.bsuite_sweeps.num_episodes(bsuite_id)
      config = dataclasses.replace(config, episodes=episodes)
  return config, {"config": settings, **config.record()}


@contextlib.contextmanager
def opened(
  config: config_lib.RunConfig, objects: CallerObjects = NO_OBJECTS, resumed_at: int = 0
) -> Iterator[Parts]:
  """Creates the agent and the environments of a config from `resolve`.

  Environments that the caller does not provide are closed after the block.

  If the run resumes, at environment step `resumed_at`, environments get other seeds:
  with their first ones they would repeat the episodes. An object of dm_env keeps the
  seed with which the caller made it.
  """
  _check_installed(config)
  environment, make_environment = objects.environment, None
  seed = config.seed
  if resumed_at:
    seed = environment_seed(seed, common.TRAINING, 0, resumed_at)
  with contextlib.ExitStack() as stack:
    if environment is not None:
      environment = environments.wrap(environment, seed=seed)
    else:
      environment = _first_environment(config, seed)
      stack.callback(common.close, environment)
      make_environment = functools.partial(_make_environment, config, resumed_at)
    if config.runner == config_lib.DEVICE and not config.is_batched:
      device.pure(environment)  # Refuses one that is not written in JAX.
    evaluation = _evaluation_environment(config, objects, environment, resumed_at)
    is_ours = isinstance(objects.evaluation_environment, str | None)
    if evaluation is not None and is_ours:
      stack.callback(common.close, evaluation)
    if evaluation is None and make_environment is None:
      config = dataclasses.replace(config, eval_episodes=0, eval_steps=None)
    agent = _agent(config, objects.agent, environments.spec(environment))
    if not config.length:
      raise errors.SetUpError(
        f"the run has no limit: give --episodes or --steps ({config.env} has no "
        "default length; only bsuite's environments have one)."
      )
    yield Parts(
      config, agent, environment, evaluation, make_environment, objects.params
    )


def _check_installed(config: config_lib.RunConfig) -> None:
  """Refuses what is not installed or does not exist, before anything is made."""
  if config.runner == config_lib.DISTRIBUTED:
    errors.check_installed("ray")
    if config.ray_address is None:
      processes.prepare()
  if config.logger is not None:
    loggers.find(config.logger)
  if config.callback is not None:
    notation.import_attribute(config.callback, "callback")
  if config.replay == "reverb":
    builder.import_reverb_replay()
  try:
    jax.devices()
  except (AssertionError, RuntimeError):
    names = jax.config.values["jax_platforms"]
    raise errors.SetUpError(f"JAX finds no device of JAX_PLATFORMS={names}.") from None
  if config.num_seeds > 1:  # Each of them keeps files open.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _first_environment(config: config_lib.RunConfig, seed: int) -> Any:
  if config.is_batched:
    num_envs = config.num_envs or 1
    return environments.make_batched(config.env, num_envs=num_envs, seed=seed)
  return environments.make(_name(config), seed=seed)


def _agent(
  config: config_lib.RunConfig,
  given: trained.Agent | types.Agent | None,
  spec: types.EnvironmentSpec,
) -> Any:
  """The agent as runners take it, the caller's if one is given."""
  if given is None and config.has_user_agent:
    return user_agents.make(config.agent, spec, config.seed)
  if given is None:
    given = trained.make_agent(config.agent, config.env, spec, config.settings)
  agent = trained.core(given)
  trained.check_spec(agent.spec, getattr(given, "env", "the caller"), spec)
  if config.init_weights is not None:
    agent = trained.starting_from(config.init_weights, agent)
  return agent


def _evaluation_environment(
  config: config_lib.RunConfig,
  objects: CallerObjects,
  environment: Any,
  resumed_at: int,
) -> environments.StandardEnvironment | None:
  """The environment of the evaluations.

  None if there is none, or only one at the end, for which it is made then. A run in the
  caller's own environment ends without an evaluation if there is no second one.
  """
  second = objects.evaluation_environment
  if objects.environment is None and second is None:
    if config.video:
      errors.check_installed("PIL")
      rendering.check(config.env, seed=config.seed)
    elif config.eval_every is None:
      return None
    return _make_environment(config, resumed_at, common.EVALUATION, 0)
  if config.runner == config_lib.DISTRIBUTED or config.video:
    raise ValueError(
      "runner='distributed' and video=True make environments; give the name of one, as "
      "gym:CartPole-v1 or module:function."
    )
  if not config.evaluates:
    return None
  seed = environment_seed(config.seed, common.EVALUATION, 0, resumed_at)
  if second is None:
    raw = environment.raw
    is_jax = isinstance(raw, jax_adapter.JaxEnvironment)
    second = raw.pure if is_jax else getattr(raw, "recreated", lambda: None)()
  if second is None and config.eval_every is not None:
    raise ValueError(
      f"eval_every={config.eval_every} needs a second environment; give evaluation_env."
    )
  if isinstance(second, str):
    return environments.make(environments.evaluation_name(second), seed=seed)
  return None if second is None else environments.wrap(second, seed=seed)


def _make_environment(
  config: config_lib.RunConfig, resumed_at: int, role: str, number: int
) -> environments.StandardEnvironment:
  """Makes an additional environment of the run with its own seed.

  It is the one of this number in its role, `training` or `evaluation`, since the run
  has resumed at this environment step.
  """
  seed = environment_seed(config.seed, role, number, resumed_at)
  if role == common.TRAINING:
    return environments.make(_name(config), seed=seed)
  name = environments.evaluation_name(_name(config))
  return (rendering if config.video else environments).make(name, seed=seed)


def _name(config: config_lib.RunConfig) -> str:
  """The environment's name; on the device that of the copy of bsuite's in JAX."""
  kind, _, bsuite_id = config.env.partition(":")
  if config.runner == config_lib.DEVICE and kind == "bsuite":
    return environments.bsuite_sweeps.jax_equivalent(bsuite_id) or config.env
  return config.env


def environment_seed(seed: int, role: str, number: int, resumed_at: int) -> int:
  """The seed of an additional environment; arguments as in `_make_environment`."""
  stream = (common.TRAINING, common.EVALUATION).index(role)
  entropy = (seed, stream, number, *([resumed_at] if resumed_at else []))
  return int(np.random.SeedSequence(entropy).generate_state(1)[0])
