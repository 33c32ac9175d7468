"""One way to start a run: config → agent, environment, directory, runner, results.

    (result,) = session.start(config)

`set_up` checks and creates what a run needs, the cheapest first; `Session.run` trains,
writes the run's files in any case, and raises what has ended it.
"""

import contextlib
import dataclasses
import datetime
import functools
import importlib
import json
import math
import pathlib
import resource
import shlex
import signal
import traceback
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from explorax import environments
from explorax.agents import types
from explorax.agents.replay import memory
from explorax.agents.wiring import builder
from explorax.environments import rendering, specs, standard
from explorax.experiments import (
  callbacks as callbacks_lib,
)
from explorax.experiments import (
  checkpoint,
  errors,
  output,
  presets,
  processes,
  signals,
  trained,
  versions,
)
from explorax.experiments import config as config_lib
from explorax.experiments import settings as settings_lib
from explorax.experiments.recording import (
  console as console_lib,
)
from explorax.experiments.recording import (
  loggers,
  plots,
  rows,
  summary,
  video,
)
from explorax.experiments.recording import recorder as recorder_lib
from explorax.experiments.runners import common, device, local, user_agents

ERROR = "error.txt"
_DISTRIBUTED = "explorax.experiments.runners.distributed"  # Imports Ray.
# A larger replay is in checkpoints only if the user asks for it.
_SAVED_REPLAY_BYTES = 2**30
_FEW_UPDATES = 100  # A run with fewer says so.

Columns = dict[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class CallerObjects:
  """Objects that a Python caller provides, and closes; None: the config names them."""

  agent: trained.Agent | types.Agent | None = None
  environment: Any = None  # Of any protocol that `environments.wrap` takes.
  evaluation_environment: Any = None  # Also by its name.
  params: Sequence[Any] = ()  # Of an environment written in JAX, one for each seed.


@dataclasses.dataclass(frozen=True)
class Parts:
  """What a runner needs, checked.

  Attributes:
    agent: as the runner takes it.
    named: the agent with its name and settings; the caller's own agent; or None.
    make_environment: makes another environment of the run, and is picklable; None if
      the caller provided the environment.
    params: of `CallerObjects`.
    to_close: the environments that were made here.
  """

  config: config_lib.RunConfig
  agent: Any
  named: trained.Agent | types.Agent | None
  environment: environments.StandardEnvironment | environments.BatchedEnvironment
  evaluation_environment: environments.StandardEnvironment | None
  make_environment: common.MakeEnvironment | None
  params: Sequence[Any]
  to_close: Sequence[Any]

  def close(self) -> None:
    """Closes the environments that the caller did not provide."""
    for environment in self.to_close:
      common.close(environment)


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Result:
  """What a run of one seed has left.

  Attributes:
    config: of the run.
    path: its directory.
    summary: the content of its `summary.json`.
    episodes: column → an array with one entry per episode: those of `metrics.csv`, with
      the metrics (NaN if an episode has none), and `seed`. `episode_return` against
      `env_steps` is the learning curve.
    evaluations: the same for evaluation episodes, of `evaluation.csv`.
    learner: the same for the rows that are logged every `log_every` steps, of
      `learner.csv`: the loss, the mean Q, ε and so on.
    agent: the agent; None for one of `module:function`.
    weights: what it has learnt, a pytree of arrays; None if there are none.
  """

  config: config_lib.RunConfig
  path: pathlib.Path
  summary: Mapping[str, Any]
  episodes: Columns
  evaluations: Columns
  learner: Columns
  agent: trained.Agent | types.Agent | None
  weights: types.Params | None

  @property
  def seed(self) -> int:
    return self.config.seed

  @property
  def evaluation_return(self) -> float:
    """The mean return of the last evaluation; NaN without one.

    Of the greedy policy, unless the agent has another one for evaluation.
    """
    return _number(self.summary.get("evaluation_return"))

  @property
  def training_return(self) -> float:
    """The mean return of training at the end; NaN without an episode.

    Of the episodes that ended in the last 10 % of the steps, at least of the last one.
    """
    return _number(self.summary.get("training_return"))

  @property
  def interrupted(self) -> bool:
    """Whether the run was stopped before its limit, for instance by Ctrl-C."""
    return self.summary.get("status") != "finished"

  def load(self, seed: int = 0) -> trained.Policy:
    """The evaluation policy; `seed` is that of random actions."""
    if self.agent is None or self.weights is None:
      raise ValueError(f"{self} has no weights.")
    return trained.Policy(self.agent, self.weights, self.config.env, seed)

  def __repr__(self) -> str:
    end = ", interrupted" if self.interrupted else ""
    return (
      f"<Result of {self.config.title}: evaluation return "
      f"{self.evaluation_return:.4g}, training return {self.training_return:.4g}{end}>"
    )


@dataclasses.dataclass(frozen=True)
class Session:
  """A run that leaves files, checked.

  Attributes:
    record: the content of config.json.
    checkpoints: None if the run is finished.
  """

  parts: Parts
  directory: output.RunDirectory
  record: dict[str, Any]
  checkpoints: checkpoint.Checkpointer | None

  @property
  def config(self) -> config_lib.RunConfig:
    return self.parts.config

  def close(self) -> None:
    """Closes the environments, and unlocks the directory."""
    self.parts.close()
    self.directory.unlock()

  def run(
    self,
    console: console_lib.Console,
    callbacks: Sequence[Any] = (),
  ) -> int:
    """Trains, and writes the run's files in any case.

    Args:
      console: shows the progress.
      callbacks: of the caller, beside that of the config; called after the files are
        written.

    Returns:
      The exit code: 0 if the run has finished, otherwise that of the signal.

    Raises:
      Exception: what has ended the run, as it was raised; its notes say where.
    """
    if self.checkpoints is None:
      return 0
    with signals.stop_on_signals(_announce) as stop:
      return self._run(self.checkpoints, console, callbacks, stop)

  def _run(
    self,
    checkpoints: checkpoint.Checkpointer,
    console: console_lib.Console,
    callbacks: Sequence[Any],
    stop: signals.StopRequest,
  ) -> int:
    config, directory = self.config, self.directory
    _announce_start(self, console)
    restored = checkpoints.restored
    recorder = recorder_lib.Recorder(
      directory,
      config,
      self.record,
      console=console,
      learner_metrics=() if config.has_user_agent else self.parts.agent.learner.metrics,
      resumed=restored.record["recorder"] if restored else None,
    )
    (directory.path / ERROR).unlink(missing_ok=True)  # Of an earlier attempt.
    own = [callbacks_lib.make(config.callback)] if config.callback else []
    calls = callbacks_lib.Callbacks([recorder, *callbacks, *own])
    checkpoints.recorder_state = recorder.save
    checkpoints.on_saved = functools.partial(calls.call, "on_checkpoint")
    hooks = common.Hooks(
      on_activity=recorder.on_activity,
      on_log=functools.partial(calls.call, "on_log"),
      on_episode=functools.partial(calls.call, "on_episode"),
      on_evaluation=functools.partial(calls.call, "on_evaluation"),
      on_message=console_lib.print_error,
      stop=stop,
      ended=lambda: calls.have_ended,
      observer=recorder.observer,
      make_environment=self.parts.make_environment,
      checkpoints=checkpoints,
    )
    status, error, results = "failed", None, dict[int, common.Result]()
    of_seeds: dict[int, Any] = {}
    try:
      results = _call_runner(self.parts, hooks)
      of_seeds = {seed: result.weights for seed, result in results.items()}
      is_stopped = any(result.interrupted for result in results.values())
      status = "interrupted" if is_stopped else "finished"
    except KeyboardInterrupt:  # The second one, at any moment.
      status = "interrupted"
    except (Exception, SystemExit) as caught:
      error = _cause(caught)
      if isinstance(caught, common.StoppedError):  # Without results.
        of_seeds = dict(zip(config.seeds, caught.weights, strict=False))
      self._write(error)
    try:
      end = summary.End(status, checkpoints.seconds, calls.reason)
      console.line("\n" + recorder.finish(end, results, of_seeds))
    except Exception as unfinished:  # A full disk, or a logger of the user's.
      error = error or unfinished
    if checkpoints.problem and error is None:
      error = errors.OutputError(checkpoints.problem)
    _announce_files(self, console, failed=error is not None)
    if error is not None:
      raise error
    if status == "finished":
      return 0
    again = "starts it again" if config.has_user_agent else "resumes it"
    console.line(f"The run is saved; the same command {again}.")
    return stop.exit_code or 130

  def _write(self, error: BaseException) -> None:
    """Saves the traceback of what has ended the run; the error says where."""
    if self.config.debug:
      traceback.print_exception(error)
    lines = "".join(traceback.format_exception(error)).encode()
    with contextlib.suppress(errors.OutputError):  # The disk may be full.
      self.directory.write(ERROR, lambda file: file.write(lines))
      error.add_note(f"the traceback is in {self.directory.given / ERROR}")

  def results(self) -> list[Result]:
    """What the run has left in its directory, for each seed."""
    paths = {self.config.seed: self.directory.path}
    if self.config.num_seeds > 1:
      paths = {seed: self.directory.path / f"seed{seed}" for seed in self.config.seeds}
    return [_read(self.parts, seed, path) for seed, path in paths.items()]


def start(
  config: config_lib.RunConfig,
  agent: trained.Agent | types.Agent | None = None,
  environment: Any = None,
  callbacks: Sequence[Any] = (),
  *,
  evaluation_environment: Any = None,
) -> list[Result]:
  """Trains each seed in this process, one after the other; returns their results.

  A finished run is not repeated, and an unfinished one resumes.

  Args:
    config: of the run.
    agent: if it has no name.
    environment: likewise; it is not closed.
    callbacks: objects with some of the methods of `callbacks.EVENTS`.
    evaluation_environment: for evaluations, if `environment` is given.

  Raises:
    ValueError, TypeError, OutputError: in one sentence, for a run that cannot start.
    Exception: what has ended the run, as it was raised.
  """
  objects = CallerObjects(agent, environment, evaluation_environment)
  results: list[Result] = []
  for run in config.runs() if config.num_seeds > 1 else [config]:
    with contextlib.closing(set_up(run, objects=objects)) as session:
      if few := few_updates(session.parts):
        warnings.warn(few, RuntimeWarning, stacklevel=3)
      session.run(console_lib.Console(None), callbacks)
      results += session.results()
    if results[-1].interrupted:
      return results
  if config.num_seeds > 1 and not config.is_one_program:
    write_files_of_seeds(config, {x.seed: x.summary for x in results})
  return results


def train(
  config: config_lib.RunConfig, hooks: common.Hooks, objects: CallerObjects
) -> dict[int, common.Result]:
  """Trains without files, for programs that keep what they need of a run themselves.

  Args:
    config: of one seed, or of seeds that one program trains.
    hooks: called during the run; they get `make_environment` from the run.
    objects: of the caller.

  Returns:
    The runner's result of each seed.
  """
  with (
    signals.stop_on_signals(lambda number: None) as request,
    contextlib.closing(make_parts(config, objects)) as parts,
  ):
    stoppable = dataclasses.replace(
      hooks,
      stop=lambda: hooks.stop() or request(),
      make_environment=parts.make_environment,
    )
    try:
      return _call_runner(parts, stoppable)
    except common.StoppedError as error:
      raise _cause(error) from None


def set_up(
  config: config_lib.RunConfig,
  argv: Sequence[str] = (),
  objects: CallerObjects = CallerObjects(),
) -> Session:
  """Checks and creates everything that a run needs, the cheapest first.

  Args:
    config: the run's config.
    argv: the command line, for config.json.
    objects: of a Python caller.

  Raises:
    ValueError, TypeError, OutputError: in one sentence, for a run that cannot start.
  """
  directory = output.RunDirectory.create(
    config.output, may_hold_run=True, is_locked=True
  )
  try:
    parts = make_parts(config, objects)
    spec = environments.spec(parts.environment)
    record = make_record(parts.config, argv, _agent_config(parts), spec)
    if not directory.holds_run:
      checkpoints = _make_checkpointer(parts, directory)
      directory.write_json("config.json", record)
      return Session(parts, directory, record, checkpoints)
    held = directory.read_settings()
    config_lib.check_resumable(directory.given, held, record)
    if held.get("spec", record["spec"]) != json.loads(json.dumps(record["spec"])):
      raise errors.OutputError(
        f"--output={directory.given} already holds a run in an environment with other "
        "observations or actions; choose another --output."
      )
    is_finished = directory.is_finished()
    if is_finished and not config_lib.is_extended(held, record):
      return Session(parts, directory, record, None)
    checkpoints = _make_checkpointer(parts, directory)
    restored = checkpoints.restored
    if is_finished and restored is None:
      raise errors.OutputError(
        f"the run in --output={directory.given} cannot be extended, because it has "
        "no checkpoint; choose another --output."
      )
    env_steps = 0 if restored is None else restored.record["env_steps"]
    record = config_lib.resumed_record(held, record, env_steps)
    directory.write_json("config.json", record)
    if restored is not None:
      parts = _resumed_at(env_steps, parts)
    return Session(parts, directory, record, checkpoints)
  except BaseException:
    directory.discard()
    raise


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
    return config, user_agents.settings(config.agent)
  preset = presets.find(config.agent)
  env = preset.environment_for(config.env)
  agent_config = settings_lib.apply(preset.config_for(env), config.settings)
  return dataclasses.replace(config, env=env), agent_config


def make_parts(
  config: config_lib.RunConfig,
  objects: CallerObjects = CallerObjects(),
) -> Parts:
  """Creates the agent and the environments.

  Args:
    config: of the run.
    objects: of the caller.
  """
  if not isinstance(objects.agent, types.Agent):
    config, _ = resolve(config)  # Refuses unknown names before anything is made.
  _check_modules(config)
  environment: Any
  if objects.environment is not None:
    environment = environments.wrap(objects.environment, seed=config.seed)
  elif config.is_batched:
    environment = environments.make_batched(
      config.env, num_envs=config.num_envs or 1, seed=config.seed
    )
  else:
    environment = environments.make(_name(config), seed=config.seed)
  to_close = [environment] * (objects.environment is None)
  try:
    config, evaluation = _evaluation_environment(config, objects, environment)
    if evaluation is not None and evaluation is not objects.evaluation_environment:
      to_close.append(evaluation)
    named, agent = _agent(config, objects, environments.spec(environment))
    config = _with_limit(config, environment)
    _check_machine(config, agent, environment)
  except BaseException:
    for made in to_close:
      made.close()
    raise
  is_named = objects.environment is None
  make_environment = functools.partial(_make_environment, config) if is_named else None
  return Parts(
    config,
    agent,
    named,
    environment,
    evaluation,
    make_environment,
    objects.params,
    to_close,
  )


def _check_modules(config: config_lib.RunConfig) -> None:
  """Refuses what is not installed or does not exist, before anything is made."""
  if config.runner == config_lib.DISTRIBUTED:
    processes.check_installed()
    if config.ray_address is None:
      processes.prepare()
  if config.num_seeds > 1:  # Each of them keeps files open.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
  if config.logger is not None:
    loggers.find(config.logger)
  if config.callback is not None:
    callbacks_lib.find(config.callback)
  if config.replay == "reverb":
    builder.import_reverb_replay()


def _agent(
  config: config_lib.RunConfig, objects: CallerObjects, spec: types.EnvironmentSpec
) -> tuple[trained.Agent | types.Agent | None, Any]:
  """The agent as the caller knows it, and as runners take it."""
  if objects.agent is None and config.has_user_agent:
    return None, user_agents.make(config.agent, spec, config.seed)
  named = objects.agent
  if named is None:
    named = trained.make_agent(config.agent, config.env, spec, config.settings)
  agent = named.core if isinstance(named, trained.Agent) else named
  if agent.spec != spec:
    raise ValueError(
      f"the agent was made for {agent.spec}, and the environment has {spec}; make one "
      "for this environment."
    )
  if config.init_weights is not None:
    agent = trained.starting_from(config.init_weights, agent, config.env)
  return named, agent


def _check_machine(config: config_lib.RunConfig, agent: Any, environment: Any) -> None:
  """Refuses a run that does not fit the runner or the machine's memory."""
  if not config.has_user_agent:
    local.check_memory(agent, config)


def _agent_config(parts: Parts) -> Any:
  """The agent's settings, for config.json."""
  if parts.config.has_user_agent:
    return user_agents.settings(parts.config.agent)
  return parts.agent.config


def _evaluation_environment(
  config: config_lib.RunConfig,
  objects: CallerObjects,
  environment: Any,
) -> tuple[config_lib.RunConfig, environments.StandardEnvironment | None]:
  """The environment of the evaluations, and the config for it.

  None if there is none, or only one at the end, for which it is made then. A run in the
  caller's own environment ends without an evaluation if there is no second one.
  """
  second = objects.evaluation_environment
  if second is not None and not config.evaluates:
    raise ValueError("evaluation_env is for evaluations, and eval_episodes is 0.")
  if objects.environment is None and second is None:
    if config.video:
      video.check_installed()
      rendering.check(config.env, seed=config.seed)
    elif config.eval_every is None:
      return config, None
    return config, _make_environment(config, common.EVALUATION, 0)
  if config.runner == config_lib.DISTRIBUTED:
    raise ValueError(
      "runner='distributed' makes environments in other processes; give the name of "
      "one, as gym:CartPole-v1 or module:function."
    )
  if not config.evaluates:
    return config, None
  if config.video:
    raise ValueError("video=True needs an environment by its name.")
  seed = environment_seed(config.seed, common.EVALUATION, 0)
  if isinstance(second, str):
    return config, environments.make(environments.evaluation_name(second), seed=seed)
  if second is None:
    raw = environment.raw
    is_jax = isinstance(raw, environments.jax_adapter.JaxEnvironment)
    second = raw.pure if is_jax else getattr(raw, "recreated", lambda: None)()
  if second is None and config.eval_every is None:
    return dataclasses.replace(config, eval_episodes=0), None
  if second is None:
    raise ValueError(
      f"eval_every={config.eval_every} needs a second environment; give evaluation_env."
    )
  return config, environments.wrap(second, seed=seed)


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
    else functools.cache(lambda: trained.sources(parts.agent.learner)),
    every=config.checkpoint_every,
    minutes=config.checkpoint_minutes,
    warn=console_lib.print_error,
  )


def _resumed_at(env_steps: int, parts: Parts) -> Parts:
  """Gives the environments of a run that resumes seeds of their own.

  With their first seeds they would repeat the episodes.

  Args:
    env_steps: of the checkpoint.
    parts: made as for a new run.
  """
  config, changes, to_close = parts.config, dict[str, Any](), list(parts.to_close)
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
    if environment is None:
      continue
    if parts.make_environment is None:  # An object of the caller's.
      seed_next_reset = getattr(standard.unwrap(environment), "seed_next_reset", None)
      if seed_next_reset is not None:
        seed_next_reset(seed)
      continue
    environment.close()
    to_close.remove(environment)
    if isinstance(environment, environments.BatchedEnvironment):
      changes[name] = environments.make_batched(
        config.env, num_envs=config.num_envs or 1, seed=seed
      )
    else:
      changes[name] = _make_environment(config, role, 0, resumed_at=env_steps)
    to_close.append(changes[name])
  return dataclasses.replace(parts, **changes, to_close=to_close)


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


def environment_seed(seed: int, role: str, number: int, resumed_at: int = 0) -> int:
  """The seed of an additional environment; arguments as in `_make_environment`."""
  stream = (common.TRAINING, common.EVALUATION).index(role)
  entropy = (seed, stream, number, *([resumed_at] if resumed_at else []))
  return int(np.random.SeedSequence(entropy).generate_state(1)[0])


def _with_limit(config: config_lib.RunConfig, environment: Any) -> config_lib.RunConfig:
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


def write_files_of_seeds(
  config: config_lib.RunConfig, summaries: Mapping[int, Mapping[str, Any]]
) -> None:
  """Writes `summary.json` and `curve.png` of seeds that were separate runs."""
  path = pathlib.Path(config.output)
  episodes = [rows.read(path / f"seed{seed}" / rows.METRICS) for seed in config.seeds]
  title = f"{config.agent} on {config.env}"
  directory = output.RunDirectory(path)
  recorder_lib.write_files_of_seeds(directory, title, summaries, episodes)


def _call_runner(parts: Parts, hooks: common.Hooks) -> dict[int, common.Result]:
  """Calls the runner; returns the result of each seed."""
  config = parts.config
  runner: Any = device if config.runner == config_lib.DEVICE else local
  if config.has_user_agent:
    runner = user_agents
  elif config.runner == config_lib.DISTRIBUTED:
    runner = importlib.import_module(_DISTRIBUTED)
  else:
    restored = hooks.checkpoints and hooks.checkpoints.restored
    env_steps = restored.record["env_steps"] if restored else 0
    hooks.on_activity(common.compiling("initialisation", env_steps))
  arguments: dict[str, Any] = {"evaluation_environment": parts.evaluation_environment}
  if config.num_seeds > 1 or parts.params:
    results = runner.run_seeds(
      parts.agent, parts.environment, config, hooks, params=parts.params, **arguments
    )
    return dict(zip(config.seeds, results, strict=True))
  result = runner.run(parts.agent, parts.environment, config, hooks, **arguments)
  return {config.seed: result}


def _cause(error: BaseException) -> BaseException:
  """What has stopped a runner, as it was raised; a note says at which step."""
  if not isinstance(error, common.StoppedError) or error.__cause__ is None:
    return error
  error.__cause__.add_note(str(error).partition(":")[0])
  return error.__cause__


def _announce_start(session: Session, console: console_lib.Console) -> None:
  """Prints the run's length and directory, and where it resumes."""
  config = session.config
  length = f"{config.length} of each" if config.num_seeds > 1 else config.length
  console.line(f"{length}, into {session.directory.given}")
  if few := few_updates(session.parts):
    console.line(few)
  if not session.directory.holds_run or session.checkpoints is None:
    return
  restored = session.checkpoints.restored
  if restored is None:
    console.line("The earlier run ended before its first checkpoint: starting again.")
  else:
    console.line(f"Resuming at environment step {restored.record['env_steps']:,}.")


def _announce_files(
  session: Session, console: console_lib.Console, *, failed: bool
) -> None:
  """Prints where the results are."""
  config, directory = session.config, session.directory
  file, others = trained.FILE, ""
  if config.num_seeds > 1:
    file = f"seed{config.seed}/{file}"
    others = " and in the other seeds' directories"
  if not (directory.path / file).exists():
    return
  good = "last good weights" if failed else "weights"
  curve = ""  # Without an episode there is none.
  if (directory.path / "curve.png").exists():
    curve = f"the curve in {directory.given / 'curve.png'}, "
  elif not plots.can_draw():
    curve = "no curve is drawn without matplotlib (explorax[plots]), "
  console.line(
    f"\nThe {good} are in {directory.given / file}{others}, {curve}the rest is in "
    f"{directory.given}."
  )


def _announce(number: signal.Signals) -> None:
  name = "Ctrl-C" if number == signal.SIGINT else number.name
  console_lib.alert(
    f"{name}: stopping and saving the results (send it again to quit at once)"
  )


def _read(parts: Parts, seed: int, path: pathlib.Path) -> Result:
  """The result of a seed, from its files."""
  learnt = None
  if parts.named is not None and (path / trained.FILE).exists():
    like = trained.shapes(parts.agent)
    learnt, _ = checkpoint.read(path / trained.FILE, like)
  content = json.loads((path / "summary.json").read_text(encoding="utf-8"))
  return Result(
    dataclasses.replace(parts.config, seed=seed, num_seeds=1),
    path,
    content,
    _columns(path / rows.METRICS, seed),
    _columns(path / rows.EVALUATION, seed),
    _columns(path / rows.LEARNER, seed),
    parts.named,
    learnt,
  )


def _columns(path: pathlib.Path, seed: int) -> Columns:
  """The columns of a CSV file, which may be missing, and `seed`."""
  columns = rows.read(path) if path.exists() else rows.empty(path.name)
  return {**columns, "seed": np.full(len(columns["env_steps"]), seed)}


def _number(value: float | None) -> float:
  return math.nan if value is None else value
