"""Runs a job: the runner, the files that it leaves, and what ends it."""

import importlib
import signal
import sys
import traceback
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from explorax import environments
from explorax.experiments import errors, many_seeds, signals
from explorax.experiments import job as job_lib
from explorax.experiments.recording import console as console_lib
from explorax.experiments.recording import recorder as recorder_lib
from explorax.experiments.recording import video
from explorax.experiments.runners import errors as runner_errors

if TYPE_CHECKING:
  from explorax.experiments.distributed import driver
  from explorax.experiments.runners import local, recovery


NON_FINITE = "non_finite.json"


def run(job: job_lib.Job) -> int:
  """Runs the job, leaves its files whatever happens, and returns the exit code."""
  console = console_lib.Console(sys.stdout)
  begin = _one_seed if job.command.num_seeds == 1 else _many_seeds
  recording, train = begin(job, console)
  checkpoints = job.checkpoints
  if checkpoints is None:
    raise ValueError("the run is finished; there is nothing to supervise.")

  def tell(text: str) -> None:
    recording.pause()
    console.line(text)

  checkpoints.companion, checkpoints.tell = recording.save, tell
  return _supervise(job, console, recording, train)


_Job = job_lib.Job
# Asked whether to stop → seed → what the runner returns.
_Train = Callable[[Callable[[], bool]], "dict[int, local.Result]"]


class _Recording(Protocol):
  """What writes a run's files."""

  @property
  def problem(self) -> errors.OutputError | None: ...

  def save(self) -> dict[str, Any] | None: ...

  def pause(self) -> None: ...

  def finish(
    self,
    status: str,
    results: "Mapping[int, local.Result]",
    weights: Mapping[int, Any],
    wall_seconds: float,
  ) -> tuple[str, list[errors.OutputError]]: ...


def _one_seed(job: _Job, console: console_lib.Console) -> tuple[_Recording, _Train]:
  """A run of one seed, in the runner that was asked for."""

  command = job.command
  runner = importlib.import_module(f"explorax.experiments.runners.{command.runner}")
  console.line(f"{job.title}: {job.length}, into {job.directory.path}")
  _announce_resuming(job, console)
  film = video.Film(command.video) if command.evaluates else None
  recorder = recorder_lib.Recorder(
    job.directory,
    title=job.title,
    num_episodes=job.num_episodes,
    num_steps=command.steps,
    solved_rule=environments.solved_rule(command.env),
    console=console,
    film=film,
    resumed=_resumed(job),
  )

  def on_env_failure(failure: "recovery.Failure") -> None:
    recorder.on_env_failure(failure)
    if command.debug:
      traceback.print_exception(failure.error)
    console_lib.complain(
      f"{failure}; it is made anew (failure {failure.number} in a row, "
      f"{failure.limit} are allowed)."
    )

  def on_replacement(replaced: "driver.Replacement") -> None:
    recorder.on_replacement(replaced.role)
    console_lib.complain(replaced.sentence)

  of_runner = job.of_runner
  if command.runner == "distributed":
    of_runner["on_replacement"] = on_replacement

  def train(stop: Callable[[], bool]) -> "dict[int, local.Result]":
    result = runner.run(
      job.agent,
      job.environment,
      seed=command.seed,
      replay=command.replay,
      num_episodes=job.num_episodes,
      num_steps=command.steps,
      on_episode=recorder.on_episode,
      stop=stop,
      evaluation_environment=job.evaluation_environment,
      eval_every=command.eval_every,
      eval_episodes=command.eval_episodes,
      on_evaluation=recorder.on_evaluation,
      watcher=film,
      remake_environment=job.remake_environment,
      max_env_failures=command.max_env_failures,
      on_env_failure=on_env_failure,
      **of_runner,
    )
    return {command.seed: result}

  return _OfOneSeed(recorder, job), train


class _OfOneSeed:
  """A `Recorder` as a `_Recording`."""

  def __init__(self, recorder: "recorder_lib.Recorder", job: _Job):
    self._recorder = recorder
    self._job = job

  @property
  def problem(self) -> errors.OutputError | None:
    return self._recorder.problem

  def save(self) -> dict[str, Any] | None:
    return self._recorder.save()

  def pause(self) -> None:
    self._recorder.pause()

  def finish(
    self,
    status: str,
    results: "Mapping[int, local.Result]",
    weights: Mapping[int, Any],
    wall_seconds: float,
  ) -> tuple[str, list[errors.OutputError]]:
    seed = self._job.command.seed
    outcome, problems = self._recorder.finish(
      status, results.get(seed), weights.get(seed), wall_seconds
    )
    return outcome.table(self._job.title), problems


def _many_seeds(job: _Job, console: console_lib.Console) -> tuple[_Recording, _Train]:
  """A run of many seeds at the same time, in the device runner."""
  from explorax.experiments.runners import device

  command = job.command
  seeds = range(command.seed, command.seed + command.num_seeds)
  console.line(f"{job.title}: {job.length} of each, into {job.directory.path}")
  _announce_resuming(job, console)
  recorders = many_seeds.Recorders(
    job.directory,
    {seed: {**job.record, "seed": seed, "num_seeds": 1} for seed in seeds},
    title=f"{command.agent} on {command.env}",
    num_episodes=job.num_episodes,
    num_steps=command.steps,
    solved_rule=lambda: environments.solved_rule(command.env),
    console=console,
    resumed=_resumed(job),
  )

  def train(stop: Callable[[], bool]) -> "dict[int, local.Result]":
    raw: Any = getattr(job.environment, "raw", job.environment)
    results = device.train(
      job.agent,
      *raw.pure,
      seeds=seeds,
      num_envs=command.num_envs or 1,
      num_episodes=job.num_episodes,
      num_steps=command.steps,
      on_episode=recorders.on_episode,
      stop=stop,
      checkpoints=job.checkpoints,
    )
    return dict(zip(seeds, results, strict=True))

  return recorders, train


def _resumed(job: _Job) -> Mapping[str, Any] | None:
  """What the recording has put into the checkpoint that the run goes on from."""
  found = job.checkpoints.found if job.checkpoints else None
  return None if found is None else found.record["companion"]


def _announce_resuming(job: _Job, console: console_lib.Console) -> None:
  """Says where a run that the directory holds is gone on from."""
  if not job.directory.holds_run or job.checkpoints is None:
    return
  found = job.checkpoints.found
  if found is None:
    console.line("It was ended before its first checkpoint, and begins anew.")
  else:
    console.line(f"It goes on at environment step {found.record['env_steps']:,}.")


def _supervise(
  job: _Job, console: console_lib.Console, recording: _Recording, train: _Train
) -> int:
  """Trains, leaves the files whatever happens, and returns the exit code."""

  command = job.command
  status, exit_code = "failed", 1
  problems: list[Exception | str] = []
  results: dict[int, local.Result] = {}
  weights: dict[int, Any] = {}
  try:
    with signals.stop_on_signals(_announce) as stop:
      results = train(lambda: stop() or recording.problem is not None)
    weights = {seed: result.weights for seed, result in results.items()}
    if recording.problem is None:
      status, exit_code = "finished", 0
      complete = all(job.is_complete(result) for result in results.values())
      interrupted = any(result.interrupted for result in results.values())
      if interrupted or (stop() and not complete):
        status, exit_code = "interrupted", stop.exit_code
  except runner_errors.StoppedError as error:
    if command.debug:
      traceback.print_exception(error)
    seeds = range(command.seed, command.seed + command.num_seeds)
    weights = dict(zip(seeds, error.weights, strict=True))
    problems.append(error)
    if error.record is not None:
      try:
        job.directory.write_json(NON_FINITE, error.record)
        place = job.directory.path / NON_FINITE
        problems[-1] = f"{error} The keys of that update's batch in replay: {place}."
      except errors.OutputError as unwritten_record:
        problems.append(unwritten_record)
  except errors.SetUpError as error:  # Of what is started only when a run begins.
    problems.append(error)
  except KeyboardInterrupt:  # The second one, at a moment that nobody expects.
    status, exit_code = "interrupted", 130
  finally:
    # Also when a traceback is on its way: what was recorded belongs to the user.
    seconds = job.checkpoints.seconds if job.checkpoints else 0.0
    table, unwritten = recording.finish(status, results, weights, seconds)
    problems.extend(unwritten)
  console.line("\n" + table)
  path = job.directory.path
  saved, others = path / recorder_lib.WEIGHTS, ""
  if command.num_seeds > 1:
    saved = path / f"seed{command.seed}" / recorder_lib.WEIGHTS
    others = " and in the other seeds' directories"
  if saved.exists():
    good = "last good weights" if problems else "weights"
    console.line(
      f"\nThe {good} are in {saved}{others}, the curve in {path / 'curve.png'}, the "
      f"rest in {path}."
    )
  for problem in problems:
    console_lib.complain(problem)
  return 1 if problems else exit_code


def _announce(number: signal.Signals) -> None:
  name = "Ctrl-C" if number == signal.SIGINT else number.name
  console_lib.alert(f"{name}: stopping; what was learnt will be saved (again: at once)")
