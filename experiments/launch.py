"""Launches a job: calls the runner, writes the run's files, and handles its end."""

import contextlib
import dataclasses
import functools
import signal
import traceback
from collections.abc import Callable
from typing import Any, NamedTuple

from explorax import environments
from explorax.experiments import callbacks as callbacks_lib
from explorax.experiments import config as config_lib
from explorax.experiments import errors, signals
from explorax.experiments import job as job_lib
from explorax.experiments.recording import console as console_lib
from explorax.experiments.recording import plots, video
from explorax.experiments.recording import recorder as recorder_lib
from explorax.experiments.runners import common

ERROR = "error.txt"


class Outcome(NamedTuple):
  """How a run has ended.

  Attributes:
    exit_code: of `run.main`.
    problems: messages for the user.
    error: the exception that stopped the run; None if it finished or was told to stop.
  """

  exit_code: int
  problems: list[Exception | str]
  error: BaseException | None


def run(
  job: job_lib.Job,
  console: console_lib.Console,
  callback: callbacks_lib.Functions | None = None,
  request: signals.StopRequest | None = None,
) -> Outcome:
  """Trains, and writes the job's files in any case.

  Args:
    job: that is not finished.
    console: shows the progress.
    callback: of the caller, beside that of the config; called after the files are
      written.
    request: asked after each step whether to stop; None: the run stops on signals.
  """
  with contextlib.ExitStack() as stack:
    stop = request or stack.enter_context(signals.stop_on_signals(_announce))
    return _run(job, console, callback, stop)


def _run(
  job: job_lib.Job,
  console: console_lib.Console,
  callback: callbacks_lib.Functions | None,
  stop: signals.StopRequest,
) -> Outcome:
  """`run`; signals are requests until the files are written."""
  config, checkpoints = job.config, job.checkpoints
  if checkpoints is None:
    raise ValueError("the run is finished; there is nothing to run.")
  callbacks = callbacks_lib.make(config.callback, callback)
  _announce_start(job, console)
  video_recorder = None
  if config.evaluates and config.num_seeds == 1:
    video_recorder = video.EpisodeRecorder(config.video)
  recorder = recorder_lib.Recorder(
    job.directory,
    config,
    job.record,
    solved_rule=lambda: environments.solved_rule(config.env),
    console=console,
    video_recorder=video_recorder,
    resumed=checkpoints.restored.record["recorder"] if checkpoints.restored else None,
  )
  checkpoints.recorder_state = recorder.save
  checkpoints.on_saved = functools.partial(callbacks.call, "on_checkpoint")
  (job.directory.path / ERROR).unlink(missing_ok=True)  # Of an earlier attempt.

  status, exit_code = "failed", 1
  problems: list[Exception | str] = []
  ended_by: BaseException | None = None
  results: dict[int, common.Result] = {}
  weights: dict[int, Any] = {}
  try:
    hooks = dataclasses.replace(
      _hooks(job, recorder, video_recorder, callbacks),
      stop=lambda: stop() or recorder.problem is not None,
    )
    results = train(job.parts, hooks)
    weights = {seed: result.weights for seed, result in results.items()}
    if recorder.problem is None:
      status, exit_code = "finished", 0
      if any(result.interrupted for result in results.values()):
        status, exit_code = "interrupted", stop.exit_code or 130
  except KeyboardInterrupt:  # The second one, at any moment.
    status, exit_code = "interrupted", 130
  except callbacks_lib.CallbackError as carried:
    ended_by = carried.error
    problems.extend(_problems(job, ended_by, "a callback failed with "))
  except BaseException as error:
    if isinstance(error, common.StoppedError):
      # There are no results if they were lost.
      weights = dict(zip(config.seeds, error.weights, strict=False))
    ended_by = error
    problems.extend(_problems(job, error))
  if checkpoints.problem:
    problems.append(f"the newest state is in no checkpoint: {checkpoints.problem}")
  table, unwritten = recorder.finish(
    status, results, weights, checkpoints.seconds, callbacks.reason
  )
  problems.extend(unwritten)
  console.line("\n" + table)
  _announce_files(job, console, failed=bool(problems))
  if status == "interrupted" and not problems:
    steps = max((result.env_steps for result in results.values()), default=0)
    again = "starts it again" if config.has_user_agent else "resumes it"
    console.line(
      f"The run is saved up to environment step {steps:,}; the same command {again}."
    )
  return Outcome(1 if problems else exit_code, problems, ended_by)


def _hooks(
  job: job_lib.Job,
  recorder: recorder_lib.Recorder,
  video_recorder: video.EpisodeRecorder | None,
  callbacks: callbacks_lib.Callbacks,
) -> common.Hooks:
  """The runner's hooks, except `stop`."""

  return common.Hooks(
    on_activity=recorder.on_activity,
    **_then_callbacks(recorder, callbacks),
    on_message=console_lib.print_error,
    observer=video_recorder,
    make_environment=job.parts.make_environment,
    ended=lambda: callbacks.have_ended,
    checkpoints=job.checkpoints,
  )


def _then_callbacks(first: Any, callbacks: callbacks_lib.Callbacks) -> dict[str, Any]:
  """Hooks that call the method of that name of `first`, and then the callbacks."""

  def joined(method: str) -> Callable[[Any], None]:
    def call(event: Any) -> None:
      getattr(first, method)(event)
      callbacks.call(method, event)

    return call

  return {name: joined(name) for name in ("on_log", "on_episode", "on_evaluation")}


def _announce_start(job: job_lib.Job, console: console_lib.Console) -> None:
  """Prints the run's length and directory, and where it resumes."""
  config = job.config
  length = config.length + " of each" * (config.num_seeds > 1)
  console.line(f"{length}, into {job.directory.given}")
  if few := job_lib.few_updates(job.parts):
    console.line(few)
  if not job.directory.holds_run or job.checkpoints is None:
    return
  restored = job.checkpoints.restored
  if restored is None:
    console.line("The earlier run ended before its first checkpoint: starting again.")
  else:
    console.line(f"Resuming at environment step {restored.record['env_steps']:,}.")


def train(parts: job_lib.Parts, hooks: common.Hooks) -> dict[int, common.Result]:
  """Calls the runner; returns the result of each seed."""
  config = parts.config
  runner = job_lib.runner(config)
  if config.runner != config_lib.DISTRIBUTED and not config.has_user_agent:
    restored = hooks.restored
    env_steps = 0 if restored is None else restored.record["env_steps"]
    hooks.on_activity(common.compiling("initialisation", env_steps))
  arguments: dict[str, Any] = {"evaluation_environment": parts.evaluation_environment}
  if config.num_seeds > 1 or parts.given.params:
    arguments["params"] = parts.given.params
    results = runner.run_seeds(
      parts.agent, parts.environment, config, hooks, **arguments
    )
    return dict(zip(config.seeds, results, strict=True))
  result = runner.run(parts.agent, parts.environment, config, hooks, **arguments)
  return {config.seed: result}


def train_without_files(
  config: config_lib.RunConfig,
  hooks: common.Hooks,
  given: job_lib.Given | None = None,
  callback: callbacks_lib.Functions | None = None,
) -> dict[int, common.Result]:
  """Trains as a run does, but leaves no files; returns the result of each seed.

  Args:
    config: of one run: of one seed, or of seeds that one program trains.
    hooks: called during the run; they get `make_environment` from the run.
    given: the objects that the caller provides.
    callback: of the caller, beside that of the config; without checkpoints.
  """
  given = given or job_lib.Given()
  try:
    with signals.stop_on_signals(lambda number: None) as request:
      callbacks = callbacks_lib.make(config.callback, callback)
      with contextlib.closing(job_lib.make_parts(config, given)) as parts:
        if few := job_lib.few_updates(parts):
          hooks.on_message(few)
        return train(parts, _without_files(parts, hooks, callbacks, request))
  except callbacks_lib.CallbackError as carried:
    error = carried.error
  raise error  # As it was raised, without this context.


def _without_files(
  parts: job_lib.Parts,
  hooks: common.Hooks,
  callbacks: callbacks_lib.Callbacks,
  request: signals.StopRequest,
) -> common.Hooks:
  """The hooks of a run without files, with callbacks and a way to interrupt it."""
  return dataclasses.replace(
    hooks,
    **_then_callbacks(hooks, callbacks),
    stop=lambda: hooks.stop() or request(),
    ended=lambda: callbacks.have_ended,
    make_environment=parts.make_environment,
  )


def _problems(
  job: job_lib.Job, error: BaseException, what: str = ""
) -> list[Exception | str]:
  """Describes the exception that ended the run; saves its details to files."""
  if job.config.debug:
    traceback.print_exception(error)
  if isinstance(error, errors.SetUpError):  # Of parts that start with the run.
    return [error]
  is_known = isinstance(error, errors.OutputError | common.StoppedError)
  text = what + (str(error) if is_known else errors.describe(error))
  lines = "".join(traceback.format_exception(error)).encode()
  try:
    job.directory.write(ERROR, lambda file: file.write(lines))
    text = (
      text.removesuffix(".") + f"; the traceback is in {job.directory.given / ERROR}."
    )
  except errors.OutputError as unwritten:
    return [text, unwritten]
  return [text]


def _announce_files(
  job: job_lib.Job, console: console_lib.Console, *, failed: bool
) -> None:
  """Prints where the results are."""
  config, path = job.config, job.directory.given
  saved, others = recorder_lib.WEIGHTS, ""
  if config.num_seeds > 1:
    saved = f"seed{config.seed}/{saved}"
    others = " and in the other seeds' directories"
  if (job.directory.path / saved).exists():
    good = "last good weights" if failed else "weights"
    curve = ""  # Without an episode there is none.
    if (job.directory.path / "curve.png").exists():
      curve = f"the curve in {path / 'curve.png'}, "
    elif not plots.can_draw():
      curve = "no curve is drawn without matplotlib (explorax[plots]), "
    console.line(
      f"\nThe {good} are in {path / saved}{others}, {curve}the rest is in {path}."
    )


def _announce(number: signal.Signals) -> None:
  name = "Ctrl-C" if number == signal.SIGINT else number.name
  console_lib.alert(
    f"{name}: stopping and saving the results (send it again to quit at once)"
  )
