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
import time
import traceback
from collections.abc import Mapping, Sequence
from typing import Any

from explorax import environments
from explorax.agents import types
from explorax.agents.replay import memory
from explorax.environments import identity, specs
from explorax.experiments import callbacks as callbacks_lib
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
from explorax.experiments.recording import console as console_lib
from explorax.experiments.recording import progress, rows, summary
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
    callback: that of the config.
  """

  parts: parts_lib.Parts
  directory: output.RunDirectory
  record: dict[str, Any]
  checkpoints: checkpoint.Checkpointer | None = None
  callback: Any = None

  @property
  def config(self) -> config_lib.RunConfig:
    return self.parts.config

  def close(self) -> None:
    """Closes the environments, and unlocks the directory."""
    self.parts.close()
    self.directory.unlock()

  def run(self, console: console_lib.Console, callbacks: Sequence[Any] = ()) -> int:
    """Trains, and writes the run's files in any case.

    Returns the exit code: 0 if the run has finished, otherwise that of the signal. What
    has ended the run is raised as it was; its notes say where.
    """
    if self.checkpoints is None:
      return 0
    restored = self.checkpoints.restored
    with signals.stop_on_signals() as stop:
      console.line("\n".join(self._introduction(self.checkpoints)))
      recorder = recorder_lib.Recorder(
        self.directory,
        self.config,
        self.record,
        learner_metrics=()
        if self.config.has_user_agent
        else self.parts.agent.learner.metrics,
        restored=restored,
        evaluation_environment=self.parts.evaluation_environment,
      )
      (self.directory.path / ERROR).unlink(missing_ok=True)  # Of an earlier attempt.
      shown = progress.Progress(console, self.config)
      calls = callbacks_lib.Callbacks([recorder, shown, *callbacks, self.callback])
      hooks = self._hooks(self.checkpoints, shown, calls, stop)
      error, status = self._train(self.checkpoints, hooks, recorder, calls, console)
    if error is not None:
      raise error
    if status == "finished":
      return 0
    again = "starts it again" if self.config.has_user_agent else "resumes it"
    console.line(f"The run is saved; the same command {again}.")
    return stop.exit_code or 130

  def _introduction(self, checkpoints: checkpoint.Checkpointer) -> list[str]:
    """The run's length and directory, and where it resumes."""
    of_each = " of each" if self.config.num_seeds > 1 else ""
    lines = [f"{self.config.length}{of_each}, into {self.directory.given}"]
    if checkpoints.restored is not None:
      env_steps = checkpoints.restored.record["env_steps"]
      lines.append(f"Resuming at environment step {env_steps:,}.")
    elif self.directory.holds_run:
      lines.append("The earlier run has no checkpoint: starting again.")
    return lines

  def _hooks(
    self,
    checkpoints: checkpoint.Checkpointer,
    shown: progress.Progress,
    calls: callbacks_lib.Callbacks,
    stop: signals.StopRequest,
  ) -> common.Hooks:
    """What the runner calls."""
    checkpoints.on_saved = functools.partial(calls.call, "on_checkpoint")
    return common.Hooks(
      on_activity=shown.on_activity,
      on_log=functools.partial(calls.call, "on_log"),
      on_episode=functools.partial(calls.call, "on_episode"),
      on_evaluation=functools.partial(calls.call, "on_evaluation"),
      on_message=console_lib.print_error,
      stop=stop,
      ended=calls.have_ended,
      make_environment=self.parts.make_environment,
      checkpoints=checkpoints,
    )

  def _train(
    self,
    checkpoints: checkpoint.Checkpointer,
    hooks: common.Hooks,
    recorder: recorder_lib.Recorder,
    calls: callbacks_lib.Callbacks,
    console: console_lib.Console,
  ) -> tuple[BaseException | None, str]:
    """Trains, and writes the files of the end; returns its error and its status."""
    status, error, began = "failed", None, time.monotonic()
    if hooks.restored is not None:
      began -= hooks.restored.record["counts"]["seconds"]
    results, weights = dict[int, common.Result](), dict[int, Any]()
    filmed = recorder.evaluation_environment
    parts = dataclasses.replace(self.parts, evaluation_environment=filmed)
    try:
      results = _call_runner(parts, hooks)
      weights = {seed: result.weights for seed, result in results.items()}
      is_stopped = any(result.interrupted for result in results.values())
      status = "interrupted" if is_stopped else "finished"
    except KeyboardInterrupt:  # The second one, at any moment.
      status = "interrupted"
    except (Exception, SystemExit) as caught:
      error = _cause(caught)
      if isinstance(caught, common.StoppedError):  # Without results.
        weights = dict(zip(self.config.seeds, caught.weights, strict=False))
      self._write(error)
    console.status("")
    try:
      end = summary.End(status, time.monotonic() - began, calls.reason)
      console.line("\n" + recorder.finish(end, results, weights))
    except Exception as unfinished:  # A full disk, or a logger of the user's.
      error = error or unfinished
    if checkpoints.problem and error is None:
      error = errors.OutputError(checkpoints.problem)
    folder = "" if self.config.num_seeds == 1 else f"seed{self.config.seed}/"
    file, given = f"{folder}{trained.FILE}", self.directory.given
    if (self.directory.path / file).exists():
      kind = "last good weights" if error else "weights"
      console.line(f"\nThe {kind} are in {given / file}, the rest in {given}.")
    return error, status

  def _write(self, error: BaseException) -> None:
    """Saves the traceback of what has ended the run; the error says where."""
    lines = "".join(traceback.format_exception(error)).encode()
    with contextlib.suppress(errors.OutputError):  # The disk may be full.
      self.directory.write(ERROR, lambda file: file.write(lines))
      error.add_note(f"the traceback is in {self.directory.given / ERROR}")

  def results(self) -> list[results_lib.Result]:
    """What the run has left in its directory, for each seed."""
    path = self.directory.path
    if self.config.num_seeds == 1:
      return [results_lib.read(self.parts, self.config.seed, path)]
    seeds = self.config.seeds
    return [results_lib.read(self.parts, seed, path / f"seed{seed}") for seed in seeds]


def start(
  config: config_lib.RunConfig,
  objects: parts_lib.CallerObjects = parts_lib.NO_OBJECTS,
  callbacks: Sequence[Any] = (),
) -> list[results_lib.Result]:
  """Trains each seed in this process, one after the other; returns their results.

  A finished run is not repeated, and an unfinished one resumes. Errors are those of
  `set_up`, and what has ended the run, as it was raised.
  """
  results: list[results_lib.Result] = []
  for run in config.runs() if config.num_seeds > 1 else [config]:
    with contextlib.closing(set_up(run, objects=objects)) as session:
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
  """Trains without files; returns the runner's result of each seed.

  The config is of one seed, or of seeds that one program trains.
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

  Raises:
    ValueError, TypeError, OutputError: in one sentence, for a run that cannot start.
  """
  config, agent_config = parts_lib.resolve(config, objects.agent)
  directory = output.RunDirectory.create(
    config.output, may_hold_run=True, is_locked=True
  )
  with contextlib.ExitStack() as stack:
    stack.callback(directory.unlock)
    held, is_over = None, False
    if directory.holds_run:
      held, wanted = directory.read_settings(), settings_record(config, agent_config)
      config_lib.check_resumable(directory.given, held, wanted)
      if objects.environment is not None and not identity.is_complete(config.env):
        raise errors.OutputError(
          f"--output={directory.given} already holds a run in {config.env}; whether "
          "this environment is the same is unknown, since it does not keep the "
          "arguments with a ? under their names. Choose another output."
        )
      is_over = directory.is_finished()
      if is_over and not config_lib.is_extended(held, wanted):
        parts = parts_lib.make(config, objects)
        stack.pop_all()
        return Session(parts, directory, held)
    restored = checkpoint.recover(
      directory.path / "checkpoints", console_lib.print_error
    )
    if is_over and restored is None:
      raise errors.OutputError(
        f"the run in --output={directory.given} cannot be extended, because it has "
        "no checkpoint; choose another --output."
      )
    env_steps = restored.record["env_steps"] if restored else 0
    parts = parts_lib.make(config, objects, env_steps)
    stack.callback(parts.close)
    spec = environments.spec(parts.environment)
    record = make_record(parts.config, argv, agent_config, spec)
    if held is not None:
      if held.get("spec", record["spec"]) != json.loads(json.dumps(record["spec"])):
        raise errors.OutputError(
          f"--output={directory.given} already holds a run in an environment with "
          "other observations or actions; choose another --output."
        )
      record = config_lib.resumed_record(held, record, env_steps)
    callback = callbacks_lib.make(config.callback) if config.callback else None
    directory.write_json("config.json", record)
    checkpoints = _checkpointer(parts, directory, restored)
    stack.pop_all()
    return Session(parts, directory, record, checkpoints, callback)


def _checkpointer(
  parts: parts_lib.Parts,
  directory: output.RunDirectory,
  restored: checkpoint.Checkpoint | None,
) -> checkpoint.Checkpointer:
  config = parts.config
  with_replay = config.checkpoint_replay
  if with_replay is None and not config.has_user_agent:
    size = memory.num_bytes(parts.agent, config.steps or math.inf)
    with_replay = config.replay != "reverb" and size <= _SAVED_REPLAY_BYTES
  return checkpoint.Checkpointer(
    directory.path / "checkpoints",
    restored,
    with_replay=bool(with_replay),
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

  A directory of several runs has no `spec`, that of the environment.
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
    env_steps = hooks.restored.record["env_steps"] if hooks.restored else 0
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
