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
import math
import shlex
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from explorax import environments
from explorax.agents.replay import memory
from explorax.environments import specs
from explorax.experiments import callbacks as callbacks_lib
from explorax.experiments import checkpoint, errors, output, signals, versions
from explorax.experiments import config as config_lib
from explorax.experiments import parts as parts_lib
from explorax.experiments import results as results_lib
from explorax.experiments.recording import console as console_lib
from explorax.experiments.recording import progress, summary
from explorax.experiments.recording import recorder as recorder_lib
from explorax.experiments.reports import runs as runs_lib
from explorax.experiments.runners import common, device, local, user_agents

ERROR = "error.txt"
# A larger replay is in checkpoints only if the user asks for it.
_SAVED_REPLAY_BYTES = 2**30


@dataclasses.dataclass(frozen=True)
class Session:
  """A run that leaves files, checked.

  Attributes:
    record: the content of config.json.
    restored: the checkpoint from which it resumes; None if it starts.
    callback: that of the config.
    is_finished: whether nothing is left to do.
    close: closes the environments, and unlocks the directory.
  """

  parts: parts_lib.Parts
  directory: output.RunDirectory
  record: dict[str, Any]
  restored: checkpoint.Checkpoint | None
  callback: Any
  is_finished: bool
  close: Callable[[], None]

  @property
  def config(self) -> config_lib.RunConfig:
    return self.parts.config

  def run(self, console: console_lib.Console, callbacks: Sequence[Any] = ()) -> int:
    """Trains, and writes the run's files in any case.

    Returns the exit code: 0 if the run has finished, otherwise that of the signal. What
    has ended the run is raised as it was; its notes say where.
    """
    if self.is_finished:
      return 0
    with signals.stop_on_signals() as stop:
      of_each = " of each" if self.config.num_seeds > 1 else ""
      console.line(f"{self.config.length}{of_each}, into {self.directory.path}")
      if self.restored is not None:
        env_steps = self.restored.record["env_steps"]
        console.line(f"Resuming at environment step {env_steps:,}.")
      user_agent = self.config.has_user_agent
      recorder = recorder_lib.Recorder(
        self.directory,
        self.config,
        self.record,
        learner_metrics=() if user_agent else self.parts.agent.learner.metrics,
        restored=self.restored,
        evaluation_environment=self.parts.evaluation_environment,
      )
      (self.directory.path / ERROR).unlink(missing_ok=True)  # Of an earlier attempt.
      status = self._train(recorder, stop, console, callbacks)
    if status == "finished":
      return 0
    again = "starts it again" if user_agent else "resumes it"
    console.line(f"The run is saved; the same command {again}.")
    return stop.exit_code or 130

  def _train(
    self,
    recorder: recorder_lib.Recorder,
    stop: signals.StopRequest,
    console: console_lib.Console,
    callbacks: Sequence[Any],
  ) -> str:
    """Trains, and writes the files of the end; returns the run's status."""
    shown = progress.Progress(console, self.config)
    calls = callbacks_lib.Callbacks([recorder, shown], [*callbacks, self.callback])
    earlier = self.restored.record["counts"]["seconds"] if self.restored else 0.0
    began = time.monotonic() - earlier
    filmed = recorder.evaluation_environment
    parts = dataclasses.replace(self.parts, evaluation_environment=filmed)
    hooks = common.Hooks(
      on_log=functools.partial(calls.call, "on_log"),
      on_episodes=calls.on_episodes,
      on_evaluation=functools.partial(calls.call, "on_evaluation"),
      on_checkpoint=functools.partial(calls.call, "on_checkpoint"),
      on_activity=shown.on_activity,
      on_failure=recorder.on_failure,
      stop=stop,
      ended=lambda: calls.reason is not None,
      make_environment=parts.make_environment,
      checkpoints=self._checkpointer(),
    )
    status = "failed"

    def finish(results: Mapping[int, common.Result]) -> None:
      end = summary.End(status, time.monotonic() - began, calls.reason)
      console.status("")
      console.line("\n" + recorder.finish(end, results))

    try:
      results = _call_runner(parts, hooks)
      is_stopped = any(result.interrupted for result in results.values())
      status = "interrupted" if is_stopped else "finished"
      finish(results)
    except (Exception, SystemExit) as error:
      lines = "".join(traceback.format_exception(error)).encode()
      with contextlib.suppress(Exception):  # The disk may be full.
        self.directory.write(ERROR, lambda file: file.write(lines))
        error.add_note(f"the traceback is in {self.directory.path / ERROR}")
        if status == "failed":
          finish({})
      raise
    return status

  def _checkpointer(self) -> checkpoint.Checkpointer:
    config = self.config
    with_replay = config.checkpoint_replay
    if with_replay is None and not config.has_user_agent:
      size = memory.num_bytes(self.parts.agent, config.steps or math.inf)
      with_replay = config.replay != "reverb" and size <= _SAVED_REPLAY_BYTES
    return checkpoint.Checkpointer(
      self.directory.path / "checkpoints",
      self.restored,
      with_replay=bool(with_replay),
      every=config.checkpoint_every,
      minutes=config.checkpoint_minutes,
    )


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
      trained = dataclasses.replace(session.config, output=str(session.directory.path))
      seeds = [trained] if trained.num_seeds == 1 else trained.of_seeds()
      results += [results_lib.read(seed, objects.agent) for seed in seeds]
    if results[-1].interrupted:
      return results
  if config.num_seeds > 1 and not config.is_one_program:
    summaries = {x.seed: runs_lib.read_summary(x.path) for x in results}
    directory = output.RunDirectory(config.output)
    recorder_lib.write_files_of_seeds(directory, config, summaries)
  return results


def train(
  config: config_lib.RunConfig, hooks: common.Hooks, objects: parts_lib.CallerObjects
) -> dict[int, common.Result]:
  """Trains without files; returns the runner's result of each seed.

  The config is of one seed, or of seeds that one program trains.
  """
  with signals.stop_on_signals() as request, parts_lib.opened(config, objects) as parts:
    stoppable = dataclasses.replace(
      hooks,
      stop=lambda: hooks.stop() or request(),
      make_environment=parts.make_environment,
    )
    return _call_runner(parts, stoppable)


def set_up(
  config: config_lib.RunConfig,
  argv: Sequence[str] = (),
  objects: parts_lib.CallerObjects = parts_lib.NO_OBJECTS,
) -> Session:
  """Checks and creates everything that a run needs, the cheapest first.

  Raises:
    ValueError, TypeError, OutputError: in one sentence, for a run that cannot start.
  """
  config, settings = parts_lib.resolve(config, objects.agent)
  directory = output.RunDirectory.create(config.output)
  with contextlib.ExitStack() as stack:
    stack.callback(directory.unlock)
    record, was_finished, is_extended = {}, directory.is_finished(), False
    if directory.holds_run:
      record = directory.read_settings()
      is_extended = config_lib.check_resumable(directory.path, record, settings)
    is_over, restored = was_finished and not is_extended, None
    if not is_over:
      restored = checkpoint.recover(directory.path / "checkpoints")
      if was_finished and restored is None:
        raise errors.OutputError(
          f"the run in --output={directory.path} cannot be extended, because it has "
          "no checkpoint; choose another --output."
        )
    env_steps = restored.record["env_steps"] if restored else 0
    parts = stack.enter_context(parts_lib.opened(config, objects, env_steps))
    callback = callbacks_lib.make(config.callback) if config.callback else None
    if not is_over:
      spec = specs.to_record(environments.spec(parts.environment))
      settings |= {**parts.config.record(), "spec": spec}
      record = {**record_of_command(argv), **settings}
      directory.write_json("config.json", record)
    close = stack.pop_all().close
    return Session(parts, directory, record, restored, callback, is_over, close)


def record_of_command(argv: Sequence[str]) -> dict[str, Any]:
  """What config.json says of the command, beside the settings."""
  return {
    "command": shlex.join(["python", "-m", "explorax.experiments.run", *argv]),
    "started": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    "versions": versions.collect(),
  }


def _call_runner(
  parts: parts_lib.Parts, hooks: common.Hooks
) -> dict[int, common.Result]:
  """Calls the runner; returns the result of each seed."""
  config = parts.config
  runner: Any = local
  if config.has_user_agent:
    runner = user_agents
  elif config.runner == config_lib.DISTRIBUTED:
    runner = importlib.import_module("explorax.experiments.runners.distributed")
  else:
    env_steps = hooks.restored.record["env_steps"] if hooks.restored else 0
    hooks.on_activity(common.COMPILING + "initialisation", env_steps)
  keywords: dict[str, Any] = {"evaluation_environment": parts.evaluation_environment}
  if config.runner == config_lib.DEVICE:
    runner, keywords["params"] = device, parts.params
  results = runner.run(parts.agent, parts.environment, config, hooks, **keywords)
  return dict(zip(config.seeds, results, strict=True))
