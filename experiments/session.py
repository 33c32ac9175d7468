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
import shlex
import traceback
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from explorax import environments
from explorax.agents import types
from explorax.agents.replay import memory
from explorax.environments import specs
from explorax.experiments import (
  callbacks as callbacks_lib,
)
from explorax.experiments import (
  checkpoint,
  errors,
  output,
  signals,
  trained,
  versions,
)
from explorax.experiments import config as config_lib
from explorax.experiments import parts as parts_lib
from explorax.experiments import results as results_lib
from explorax.experiments import settings as settings_lib
from explorax.experiments.recording import (
  console as console_lib,
)
from explorax.experiments.recording import (
  plots,
  rows,
  summary,
)
from explorax.experiments.recording import recorder as recorder_lib
from explorax.experiments.runners import common, device, local, user_agents

ERROR = "error.txt"
_DISTRIBUTED = "explorax.experiments.runners.distributed"  # Imports Ray.
# A larger replay is in checkpoints only if the user asks for it.
_SAVED_REPLAY_BYTES = 2**30


@dataclasses.dataclass(frozen=True)
class Session:
  """A run that leaves files, checked.

  Attributes:
    record: the content of config.json.
    checkpoints: None if the run is finished.
  """

  parts: parts_lib.Parts
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
    with signals.stop_on_signals() as stop:
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

  def results(self) -> list[results_lib.Result]:
    """What the run has left in its directory, for each seed."""
    paths = {self.config.seed: self.directory.path}
    if self.config.num_seeds > 1:
      paths = {seed: self.directory.path / f"seed{seed}" for seed in self.config.seeds}
    return [results_lib.read(self.parts, seed, path) for seed, path in paths.items()]


def start(
  config: config_lib.RunConfig,
  agent: trained.Agent | types.Agent | None = None,
  environment: Any = None,
  callbacks: Sequence[Any] = (),
  *,
  evaluation_environment: Any = None,
) -> list[results_lib.Result]:
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
  objects = parts_lib.CallerObjects(agent, environment, evaluation_environment)
  results: list[results_lib.Result] = []
  for run in config.runs() if config.num_seeds > 1 else [config]:
    with contextlib.closing(set_up(run, objects=objects)) as session:
      if few := parts_lib.few_updates(session.parts):
        warnings.warn(few, RuntimeWarning, stacklevel=3)
      session.run(console_lib.Console(None), callbacks)
      results += session.results()
    if results[-1].interrupted:
      return results
  if config.num_seeds > 1 and not config.is_one_program:
    write_files_of_seeds(config, {x.seed: x.summary for x in results})
  return results


def train(
  config: config_lib.RunConfig, hooks: common.Hooks, objects: parts_lib.CallerObjects
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
    signals.stop_on_signals() as request,
    contextlib.closing(parts_lib.make(config, objects)) as parts,
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
  objects: parts_lib.CallerObjects = parts_lib.NO_OBJECTS,
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
    parts = parts_lib.make(config, objects)
    spec = environments.spec(parts.environment)
    record = make_record(parts.config, argv, parts_lib.agent_config_of(parts), spec)
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
      parts = parts_lib.resumed_at(env_steps, parts)
    return Session(parts, directory, record, checkpoints)
  except BaseException:
    directory.discard()
    raise


def _make_checkpointer(
  parts: parts_lib.Parts, directory: output.RunDirectory
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


def _call_runner(
  parts: parts_lib.Parts, hooks: common.Hooks
) -> dict[int, common.Result]:
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
  if few := parts_lib.few_updates(session.parts):
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
