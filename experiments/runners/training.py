"""The course of a run in one process: limits, evaluations, checkpoints, the end."""

import abc
from typing import Any

import dm_env

from explorax.agents import types
from explorax.agents.wiring import actor as actor_lib
from explorax.experiments import config as config_lib
from explorax.experiments import errors as run_errors
from explorax.experiments.checkpoints import checkpointer, files
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
    """What `advance` does next; the first time of each kind it compiles."""

  @abc.abstractmethod
  def advance(self) -> None:
    """Acts, stores and learns, for as long as the run cannot stop."""

  @abc.abstractmethod
  def check_finite(self) -> None:
    """Raises an error if the last update was not finite."""

  @abc.abstractmethod
  def save(self, *, with_replay: bool) -> checkpointer.Snapshot:
    """The state for a checkpoint."""

  @abc.abstractmethod
  def restore(self, checkpoint: files.Checkpoint) -> None:
    """Resumes from a state of `save`."""

  @abc.abstractmethod
  def weights(self) -> list[types.Params]:
    """The weights of each seed, on the host."""

  @abc.abstractmethod
  def results(self, interrupted: bool) -> list[core.Result]:
    """The result of each seed."""

  @abc.abstractmethod
  def make_evaluation_actor(self) -> actor_lib.Actor:
    """An actor with the learner's weights and a separate key."""


class Course:
  """Limits, evaluations, checkpoints and the end of a run; a context.

      with training.Course(run, config, hooks, evaluation_environment) as course:
        while course.continues():
          run.advance()
          course.after_step()
        return course.finish()

  With an `evaluation_environment`, `config.eval_episodes` episodes of the evaluation
  policy (or `config.eval_steps` steps) run in it whenever a multiple of
  `config.eval_every` environment steps was passed, and at the end of a run that was not
  stopped, unless the last evaluation is up to date. They do not affect replay, counts
  or returns. A run without its last evaluation is interrupted.

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
      evaluation_environment: closed by its owner; None for no evaluation.
    """
    self._run = run
    self._config = config
    self._hooks = hooks
    self._checkpoints = hooks.checkpoints
    self._compiled: set[str] = set()  # The activities of this process so far.
    self._evaluations: evaluation.Evaluations | None = None
    self._evaluation_environment: recovery.RecoverableEnvironment | None = None
    if evaluation_environment is not None:
      guarded = recovery.guard(evaluation_environment, core.EVALUATION, config, hooks)
      self._evaluation_environment = guarded
      self._evaluations = evaluation.Evaluations(
        run.make_evaluation_actor(), guarded, run.clock, config, hooks
      )
    # Before the first step, even if `may_evaluate` is false while replay is refilled.
    self._evaluates_first = False
    found = None if self._checkpoints is None else self._checkpoints.restored
    if found is not None:
      run.restore(found)
      if self._evaluations is not None:
        self._evaluates_first = self._evaluations.restore(found)

  def __enter__(self) -> "Course":
    return self

  def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
    if self._evaluation_environment is not None:
      self._evaluation_environment.close()
    if error is None or isinstance(error, errors.StoppedError):
      return
    if isinstance(error, Exception | SystemExit):  # Not an InterruptedTaskError.
      raise _stopped(error, self._run, self._config) from error

  def continues(self) -> bool:
    """Whether another step is due; shows what it does."""
    run = self._run
    if self._evaluates_first and self._evaluations is not None:
      self._evaluations.evaluate_if_due(run.env_steps)
      self._evaluates_first = False
    if run.is_done or self._hooks.stop():
      return False
    activity = run.activity
    if activity.name not in self._compiled:
      self._compiled.add(activity.name)
      activity = core.Activity(core.COMPILING, run.env_steps)
    self._hooks.on_activity(activity)
    return True

  def after_step(self) -> None:
    """Evaluates and writes a checkpoint, if they are due."""
    run, checkpoints = self._run, self._checkpoints
    if self._evaluations is not None and run.may_evaluate:
      self._evaluations.evaluate_if_due(run.env_steps)
    is_due = checkpoints is not None and checkpoints.is_due(run.env_steps)
    if checkpoints is not None and is_due and run.may_save:
      self._save(checkpoints)

  def finish(self) -> list[core.Result]:
    """Evaluates and writes the last checkpoint; returns the result of each seed."""
    run = self._run
    run.check_finite()
    is_complete = run.is_done
    if self._evaluations is not None and is_complete:
      self._evaluations.evaluate(run.env_steps)
      is_complete = self._evaluations.is_up_to_date(run.env_steps)
    if self._checkpoints is not None:
      self._save(self._checkpoints)
    return run.results(interrupted=not is_complete)

  def _save(self, checkpoints: checkpointer.Checkpointer) -> None:
    self._run.check_finite()
    snapshot = self._run.save(with_replay=checkpoints.with_replay)
    if self._evaluations is not None:
      snapshot = self._evaluations.add_to(snapshot)
    checkpoints.save(self._run.env_steps, snapshot)


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
  return errors.StoppedError(f"{place}: {run_errors.describe(error)}", weights)


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
