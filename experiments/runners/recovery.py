"""Recreates environments that crash, up to a limit."""

import contextlib
from collections.abc import Callable
from typing import Any, TypeVar

import dm_env
import numpy as np

from explorax import environments
from explorax.environments import rendering, saving, standard
from explorax.experiments import config as config_lib
from explorax.experiments.runners import core

T = TypeVar("T")

# Exceptions of these modules report a protocol error of the environment, not a crash.
_CHECKS = (standard.__name__, rendering.__name__)


class CrashError(Exception):
  """Raised out of the loop by a crash; `error` is the environment's exception."""

  def __init__(self, error: Exception):
    super().__init__(str(error))
    self.error = error


class UnrecoverableError(Exception):
  """Too many failures in a row, or no way to replace the environment."""


class RecoverableEnvironment(dm_env.Environment):
  """An environment that is replaced by a new one when it crashes.

  A crash is any `Exception` from the environment's own code. Errors of our checks (a
  NaN, a violated spec) are raised unchanged.
  """

  def __init__(
    self,
    environment: dm_env.Environment,
    role: str,
    *,
    make: core.MakeEnvironment | None,
    max_failures: int,
    on_failure: Callable[[core.Failure], None],
    watched: Callable[[], contextlib.AbstractContextManager[None]] | None = None,
  ):
    """Wraps `environment`.

    Args:
      environment: the first one; the caller closes it.
      role: `TRAINING` or `EVALUATION`.
      make: makes the replacements, which `close` closes; None for none.
      max_failures: how many failures in a row are allowed.
      on_failure: called with each of them.
      watched: makes a context for each call of the environment's code; None for none.
    """
    self._watched = watched or contextlib.nullcontext
    self._environment = environment
    self._role = role
    self._make = make
    self._max_failures = max_failures
    self._on_failure = on_failure
    self._is_own = False
    self._failures = 0
    self._in_a_row = 0
    self._step: int | None = None  # None during a reset.

  @property
  def current(self) -> dm_env.Environment:
    """The environment in use."""
    return self._environment

  def resume(self, step: int) -> None:
    """The environment was restored after this many steps of an episode."""
    self._step = step

  def reset(self) -> dm_env.TimeStep:
    self._step = None
    timestep = self._guarded(self._environment.reset)
    self._step = 0
    return timestep

  def step(self, action: Any) -> dm_env.TimeStep:
    timestep = self._guarded(self._environment.step, action)
    self._step = (self._step or 0) + 1
    if timestep.last():
      self._in_a_row = 0
    return timestep

  def picture(self, timestep: dm_env.TimeStep) -> np.ndarray | None:
    """`rendering.picture` of the environment, which may crash, too."""
    return self._guarded(rendering.picture, self._environment, timestep)

  def recover(self, crash: CrashError, episode: int, env_steps: int) -> None:
    """Recreates the environment.

    Args:
      crash: what `reset` or `step` raised.
      episode: the number of the interrupted episode.
      env_steps: environment steps of training taken so far.

    Raises:
      UnrecoverableError: if this is not possible, or the limit is reached.
    """
    error, place = crash.error, self._place(episode)
    while True:
      self._failures += 1
      self._in_a_row += 1
      failure = core.Failure(
        self._role, error, place, env_steps, self._in_a_row, self._max_failures
      )
      if not self._max_failures:
        raise UnrecoverableError(
          f"{failure}; the run ends (--max_env_failures=N would recreate it)."
        ) from error
      if self._make is None:
        raise UnrecoverableError(
          f"{failure}; there is none to take its place."
        ) from error
      if self._in_a_row > self._max_failures:
        raise UnrecoverableError(
          f"{failure}; that is failure {self._in_a_row} in a row, and "
          f"{self._max_failures} are allowed."
        ) from error
      self._on_failure(failure)
      try:
        with self._watched():
          environment = self._make(self._role, self._failures)
      except Exception as again:
        error, place = again, f"while it was recreated for episode {episode}"
      else:
        saving.carry_over(self._environment, environment)
        self.close()
        self._environment, self._is_own = environment, True
        return

  def _place(self, episode: int) -> str:
    if self._step is None:
      return f"at the reset of episode {episode}"
    return f"after {self._step} steps of episode {episode}"

  def _guarded(self, function: Callable[..., T], *arguments: Any) -> T:
    try:
      with self._watched():
        return function(*arguments)
    except Exception as error:
      if is_refusal(error):
        raise
      raise CrashError(error) from error

  def observation_spec(self) -> dm_env.specs.Array:
    return self._environment.observation_spec()

  def action_spec(self) -> dm_env.specs.DiscreteArray:
    return self._environment.action_spec()

  def reward_spec(self) -> dm_env.specs.Array:
    return self._environment.reward_spec()

  def discount_spec(self) -> dm_env.specs.Array:
    return self._environment.discount_spec()

  def close(self) -> None:
    """Closes a replacement; a crashed one may raise an error, which is ignored."""
    if self._is_own:
      close(self._environment)


def close(environment: dm_env.Environment) -> None:
  """Closes an environment; an error, as of one that has crashed, is ignored."""
  with contextlib.suppress(Exception):
    environment.close()


def guard(
  environment: dm_env.Environment,
  role: str,
  config: config_lib.RunConfig,
  hooks: core.Hooks,
  number: int = 0,
) -> RecoverableEnvironment:
  """The environment of a run, recreated when it crashes; `number` is its index."""
  make = hooks.make_environment
  num_envs = (config.num_envs or 1) if role == core.TRAINING else 1

  def make_another(role: str, failures: int) -> dm_env.Environment:
    assert make is not None
    return make(role, number + num_envs * failures)

  return RecoverableEnvironment(
    environment,
    role,
    make=None if make is None else make_another,
    max_failures=config.max_env_failures,
    on_failure=hooks.on_env_failure,
  )


def is_refusal(error: BaseException) -> bool:
  """Whether one of our own checks raised the exception."""
  if isinstance(error, environments.NonFiniteError):
    return True
  trace = error.__traceback__
  while trace is not None and trace.tb_next is not None:
    trace = trace.tb_next
  return trace is not None and trace.tb_frame.f_globals.get("__name__") in _CHECKS
