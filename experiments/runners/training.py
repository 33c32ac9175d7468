"""Runs training in one process: limits, evaluations, checkpoints and the end."""

import abc
import contextlib

import dm_env

from explorax.agents import types
from explorax.agents.wiring import actor as actor_lib
from explorax.experiments import config as config_lib
from explorax.experiments import errors as run_errors
from explorax.experiments import signals
from explorax.experiments.checkpoints import checkpointer, files
from explorax.experiments.runners import clock as clock_lib
from explorax.experiments.runners import core, errors, evaluation, recovery


class Training(abc.ABC):
  """A runner's work in one process, in pieces between which a run can stop.

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
  @abc.abstractmethod
  def is_done(self) -> bool:
    """Whether a limit is reached."""

  @abc.abstractmethod
  def next_activity(self) -> core.Activity:
    """What `advance` does next; the first time of each kind it compiles."""

  @abc.abstractmethod
  def advance(self) -> None:
    """The smallest piece of work, with the updates due after it."""

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


def run(
  training: Training,
  config: config_lib.RunConfig,
  hooks: core.Hooks,
  evaluation_environment: dm_env.Environment | None = None,
) -> list[core.Result]:
  """Runs until the first limit, a stop or a KeyboardInterrupt.

  With an `evaluation_environment`, `config.eval_episodes` episodes of the evaluation
  policy (or `config.eval_steps` steps) run in it whenever a multiple of
  `config.eval_every` environment steps was passed, and at the end of a run that was not
  stopped, unless the last evaluation is up to date. They do not affect replay, counts
  or returns. A run without its last evaluation is interrupted.

  Raises:
    errors.StoppedError: if anything raised an exception, which is its cause; it has the
      last good weights.
    errors.NonFiniteError: if a reward, an observation or the loss is NaN or infinite.
    errors.EnvironmentFailedError: if an environment crashed too often in a row.
  """
  checkpoints = hooks.checkpoints
  with contextlib.ExitStack() as stack:
    interrupt = stack.enter_context(signals.stop_on_interrupt())

    def stop() -> bool:
      return hooks.stop() or interrupt()

    evaluations = None
    if evaluation_environment is not None:
      guarded = recovery.guard(evaluation_environment, core.EVALUATION, config, hooks)
      evaluations = evaluation.Evaluations(
        training.make_evaluation_actor(),
        stack.enter_context(contextlib.closing(guarded)),
        training.clock,
        every=config.eval_every,
        num_episodes=config.eval_episodes,
        num_steps=config.eval_steps,
        stop=stop,
        observer=hooks.observer,
        on_activity=hooks.on_activity,
        on_evaluation=hooks.on_evaluation,
      )

    def evaluate() -> None:
      if evaluations is not None and training.may_evaluate:
        evaluations.after_episode(training.env_steps)

    def save(checkpoints: checkpointer.Checkpointer) -> None:
      training.check_finite()
      snapshot = training.save(with_replay=checkpoints.with_replay)
      if evaluations is not None:
        snapshot = evaluations.add_to(snapshot)
      checkpoints.save(training.env_steps, snapshot)

    evaluates_first = False
    if checkpoints is not None and checkpoints.found is not None:
      training.restore(checkpoints.found)
      if evaluations is not None:
        evaluates_first = evaluations.restore(checkpoints.found)
    try:
      if evaluates_first and evaluations is not None:
        # At once: `may_evaluate` may be false while replay is refilled.
        evaluations.after_episode(training.env_steps)
      while not training.is_done and not stop():
        hooks.on_activity(training.next_activity())
        training.advance()
        evaluate()
        if checkpoints is not None and checkpoints.is_due(training.env_steps):
          save(checkpoints)
      training.check_finite()
      if evaluations is not None and training.is_done:
        evaluations.at_the_end(training.env_steps)
      if checkpoints is not None:
        save(checkpoints)
    except KeyboardInterrupt:
      pass
    except errors.StoppedError:  # From the device runner, with its weights.
      raise
    except (Exception, SystemExit) as error:  # Not an InterruptedTaskError.
      raise _stopped(error, training, config) from error
    is_complete = training.is_done and (
      evaluations is None or evaluations.is_up_to_date(training.env_steps)
    )
    return training.results(interrupted=not is_complete)


def _stopped(
  error: Exception | SystemExit, training: Training, config: config_lib.RunConfig
) -> errors.StoppedError:
  """Wraps any exception in an error that carries the weights."""
  try:
    weights = training.weights()
  except Exception:  # For example if the computation failed on the device.
    weights = []
  place = (
    f"stopped at environment step {training.env_steps}, seed "
    f"{getattr(error, 'seed', config.seed)}"
  )
  if isinstance(error, FloatingPointError):
    record = getattr(error, "record", None)
    return errors.NonFiniteError(f"{place}: {error}", weights, record)
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
