"""What a run of `run.py` needs, checked and made before it begins."""

import dataclasses
import datetime
import functools
import math
import resource
import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from explorax.experiments import config as config_lib
from explorax.experiments import errors
from explorax.experiments.recording import console as console_lib

# Open files: of each seed's output, and of everything else.
_FILES_PER_SEED = 2
_OTHER_FILES = 64

if TYPE_CHECKING:
  from explorax import environments
  from explorax.agents import types
  from explorax.experiments import output
  from explorax.experiments.checkpoints import checkpointer
  from explorax.experiments.runners import core


@dataclasses.dataclass(frozen=True)
class Job:
  """All that a run needs, checked."""

  config: config_lib.RunConfig
  agent: "types.Agent"
  environment: "environments.StandardEnvironment | environments.BatchedEnvironment"
  evaluation_environment: "environments.StandardEnvironment | None"
  directory: "output.RunDirectory"
  record: dict[str, Any]  # The content of config.json.
  checkpoints: "checkpointer.Checkpointer | None"  # None: the run is finished already.

  @property
  def make_environment(self) -> "core.MakeEnvironment":
    """Makes another environment of the run; other processes can unpickle it."""
    return functools.partial(_make_environment, self.config)


def set_up(config: config_lib.RunConfig, argv: list[str]) -> Job:
  """Checks and makes everything that the run needs, the cheapest first."""
  from explorax.experiments import overrides, presets

  if config.agent not in presets.PRESETS:
    raise errors.SetUpError(
      f"there is no agent {config.agent!r}."
      f"{errors.nearest(config.agent, list(presets.PRESETS))} --list_agents shows "
      "all of them."
    )
  preset = presets.PRESETS[config.agent]
  config = dataclasses.replace(config, env=preset.environment_for(config.env))
  agent_config = overrides.apply(preset.config_for(config.env), config.settings)

  from explorax import environments
  from explorax.agents.wiring import builder
  from explorax.experiments import output, resuming

  if config.replay == "reverb":
    builder.import_reverb_replay()
  if config.runner == config_lib.DISTRIBUTED:
    from explorax.experiments import ray_cluster

    ray_cluster.check_installed()
    if config.ray_address is None:
      ray_cluster.prepare()
  if config.num_seeds > 1:
    check_open_files(config.num_seeds)
  directory = output.RunDirectory.create(
    config.output, may_hold_run=config.resume, is_locked=True
  )
  try:
    environment: environments.StandardEnvironment | environments.BatchedEnvironment
    if config.is_batched:
      environment = environments.make_batched(
        config.env, num_envs=config.num_envs or 1, seed=config.seed
      )
    else:
      environment = environments.make(
        config.env,
        seed=config.seed,
        record_to=str(directory.path / "bsuite"),
        overwrite=directory.holds_run,
      )
    evaluation_environment = _evaluation_environment(config)
    agent = preset.make_agent(agent_config, environments.spec(environment))
    config = _with_limit(config, environment)
    if config.runner == config_lib.DISTRIBUTED:
      from explorax.experiments.runners import distributed

      distributed.check(agent, config)
    if config.runner == config_lib.DEVICE:
      from explorax.experiments.runners import device

      device.check_memory(agent, environment, config)
    record = _record(config, argv, agent_config)
    checkpoints = None
    if not directory.holds_run:
      checkpoints = _make_checkpointer(config, directory, record, environment)
      directory.write_json("config.json", record)
    else:
      held = directory.read_settings()
      resuming.check_same(directory, held, record)
      if not resuming.is_finished(directory):
        checkpoints = _make_checkpointer(config, directory, record, environment)
        record = _resume(directory, held, record, checkpoints)
  except BaseException:
    directory.discard()
    raise
  return Job(
    config, agent, environment, evaluation_environment, directory, record, checkpoints
  )


def check_open_files(num_seeds: int) -> None:
  """Raises the limit of open files to what the seeds need.

  Raises:
    SetUpError: if the system does not allow it.
  """
  needed = num_seeds * _FILES_PER_SEED + _OTHER_FILES
  soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
  if soft == resource.RLIM_INFINITY or needed <= soft:
    return
  if hard != resource.RLIM_INFINITY and needed > hard:
    most = max(0, hard - _OTHER_FILES) // _FILES_PER_SEED
    raise errors.SetUpError(
      f"{num_seeds} seeds keep {needed} files open, and this process may have {hard}; "
      f"use at most {most} seeds, or raise the limit (ulimit -Hn)."
    )
  resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def _make_checkpointer(
  config: config_lib.RunConfig,
  directory: "output.RunDirectory",
  record: Mapping[str, Any],
  environment: Any,
) -> "checkpointer.Checkpointer":
  """The run's checkpointer, which has searched for the newest checkpoint."""
  from explorax.environments import saving
  from explorax.experiments import resuming
  from explorax.experiments.checkpoints import checkpointer

  with_replay = config.checkpoint_replay
  if with_replay is None:
    is_exact = config.runner != config_lib.DISTRIBUTED and config.replay != "reverb"
    with_replay = is_exact and saving.is_exact(environment)
  hours = config.keep_checkpoint_hours
  return checkpointer.Checkpointer(
    directory.path / "checkpoints",
    resuming.fingerprint(record),
    with_replay=with_replay,
    every=config.checkpoint_every,
    minutes=config.checkpoint_minutes,
    keep=config.keep_checkpoints,
    keep_hours=math.inf if hours is None else hours,
    warn=console_lib.print_error,
  )


def _resume(
  directory: "output.RunDirectory",
  held: Mapping[str, Any],
  record: Mapping[str, Any],
  checkpoints: "checkpointer.Checkpointer",
) -> dict[str, Any]:
  """Notes that the run is resumed; returns its config.json."""
  from explorax.experiments import resuming

  env_steps = 0 if checkpoints.found is None else checkpoints.found.record["env_steps"]
  if others := resuming.other_versions(held, record):
    console_lib.print_error(
      f"other versions than when the run began ({', '.join(others)}): it resumes, but "
      "not to the bit."
    )
  record = resuming.resumed_record(held, record, env_steps)
  directory.write_json("config.json", record)
  return record


def _evaluation_environment(
  config: config_lib.RunConfig,
) -> "environments.StandardEnvironment | None":
  """That of the evaluations, if there are to be any; checks that it can be drawn."""
  if not config.evaluates:
    return None
  if config.video:
    from explorax.environments import rendering
    from explorax.experiments.recording import video

    video.check_installed()
    rendering.check(config.env, seed=config.seed)
  return _make_environment(config, "evaluation", 0)


def _make_environment(
  config: config_lib.RunConfig, role: str, number: int
) -> "environments.StandardEnvironment":
  """An environment beside the first one of the run, with a seed of its own.

  Args:
    config: of the run.
    role: `training` or `evaluation`.
    number: tells those of one role apart.
  """
  import numpy as np

  from explorax import environments
  from explorax.environments import rendering

  stream = ("training", "evaluation").index(role)
  sequence = np.random.SeedSequence((config.seed, stream, number))
  seed = int(sequence.generate_state(1)[0])
  if role == "training":
    return environments.make(config.env, seed=seed)
  name = environments.evaluation_name(config.env)
  return (rendering if config.video else environments).make(name, seed=seed)


def _with_limit(
  config: config_lib.RunConfig,
  environment: "environments.StandardEnvironment | environments.BatchedEnvironment",
) -> config_lib.RunConfig:
  """With bsuite's own number of episodes where no limit was given."""
  if config.episodes is not None or config.steps is not None:
    return config
  raw = getattr(environment, "raw", environment)
  episodes = getattr(raw, "bsuite_num_episodes", None)
  if episodes is None:
    raise errors.SetUpError(
      f"nothing says how long to run: give --episodes or --steps ({config.env} has no "
      "number of its own; bsuite's environments have)."
    )
  return dataclasses.replace(config, episodes=episodes)


def _record(
  config: config_lib.RunConfig, argv: list[str], agent_config: Any
) -> dict[str, Any]:
  """Everything needed to repeat the run."""
  from explorax.experiments import overrides, versions

  return {
    "command": shlex.join(["python", "-m", "explorax.experiments.run", *argv]),
    "config": overrides.to_dict(agent_config),
    **config.record(),
    "started": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    "versions": versions.collect(),
  }
