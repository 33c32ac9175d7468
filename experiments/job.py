"""Checks and creates everything that a run of `run.py` needs."""

import dataclasses
import datetime
import functools
import importlib
import math
import resource
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from explorax import environments
from explorax.agents import types
from explorax.agents.replay import memory
from explorax.agents.wiring import builder
from explorax.environments import rendering, specs, standard
from explorax.experiments import (
  callbacks,
  checkpoint,
  errors,
  output,
  presets,
  processes,
  resuming,
  trained,
  versions,
  weights,
)
from explorax.experiments import config as config_lib
from explorax.experiments import settings as settings_lib
from explorax.experiments.recording import console as console_lib
from explorax.experiments.recording import loggers, summary, video
from explorax.experiments.runners import common, device, local, user_agents

# A larger replay is in checkpoints only if the user asks for it.
_SAVED_REPLAY_BYTES = 2**30
_DISTRIBUTED = "explorax.experiments.runners.distributed"  # Imports Ray.
_FEW_UPDATES = 100  # A run with fewer says so.


@dataclasses.dataclass(frozen=True)
class Given:
  """Objects that a Python caller provides, and closes; None: the config names them."""

  agent: types.Agent | None = None
  environment: environments.StandardEnvironment | None = None
  evaluation_environment: environments.StandardEnvironment | None = None
  params: Sequence[Any] = ()  # Of an environment written in JAX, one for each seed.


@dataclasses.dataclass(frozen=True)
class Parts:
  """What a runner needs, checked.

  Attributes:
    make_environment: makes another environment of the run, and is picklable; None if
      the caller provided the environment.
    given: the objects of the caller.
  """

  config: config_lib.RunConfig
  agent: types.Agent
  environment: environments.StandardEnvironment | environments.BatchedEnvironment
  evaluation_environment: environments.StandardEnvironment | None
  make_environment: common.MakeEnvironment | None
  given: Given = Given()

  def close(self) -> None:
    """Closes the environments that the caller did not provide."""
    callers = (self.given.environment, self.given.evaluation_environment)
    for environment in (self.environment, self.evaluation_environment):
      if environment is not None and all(environment is not x for x in callers):
        common.close(environment)


@dataclasses.dataclass(frozen=True)
class Job:
  """A run that leaves files, checked."""

  parts: Parts
  directory: output.RunDirectory
  record: dict[str, Any]  # The content of config.json.
  checkpoints: checkpoint.Checkpointer | None  # None: the run is finished.

  @property
  def config(self) -> config_lib.RunConfig:
    return self.parts.config

  def close(self) -> None:
    """Closes the environments, and unlocks the directory."""
    self.parts.close()
    self.directory.unlock()


def set_up(
  config: config_lib.RunConfig, argv: Sequence[str], given: Given | None = None
) -> Job:
  """Checks and creates everything that the run needs, the cheapest first.

  Args:
    config: the run's config.
    argv: the command line, for config.json.
    given: the objects that the caller provides.
  """
  given = given or Given()
  choice = _choose(config, given)

  directory = output.RunDirectory.create(
    config.output, may_hold_run=True, is_locked=True
  )
  try:
    parts = _make(
      choice,
      given,
      record_to=str(directory.path / "bsuite"),
      overwrite=directory.holds_run,
    )
    spec = environments.spec(parts.environment)
    record = make_record(parts.config, argv, choice.agent_config, spec)
    checkpoints = None
    if not directory.holds_run:
      checkpoints = _make_checkpointer(parts, directory)
      directory.write_json("config.json", record)
    else:
      held = directory.read_settings()
      resuming.check_same(directory, held, record)
      finished = resuming.is_finished(directory)
      if not finished or resuming.is_extended(held, record):
        checkpoints = _make_checkpointer(parts, directory)
        if finished and checkpoints.restored is None:
          raise errors.OutputError(
            f"the run in --output={directory.given} cannot be extended, because it has "
            "no checkpoint; choose another --output."
          )
        record = _resume(directory, held, record, checkpoints)
        if checkpoints.restored is not None:
          env_steps = checkpoints.restored.record["env_steps"]
          parts = _resumed_at(env_steps, parts)
  except BaseException:
    directory.discard()
    raise
  return Job(parts, directory, record, checkpoints)


def make_parts(config: config_lib.RunConfig, given: Given) -> Parts:
  """Everything that a runner needs for a run without files."""
  return _make(_choose(config, given), given)


def few_updates(parts: Parts) -> str:
  """A sentence for a run that is too short to learn; '' for others."""
  config = parts.config
  if config.steps is None or config.has_user_agent:
    return ""
  replay = parts.agent.replay
  learning = max(0, config.steps - replay.min_size + 1)
  updates = int(learning * replay.updates_per_step)
  if updates >= _FEW_UPDATES:
    return ""
  remedies = []
  if replay.updates_per_step * config.steps < _FEW_UPDATES:
    remedies.append(f"a larger updates_per_step (it is {replay.updates_per_step:g})")
  if not remedies or config.steps < replay.min_size:
    remedies.append(f"a smaller min_replay_size (it is {replay.min_size})")
  return (
    f"This run is too short to learn: it makes {summary.count(updates, 'update')} of "
    f"the network, the first after {replay.min_size:,} steps. Use more than "
    f"--steps={config.steps}, or --set {' and '.join(remedies)}."
  )


def resolve(config: config_lib.RunConfig) -> tuple[config_lib.RunConfig, Any]:
  """The config with the environment's full name, and the agent's settings."""
  if config.has_user_agent:
    return config, _user_agent(config).agent_config
  _, env, agent_config = find(config.agent, config.env, config.settings)
  return dataclasses.replace(config, env=env), agent_config


def runner(config: config_lib.RunConfig) -> Any:
  """The module of the config's runner."""
  if config.has_user_agent:
    return user_agents
  if config.runner == config_lib.DISTRIBUTED:
    return importlib.import_module(_DISTRIBUTED)
  return device if config.runner == config_lib.DEVICE else local


def find(agent: str, env: str, settings: Sequence[str]) -> tuple[Any, str, Any]:
  """Finds an agent: its preset, the environment's full name, and the agent's config.

  Args:
    agent: the preset's name.
    env: the environment's `kind:name`.
    settings: `field=value` each, as after `--set`.

  Raises:
    SetUpError: if there is no such agent.
    ValueError: for invalid settings.
  """
  preset = presets.find(agent)
  env = preset.environment_for(env)
  return preset, env, settings_lib.apply(preset.config_for(env), settings)


class _Choice(NamedTuple):
  """The agent and its settings, before the environment exists."""

  config: config_lib.RunConfig
  agent_config: Any
  make_agent: "Callable[[Any, types.EnvironmentSpec], types.Agent]"


def _choose(config: config_lib.RunConfig, given: Given) -> _Choice:
  """Makes the checks that need no environment."""
  agent = given.agent
  if agent is None and config.has_user_agent:
    choice = _user_agent(config)
  elif agent is None:
    preset, env, agent_config = find(config.agent, config.env, config.settings)
    config = dataclasses.replace(config, env=env)
    choice = _Choice(config, agent_config, preset.make_agent)
  else:
    choice = _Choice(config, agent.config, lambda config, spec: _fitting(agent, spec))

  if config.runner == config_lib.DISTRIBUTED:
    processes.check_installed()
    if config.ray_address is None:
      processes.prepare()
  if config.num_seeds > 1:  # Each of them keeps files open.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
  if config.logger is not None:
    loggers.find(config.logger)  # Refuses what does not exist.
  if config.callback is not None:
    callbacks.find(config.callback)
  return choice


def _user_agent(config: config_lib.RunConfig) -> _Choice:
  return _Choice(
    config,
    user_agents.settings(config.agent),
    lambda settings, spec: user_agents.make(config.agent, spec, config.seed),
  )


def _fitting(agent: types.Agent, spec: types.EnvironmentSpec) -> types.Agent:
  """The agent, if it was made for the environment's spec."""
  if agent.spec == spec:
    return agent
  raise ValueError(
    f"the agent was made for {agent.spec}, and the environment has {spec}; make one "
    "for this environment."
  )


def _make(choice: _Choice, given: Given, **of_record: Any) -> Parts:
  """Creates the agent and the environments.

  Args:
    choice: the agent.
    given: the objects that the caller provides.
    **of_record: arguments of `environments.make` for bsuite's CSV.
  """
  config = choice.config
  environment: environments.StandardEnvironment | environments.BatchedEnvironment
  if given.environment is not None:
    environment = given.environment
  elif config.is_batched:
    environment = environments.make_batched(
      config.env, num_envs=config.num_envs or 1, seed=config.seed
    )
  else:
    environment = environments.make(_name(config), seed=config.seed, **of_record)
  evaluation_environment = given.evaluation_environment
  if evaluation_environment is None:
    evaluation_environment = _evaluation_environment(config)
  agent = choice.make_agent(choice.agent_config, environments.spec(environment))
  if config.init_weights is not None:
    agent = trained.starting_from(config.init_weights, agent, config.env)
  config = _with_limit(config, environment)
  if config.runner == config_lib.DEVICE:
    device.check_memory(agent, environment, config)
  elif not config.has_user_agent:
    local.check_memory(agent, config)
  if config.replay == "reverb":
    builder.import_reverb_replay()
  make_environment = functools.partial(_make_environment, config)
  return Parts(
    config,
    agent,
    environment,
    evaluation_environment,
    make_environment if given.environment is None else None,
    given,
  )


def _make_checkpointer(
  parts: Parts, directory: output.RunDirectory
) -> checkpoint.Checkpointer:
  """The run's checkpointer; it has already searched for the newest checkpoint."""
  config = parts.config
  with_replay = config.checkpoint_replay
  if with_replay is None and not config.has_user_agent:
    size = memory.num_bytes(parts.agent, config.steps or math.inf)
    with_replay = config.replay != "reverb" and size <= _SAVED_REPLAY_BYTES
  return checkpoint.Checkpointer(
    directory.path / "checkpoints",
    with_replay=bool(with_replay),
    weights=dict
    if config.has_user_agent
    else functools.cache(lambda: weights.sources(parts.agent.learner)),
    every=config.checkpoint_every,
    minutes=config.checkpoint_minutes,
    warn=console_lib.print_error,
  )


def _resume(
  directory: output.RunDirectory,
  held: Mapping[str, Any],
  record: Mapping[str, Any],
  checkpoints: checkpoint.Checkpointer,
) -> dict[str, Any]:
  """Records that the run resumes; returns its config.json."""
  env_steps = (
    0 if checkpoints.restored is None else checkpoints.restored.record["env_steps"]
  )
  if others := resuming.other_versions(held, record):
    console_lib.print_error(
      f"the run started with other versions ({', '.join(others)}): it resumes, but its "
      "results may differ."
    )
  record = resuming.resumed_record(held, record, env_steps)
  directory.write_json("config.json", record)
  return record


def _resumed_at(env_steps: int, parts: Parts) -> Parts:
  """Gives the environments of a run that resumes seeds of their own.

  With their first seeds they would repeat the episodes.

  Args:
    env_steps: of the checkpoint.
    parts: made as for a new run.
  """
  config, given, changes = parts.config, parts.given, dict[str, Any]()
  if parts.make_environment is not None:
    changes["make_environment"] = functools.partial(
      _make_environment, config, resumed_at=env_steps
    )
  for role, name in (
    (common.TRAINING, "environment"),
    (common.EVALUATION, "evaluation_environment"),
  ):
    environment = getattr(parts, name)
    seed = environment_seed(config.seed, role, 0, env_steps)
    if isinstance(environment, environments.BatchedEnvironment):
      environment.close()
      changes[name] = environments.make_batched(
        config.env, num_envs=config.num_envs or 1, seed=seed
      )
    elif environment is not None and environment is getattr(given, name):
      seed_next_reset = getattr(standard.unwrap(environment), "seed_next_reset", None)
      if seed_next_reset is not None:
        seed_next_reset(seed)
    elif environment is not None:
      environment.close()
      changes[name] = _make_environment(config, role, 0, resumed_at=env_steps)
  return dataclasses.replace(parts, **changes)


def _evaluation_environment(
  config: config_lib.RunConfig,
) -> environments.StandardEnvironment | None:
  """The environment of the evaluations; checks that it can render.

  None if there is none, or only one at the end, for which it is made then.
  """
  if config.video:
    video.check_installed()
    rendering.check(config.env, seed=config.seed)
  elif config.eval_every is None:
    return None
  return _make_environment(config, "evaluation", 0)


def _make_environment(
  config: config_lib.RunConfig, role: str, number: int, resumed_at: int = 0
) -> environments.StandardEnvironment:
  """Makes an additional environment of the run with its own seed.

  Args:
    config: the run's config.
    role: `training` or `evaluation`.
    number: index among the environments of the role.
    resumed_at: environment steps at which the run has resumed.
  """
  seed = environment_seed(config.seed, role, number, resumed_at)
  if role == "training":
    return environments.make(_name(config), seed=seed)
  name = environments.evaluation_name(_name(config))
  return (rendering if config.video else environments).make(name, seed=seed)


def _name(config: config_lib.RunConfig) -> str:
  """The environment's name; on the device that of the copy of bsuite's in JAX."""
  kind, _, bsuite_id = config.env.partition(":")
  if config.runner == config_lib.DEVICE and kind == "bsuite":
    return environments.bsuite_sweeps.jax_equivalent(bsuite_id) or config.env
  return config.env


def environment_seed(seed: int, role: str, number: int, resumed_at: int = 0) -> int:
  """The seed of an additional environment; arguments as in `_make_environment`."""
  stream = ("training", "evaluation").index(role)
  entropy = (seed, stream, number, *([resumed_at] if resumed_at else []))
  return int(np.random.SeedSequence(entropy).generate_state(1)[0])


def _with_limit(
  config: config_lib.RunConfig,
  environment: environments.StandardEnvironment | environments.BatchedEnvironment,
) -> config_lib.RunConfig:
  """Sets bsuite's own number of episodes if the config has no limit."""
  if config.episodes is not None or config.steps is not None:
    return config
  raw = getattr(environment, "raw", environment)
  episodes = getattr(raw, "bsuite_num_episodes", None)
  if config.env.startswith("bsuite:"):
    bsuite_id = config.env.removeprefix("bsuite:")
    episodes = environments.bsuite_sweeps.num_episodes(bsuite_id)
  if episodes is None:
    raise errors.SetUpError(
      f"the run has no limit: give --episodes or --steps ({config.env} has no default "
      "length; only bsuite's environments have one)."
    )
  return dataclasses.replace(config, episodes=episodes)


def make_record(
  config: config_lib.RunConfig,
  argv: Sequence[str],
  agent_config: Any,
  spec: types.EnvironmentSpec | None = None,
) -> dict[str, Any]:
  """Everything needed to repeat the run, and to rebuild its agent.

  Args:
    config: of the run.
    argv: the command line.
    agent_config: the agent's settings.
    spec: of the environment; None in the directory of several runs.
  """
  return {
    "command": shlex.join(["python", "-m", "explorax.experiments.run", *argv]),
    **settings_record(config, agent_config),
    **({} if spec is None else {"spec": specs.to_record(spec)}),
    "started": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    "versions": versions.collect(),
  }


def settings_record(config: config_lib.RunConfig, agent_config: Any) -> dict[str, Any]:
  """The part of config.json that is not of one process."""
  if not config.has_user_agent:
    agent_config = settings_lib.to_json(agent_config)
  return {"config": agent_config, **config.record()}
