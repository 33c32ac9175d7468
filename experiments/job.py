"""What a run of `run.py` needs, checked and made before it begins."""

import dataclasses
import datetime
import functools
import math
import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from explorax.experiments import command as command_lib
from explorax.experiments import errors
from explorax.experiments.recording import console as console_lib

if TYPE_CHECKING:
  from explorax import environments
  from explorax.agents import types
  from explorax.experiments import output
  from explorax.experiments.checkpoints import keeper
  from explorax.experiments.distributed import layout as layout_lib
  from explorax.experiments.runners import local, recovery


@dataclasses.dataclass(frozen=True)
class Job:
  """All that a run needs, checked."""

  command: command_lib.Command
  agent: "types.Agent"
  environment: "environments.StandardEnvironment | environments.BatchedEnvironment"
  evaluation_environment: "environments.StandardEnvironment | None"
  directory: "output.RunDirectory"
  record: dict[str, Any]  # The content of config.json.
  num_episodes: int | None
  checkpoints: "keeper.Keeper | None"  # None: the run is finished already.

  @property
  def title(self) -> str:
    command = self.command
    seeds = f"seed {command.seed}"
    if command.num_seeds > 1:
      last = command.seed + command.num_seeds - 1
      seeds = f"{command.num_seeds} seeds at once, {command.seed} to {last}"
    return f"{command.agent} on {command.env}, {seeds}"

  @property
  def remake_environment(self) -> "recovery.Remake | None":
    """Makes environments anew, but not bsuite's, whose scores would start anew too."""
    if self.command.env.startswith("bsuite:"):
      return None
    return self.make_environment

  @property
  def make_environment(self) -> "recovery.Remake":
    """Makes environments beside the first ones, each of a seed of its own."""
    return functools.partial(_make_environment, self.command)

  @property
  def of_runner(self) -> dict[str, Any]:
    """What this runner is given and others are not."""
    if self.command.runner == "distributed":
      return {
        "make_environment": self.make_environment,
        "layout": _layout(self.command),
        "ray_address": self.command.ray_address,
        "on_processes": self._write_processes,
        "checkpoints": self.checkpoints,
      }
    side_by_side = {"num_envs": self.command.num_envs}
    return {"checkpoints": self.checkpoints} | (
      {} if self.command.num_envs is None else side_by_side
    )

  def _write_processes(self, pids: Mapping[str, int]) -> None:
    """Leaves word of who is where, for whoever looks after the processes."""
    try:
      self.directory.write_json("processes.json", pids)
    except errors.OutputError as error:
      console_lib.complain(error)

  @property
  def length(self) -> str:
    ends = []
    if self.num_episodes is not None:
      ends.append(f"{self.num_episodes:,} episodes")
    if self.command.steps is not None:
      ends.append(f"{self.command.steps:,} steps")
    return " or ".join(ends)

  def is_complete(self, result: "local.Result") -> bool:
    """Whether the run has come to the end that the command line set."""
    limits = [
      (self.num_episodes, result.episodes),
      (self.command.steps, result.env_steps),
    ]
    return any(limit is not None and done >= limit for limit, done in limits)


def set_up(command: command_lib.Command, argv: list[str]) -> Job:
  """Checks and makes everything that the run needs, the cheapest first."""
  from explorax.experiments import overrides, presets

  if command.agent not in presets.PRESETS:
    raise errors.SetUpError(
      f"there is no agent {command.agent!r}."
      f"{overrides.nearest(command.agent, list(presets.PRESETS))} --list_agents shows "
      "all of them."
    )
  preset = presets.PRESETS[command.agent]
  command = dataclasses.replace(command, env=preset.environment_for(command.env))
  config = overrides.apply(preset.config_for(command.env), command.settings)

  from explorax import environments
  from explorax.agents.wiring import builder
  from explorax.experiments import many_seeds, output, resuming, threads

  if command.runner == "local":
    threads.compute_in_caller()
  if command.replay == "reverb":
    builder.import_reverb_replay()
  if command.runner == "distributed":
    from explorax.experiments import ray_cluster

    ray_cluster.check_installed()

  if command.num_seeds > 1:
    many_seeds.check_open_files(command.num_seeds)
  directory = output.RunDirectory.create(command.output, may_hold_run=command.resume)
  try:
    environment: environments.StandardEnvironment | environments.BatchedEnvironment
    if command.is_batched:
      num_envs = command.num_envs or 1
      environment = environments.make_batched(
        command.env, num_envs=num_envs, seed=command.seed
      )
    else:
      environment = environments.make(
        command.env,
        seed=command.seed,
        record_to=str(directory.path / "bsuite"),
        overwrite=directory.holds_run,
      )
    evaluation_environment = _evaluation_environment(command)
    agent = preset.make_agent(config, environments.spec(environment))
    num_episodes = _num_episodes(command, environment)
    if command.runner == "distributed":
      from explorax.experiments.runners import distributed

      distributed.check(agent, _layout(command))
    if command.runner == "device":
      from explorax.experiments.runners import device

      device.check_memory(
        agent, environment, command.num_seeds, num_envs=command.num_envs
      )
    record = _record(command, argv, config, num_episodes)
    checkpoints = None
    if not directory.holds_run:
      checkpoints = _make_keeper(command, directory, record, environment)
      directory.write_json("config.json", record)
    else:
      held = directory.read_settings()
      resuming.check_same(directory, held, record)
      if not resuming.is_finished(directory):
        checkpoints = _make_keeper(command, directory, record, environment)
        record = _go_on(directory, held, record, checkpoints)
  except BaseException:
    directory.discard()
    raise
  return Job(
    command,
    agent,
    environment,
    evaluation_environment,
    directory,
    record,
    num_episodes,
    checkpoints,
  )


def _layout(command: command_lib.Command) -> "layout_lib.Layout":
  """How a run of the distributed runner is spread over processes."""
  from explorax.experiments.distributed import layout as layout_lib

  return layout_lib.Layout(
    num_actors=command.num_actors or command_lib.NUM_ACTORS,
    num_envs=command.num_envs or 1,
    num_shards=command.replay_shards or 1,
    pull_every=command.pull_every,
    rate_tolerance=command.rate_tolerance,
    learner_gpus=command.learner_gpus or 0,
    environment_timeout=command.environment_timeout or command_lib.ENVIRONMENT_TIMEOUT,
  )


def _make_keeper(
  command: command_lib.Command,
  directory: "output.RunDirectory",
  record: Mapping[str, Any],
  environment: Any,
) -> "keeper.Keeper":
  """The keeper of the run's checkpoints, which has looked for the newest."""
  from explorax.environments import saving
  from explorax.experiments import resuming
  from explorax.experiments.checkpoints import keeper

  with_replay = command.checkpoint_replay
  if with_replay is None:
    with_replay = command.runner != "distributed" and command.replay != "reverb"
    with_replay = with_replay and saving.is_exact(environment)
  hours = command.keep_checkpoint_hours
  return keeper.Keeper(
    directory.path / "checkpoints",
    resuming.fingerprint(record),
    with_replay=with_replay,
    every=command.checkpoint_every,
    minutes=command.checkpoint_minutes,
    keep=command.keep_checkpoints,
    keep_hours=math.inf if hours is None else hours,
    warn=console_lib.complain,
  )


def _go_on(
  directory: "output.RunDirectory",
  held: Mapping[str, Any],
  record: Mapping[str, Any],
  checkpoints: "keeper.Keeper",
) -> dict[str, Any]:
  """Notes that the run is gone on with; returns its config.json."""
  from explorax.experiments import resuming

  env_steps = 0 if checkpoints.found is None else checkpoints.found.record["env_steps"]
  if others := resuming.other_versions(held, record):
    console_lib.complain(
      f"other versions than the run began with ({', '.join(others)}): it goes on, but "
      "not to the bit."
    )
  record = resuming.resumed_record(held, record, env_steps)
  directory.write_json("config.json", record)
  return record


def _evaluation_environment(
  command: command_lib.Command,
) -> "environments.StandardEnvironment | None":
  """That of the evaluations, if there are to be any; checks that it can be drawn."""
  if not command.evaluates:
    return None
  if command.video:
    from explorax.environments import rendering
    from explorax.experiments.recording import video

    video.check_installed()
    rendering.check(command.env, seed=command.seed)
  return _make_environment(command, "evaluation", 0)


def _make_environment(
  command: command_lib.Command, role: str, number: int
) -> "environments.StandardEnvironment":
  """An environment beside the run's first one, with a seed of its own.

  Args:
    command: of the run.
    role: `training` or `evaluation`.
    number: tells those of one role apart.
  """
  import numpy as np

  from explorax import environments
  from explorax.environments import rendering

  stream = ("training", "evaluation").index(role)
  sequence = np.random.SeedSequence((command.seed, stream, number))
  seed = int(sequence.generate_state(1)[0])
  if role == "evaluation" and command.video:
    return rendering.make(command.env, seed=seed)
  return environments.make(command.env, seed=seed)


def _num_episodes(
  command: command_lib.Command,
  environment: "environments.StandardEnvironment | environments.BatchedEnvironment",
) -> int | None:
  """`--episodes`, or bsuite's own number where nothing was said."""
  if command.episodes is not None or command.steps is not None:
    return command.episodes
  raw = getattr(environment, "raw", environment)
  num_episodes = getattr(raw, "bsuite_num_episodes", None)
  if num_episodes is None:
    raise errors.SetUpError(
      f"nothing says how long to run: give --episodes or --steps ({command.env} has "
      "no number of its own; bsuite's environments have)."
    )
  return num_episodes


def _record(
  command: command_lib.Command, argv: list[str], config: Any, num_episodes: int | None
) -> dict[str, Any]:
  """Everything needed to repeat the run."""
  from explorax.experiments import overrides, versions

  return {
    "command": shlex.join(["python", "-m", "explorax.experiments.run", *argv]),
    "agent": command.agent,
    "config": overrides.to_dict(config),
    "settings": list(command.settings),
    "env": command.env,
    "seed": command.seed,
    "num_seeds": command.num_seeds,
    "episodes": num_episodes,
    "steps": command.steps,
    "runner": command.runner,
    "num_envs": command.num_envs,
    **_record_of_spread(command),
    "replay": command.replay,
    "eval_every": command.eval_every,
    "eval_episodes": command.eval_episodes if command.evaluates else None,
    "video": command.video,
    "max_env_failures": command.max_env_failures,
    "started": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    "versions": versions.collect(),
  }


def _record_of_spread(command: command_lib.Command) -> dict[str, int | None]:
  """What is to be known of a run's processes, where it has several."""
  if command.runner != "distributed":
    return {}
  return {
    "num_actors": command.num_actors,
    "replay_shards": command.replay_shards,
    "pull_every": command.pull_every,
    "rate_tolerance": command.rate_tolerance,
  }
