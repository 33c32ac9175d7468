"""The course of a run in one process: limits, logs, evaluations and checkpoints."""

import abc
import contextlib
import dataclasses
from typing import Any

import dm_env

from explorax.agents import types
from explorax.agents.wiring import actor as actor_lib
from explorax.environments import errors as environment_errors
from explorax.experiments import checkpoint as checkpoint_lib
from explorax.experiments import config as config_lib
from explorax.experiments import errors as run_errors
from explorax.experiments.runners import clock as clock_lib
from explorax.experiments.runners import core, errors, evaluation, recovery


class Run(abc.ABC):
  """What differs between the runners that work in one process.

  Attributes:
    clock: of the steps.
  """

  clock: clock_lib.Clock

  @property
  @abc.abstractmethod
  def env_steps(self) -> int:
    """Environment steps so far, of each seed."""

  @property
  @abc.abstractmethod
  def may_evaluate(self) -> bool:
    """Whether an evaluation may run now."""

  @property
  def may_save(self) -> bool:
    """Whether a checkpoint that is due may be written now, to resume bit for bit."""
    return True

  @property
  @abc.abstractmethod
  def is_done(self) -> bool:
    """Whether a limit is reached."""

  @property
  @abc.abstractmethod
  def activity(self) -> core.Activity:
    """What `advance` does next."""

  @property
  def program(self) -> str:
    """Of which program `advance` is the next call; the first one compiles it."""
    return "acting" if self.activity.name == core.FILLING else "learning"

  @abc.abstractmethod
  def advance(self) -> None:
    """Acts, stores and learns, for as long as the run cannot stop."""

  @abc.abstractmethod
  def check_finite(self) -> None:
    """Raises an error if the last update was not finite."""

  @abc.abstractmethod
  def save(self, *, with_replay: bool) -> checkpoint_lib.Snapshot:
    """The state for a checkpoint."""

  @abc.abstractmethod
  def restore(self, checkpoint: checkpoint_lib.Checkpoint) -> None:
    """Resumes from a state of `save`."""

  @abc.abstractmethod
  def log_rows(self) -> list[core.LogRow]:
    """What is to be logged now, of each seed."""

  @abc.abstractmethod
  def weights(self) -> list[types.Params]:
    """The weights of each seed, on the host."""

  @abc.abstractmethod
  def results(self, interrupted: bool) -> list[core.Result]:
    """The result of each seed."""

  def own_environment(self, index: int) -> dm_env.Environment | None:
    """A seed's environment of evaluations, if it has parameters of its own."""
    return None

  @abc.abstractmethod
  def make_evaluation_actors(self) -> list[actor_lib.Actor]:
    """An actor with the learner's weights and a separate key for each seed."""


class Course:
  """Limits, logs, evaluations, checkpoints and the end of a run; a context.

      with training.Course(run, config, hooks, evaluation_environment) as course:
        while course.continues():
          run.advance()
          course.after_step()
        return course.finish()

  `config.eval_episodes` episodes of the evaluation policy (or `config.eval_steps`
  steps) run at the end of a run that was not stopped, and with `config.eval_every` also
  whenever a multiple of so many environment steps was passed, unless the last
  evaluation is up to date. They do not affect replay, counts or returns. A run without
  its last evaluation is interrupted. Several seeds are evaluated one after the other.

  An exception in the context is replaced by one of these, with the last good weights:
    errors.NonFiniteError: a reward, an observation or the loss is NaN or infinite.
    errors.EnvironmentFailedError: an environment crashed too often in a row.
    errors.StoppedError: anything else, which is its cause.
  """

  def __init__(
    self,
    run: Run,
    config: config_lib.RunConfig,
    hooks: core.Hooks,
    evaluation_environment: dm_env.Environment | None = None,
  ):
    """Resumes the run if `hooks.checkpoints` has found a checkpoint.

    Args:
      run: what is to be done.
      config: has the limits.
      hooks: called during the run.
      evaluation_environment: closed by its owner. None: the only evaluation is at the
        end, in an environment that is made then, as it may share global random numbers
        with that of training; without `hooks.make_environment` there is none.
    """
    self._run = run
    self._config = config
    self._hooks = hooks
    self._checkpoints = hooks.checkpoints
    self._compiled: set[str] = set()  # The programs that this process has called.
    self._at_exit = contextlib.ExitStack()
    self._evaluations: list[evaluation.Evaluations] = []  # Of each seed.
    if evaluation_environment is not None:
      self._prepare_evaluations(evaluation_environment)
    # Before the first step, even if `may_evaluate` is false while replay is refilled.
    self._evaluates_first = False
    found = None if self._checkpoints is None else self._checkpoints.restored
    if found is not None:
      run.restore(found)
      left_off = [x.restore(found, _group(i)) for i, x in enumerate(self._evaluations)]
      self._evaluates_first = any(left_off)

    self._log_clock = core.LogClock(config.log_every, run.env_steps)

  def __enter__(self) -> "Course":
    return self

  def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
    self._at_exit.close()
    if error is None or isinstance(error, errors.StoppedError):
      return
    # Not an InterruptedTaskError, and not a callback's.
    if isinstance(error, Exception | SystemExit):
      raise _stopped(error, self._run, self._config) from error

  def continues(self) -> bool:
    """Whether another step is due; shows what it does."""
    run = self._run
    if self._evaluates_first:
      self._evaluate_if_due()
      self._evaluates_first = False
    if self._is_complete or self._hooks.stop():
      return False
    activity = run.activity
    if run.program not in self._compiled:
      self._compiled.add(run.program)
      activity = core.Activity(f"{core.COMPILING} {run.program}", run.env_steps)
    self._hooks.on_activity(activity)
    return True

  def after_step(self) -> None:
    """Logs, evaluates and writes a checkpoint, if they are due."""
    run, checkpoints = self._run, self._checkpoints
    if self._log_clock.is_due(run.env_steps):
      for row in run.log_rows():
        self._hooks.on_log(row)
    if run.may_evaluate:
      self._evaluate_if_due()
    is_due = checkpoints is not None and checkpoints.is_due(run.env_steps)
    if checkpoints is not None and is_due and run.may_save:
      self._save(checkpoints)

  def finish(self) -> list[core.Result]:
    """Evaluates and writes the last checkpoint; returns the result of each seed.

    Without `eval_every`, the evaluation comes last and is in no checkpoint: one that is
    stopped is repeated, and a run that is extended has only that of its new end.
    """
    run = self._run
    run.check_finite()
    is_complete = self._is_complete
    evaluates_last = self._config.eval_every is None
    if is_complete and not evaluates_last:
      is_complete = self._evaluate()
    if self._checkpoints is not None:
      self._save(self._checkpoints)
    if is_complete and evaluates_last:
      make = self._hooks.make_environment
      if not self._evaluations and self._config.evaluates and make is not None:
        environment = make(core.EVALUATION, 0)
        self._at_exit.callback(recovery.close, environment)
        self._prepare_evaluations(environment)
      is_complete = self._evaluate()
    return run.results(interrupted=not is_complete)

  def _prepare_evaluations(self, environment: dm_env.Environment) -> None:
    config, run, hooks = self._config, self._run, self._hooks
    guarded = recovery.guard(environment, core.EVALUATION, config, hooks)
    self._at_exit.callback(guarded.close)
    unmade = dataclasses.replace(hooks, make_environment=None)
    self._evaluations = []
    for i, actor in enumerate(run.make_evaluation_actors()):
      place, own = guarded, run.own_environment(i)
      if own is not None:  # Another one would have other parameters.
        place = recovery.guard(own, core.EVALUATION, config, unmade)
      self._evaluations.append(
        evaluation.Evaluations(actor, place, run.clock, config, hooks, config.seeds[i])
      )

  def _evaluate(self) -> bool:
    """Evaluates, unless that is up to date; returns whether it was not stopped."""
    steps = self._run.env_steps
    for each in self._evaluations:
      each.evaluate(steps)
    return all(each.is_up_to_date(steps) for each in self._evaluations)

  def _save(self, checkpoints: checkpoint_lib.Checkpointer) -> None:
    self._run.check_finite()
    snapshot = self._run.save(with_replay=checkpoints.with_replay)
    for i, each in enumerate(self._evaluations):
      snapshot = each.add_to(snapshot, _group(i))
    checkpoints.save(self._run.env_steps, snapshot)

  @property
  def _is_complete(self) -> bool:
    return self._run.is_done or self._hooks.ended()

  def _evaluate_if_due(self) -> None:
    for each in self._evaluations:
      each.evaluate_if_due(self._run.env_steps)


def _group(index: int) -> str:
  """The name of a seed's evaluations in a checkpoint."""
  return "evaluation" + (str(index) if index else "")


def _stopped(
  error: Exception | SystemExit, run: Run, config: config_lib.RunConfig
) -> errors.StoppedError:
  """Wraps any exception in an error that carries the weights."""
  try:
    weights = run.weights()
  except Exception:  # For example if the computation failed on the device.
    weights = []
  place = f"stopped at environment step {run.env_steps}, seed {config.seed}"
  if isinstance(error, FloatingPointError):
    return errors.NonFiniteError(f"{place}: {error}", weights)
  if isinstance(error, recovery.UnrecoverableError):
    return errors.EnvironmentFailedError(str(error), weights)
  if recovery.is_refusal(error):
    return errors.StoppedError(f"{place}: {error}", weights)
  text = run_errors.describe(error)
  if line := environment_errors.users_line(error):
    text += f" ({line})"
  return errors.StoppedError(f"{place}: {text}", weights)


def check(
  config: config_lib.RunConfig, evaluation_environment: dm_env.Environment | None
) -> None:
  """Raises a ValueError if there is no limit, or nothing to evaluate in."""
  if config.episodes is None and config.steps is None:
    raise ValueError("the run has no limit; give episodes or steps.")
  if evaluation_environment is None and config.eval_every is not None:
    raise ValueError(
      f"eval_every is {config.eval_every}, but there is no evaluation_environment; "
      "give one of the same specs as the environment."
    )
