"""Runs one agent in one environment: `python -m explorax.experiments.run --help`.

Set-up errors are one sentence on stderr and exit code 2; with `--debug` they show
where they arose. JAX and everything above it are imported when a run begins, so that
help and mistyped commands answer at once.
"""

import contextlib
import dataclasses
import datetime
import functools
import importlib
import os
import shlex
import signal
import sys
import time
import traceback
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from explorax.experiments import command as command_lib
from explorax.experiments import console as console_lib
from explorax.experiments import errors

if TYPE_CHECKING:
  from explorax import environments
  from explorax.agents import types
  from explorax.experiments import output
  from explorax.experiments.runners import local, recovery

# What config checks, environments and agents raise when they are asked for something
# that they cannot do.
_REFUSALS = (errors.SetUpError, errors.OutputError, ValueError, TypeError, ImportError)


def main(argv: Sequence[str] | None = None) -> int:
  """Does what the command line asks and returns the process's exit code.

  0: done; 1: the run failed on the way; 2: it could not start; 130 or 143: it was
  stopped by Ctrl-C or SIGTERM.

  Args:
    argv: the command line without the program's name; the process's own by default.
  """
  argv = list(sys.argv[1:] if argv is None else argv)
  # TensorFlow, which comes with Reverb, greets with warnings about GPUs.
  os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
  debug = "--debug" in argv
  try:
    command = command_lib.parse(argv)
    if command.show:
      with contextlib.suppress(
        BrokenPipeError
      ):  # `--list_envs | head` has seen enough.
        print(_show(command.show), flush=True)
      return 0
    job = _set_up(command, argv)
  except _REFUSALS as error:
    if debug:
      raise
    _complain(error)
    return 2
  except KeyboardInterrupt:
    _complain("stopped before the run began.")
    return 130
  try:
    with contextlib.ExitStack() as stack:
      for environment in (job.environment, job.evaluation_environment):
        if environment is not None:
          stack.callback(_close, environment)
      return _run(job)
  except errors.OutputError as error:
    _complain(error)
    return 1


@dataclasses.dataclass(frozen=True)
class _Job:
  """All that a run needs, checked."""

  command: command_lib.Command
  agent: "types.Agent"
  environment: "environments.StandardEnvironment"
  evaluation_environment: "environments.StandardEnvironment | None"
  directory: "output.RunDirectory"
  num_episodes: int | None

  @property
  def title(self) -> str:
    command = self.command
    return f"{command.agent} on {command.env}, seed {command.seed}"

  @property
  def remake_environment(self) -> "recovery.Remake | None":
    """Makes environments anew, but not bsuite's, whose scores would start anew too."""
    if self.command.env.startswith("bsuite:"):
      return None
    return functools.partial(_make_environment, self.command)

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


def _show(what: str) -> str:
  if what == "help":
    return command_lib.help_text()
  if what == "agents":
    from explorax.experiments import presets

    rows = [(name, f"{p.summary} ({p.paper})") for name, p in presets.PRESETS.items()]
  else:
    from explorax import environments

    rows = environments.list_environments()
  width = max(len(name) for name, _ in rows)
  return "\n".join(f"{name:{width}}  {text}" for name, text in rows)


def _set_up(command: command_lib.Command, argv: list[str]) -> _Job:
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
  from explorax.experiments import output

  if command.replay == "reverb":
    builder.import_reverb_replay()

  directory = output.RunDirectory.create(command.output)
  try:
    environment = environments.make(
      command.env, seed=command.seed, record_to=str(directory.path / "bsuite")
    )
    evaluation_environment = _evaluation_environment(command)
    agent = preset.make_agent(config, environments.spec(environment))
    num_episodes = _num_episodes(command, environment)
    directory.write_json("config.json", _record(command, argv, config, num_episodes))
  except BaseException:
    directory.discard()
    raise
  return _Job(
    command, agent, environment, evaluation_environment, directory, num_episodes
  )


def _evaluation_environment(
  command: command_lib.Command,
) -> "environments.StandardEnvironment | None":
  """That of the evaluations, if there are to be any; checks that it can be drawn."""
  if not command.evaluates:
    return None
  if command.video:
    from explorax.environments import rendering
    from explorax.experiments import gif

    gif.check_installed()
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
  command: command_lib.Command, environment: "environments.StandardEnvironment"
) -> int | None:
  """`--episodes`, or bsuite's own number where nothing was said."""
  if command.episodes is not None or command.steps is not None:
    return command.episodes
  num_episodes = getattr(environment.raw, "bsuite_num_episodes", None)
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
    "episodes": num_episodes,
    "steps": command.steps,
    "runner": command.runner,
    "replay": command.replay,
    "eval_every": command.eval_every,
    "eval_episodes": command.eval_episodes if command.evaluates else None,
    "video": command.video,
    "max_env_failures": command.max_env_failures,
    "started": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    "versions": versions.collect(),
  }


def _run(job: _Job) -> int:
  """Runs the job, leaves its files whatever happens, and returns the exit code."""
  from explorax import environments
  from explorax.experiments import film as film_lib
  from explorax.experiments import recorder as recorder_lib
  from explorax.experiments import signals
  from explorax.experiments.runners import errors as runner_errors

  runner = importlib.import_module(f"explorax.experiments.runners.{job.command.runner}")
  console = console_lib.Console(sys.stdout)
  console.line(f"{job.title}: {job.length}, into {job.directory.path}")
  film = film_lib.Film(job.command.video) if job.command.evaluates else None
  recorder = recorder_lib.Recorder(
    job.directory,
    title=job.title,
    num_episodes=job.num_episodes,
    num_steps=job.command.steps,
    solved_rule=environments.solved_rule(job.command.env),
    console=console,
    film=film,
  )

  def on_env_failure(failure: "recovery.Failure") -> None:
    recorder.on_env_failure(failure)
    if job.command.debug:
      traceback.print_exception(failure.error)
    _complain(
      f"{failure}; it is made anew (failure {failure.number} in a row, "
      f"{failure.limit} are allowed)."
    )

  status, exit_code = "failed", 1
  problems: list[Exception] = []
  result = weights = None
  began = time.monotonic()
  try:
    with signals.stop_on_signals(_announce) as stop:
      result = runner.run(
        job.agent,
        job.environment,
        seed=job.command.seed,
        replay=job.command.replay,
        num_episodes=job.num_episodes,
        num_steps=job.command.steps,
        on_episode=recorder.on_episode,
        stop=lambda: stop() or recorder.problem is not None,
        evaluation_environment=job.evaluation_environment,
        eval_every=job.command.eval_every,
        eval_episodes=job.command.eval_episodes,
        on_evaluation=recorder.on_evaluation,
        watcher=film,
        remake_environment=job.remake_environment,
        max_env_failures=job.command.max_env_failures,
        on_env_failure=on_env_failure,
      )
    weights = result.weights
    if recorder.problem is None:
      status, exit_code = "finished", 0
      if result.interrupted or (stop() and not job.is_complete(result)):
        status, exit_code = "interrupted", stop.exit_code
  except runner_errors.StoppedError as error:
    if job.command.debug:
      traceback.print_exception(error)
    weights = error.weights
    problems.append(error)
  except KeyboardInterrupt:  # The second one, at a moment that nobody expects.
    status, exit_code = "interrupted", 130
  finally:
    # Also when a traceback is on its way: what was recorded belongs to the user.
    seconds = time.monotonic() - began
    outcome, unwritten = recorder.finish(status, result, weights, seconds)
    problems.extend(unwritten)
  console.line("\n" + outcome.table(job.title))
  saved = job.directory.path / recorder_lib.WEIGHTS
  if saved.exists():
    good = "last good weights" if problems else "weights"
    console.line(
      f"\nThe {good} are in {saved}, the curve in {job.directory.path / 'curve.png'}, "
      f"the rest in {job.directory.path}."
    )
  for problem in problems:
    _complain(problem)
  return 1 if problems else exit_code


def _close(environment: "environments.StandardEnvironment") -> None:
  """Closes it; one that has crashed may fail at that too, when all else is done."""
  try:
    environment.close()
  except Exception as error:
    _complain(f"the environment could not be closed ({type(error).__name__}: {error}).")


def _announce(number: signal.Signals) -> None:
  """Written past Python's buffers, which the signal may have caught in mid-write."""
  name = "Ctrl-C" if number == signal.SIGINT else number.name
  text = (
    f"\nexplorax: {name}: stopping; what was learnt will be saved (again: at once).\n"
  )
  with contextlib.suppress(OSError):
    os.write(2, text.encode())


def _complain(problem: Exception | str) -> None:
  print(f"explorax: {problem}", file=sys.stderr, flush=True)


if __name__ == "__main__":
  sys.exit(main())
