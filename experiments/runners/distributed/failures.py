"""Describes why a process failed, in one sentence."""

from typing import Any

from explorax import environments
from explorax.agents import types
from explorax.experiments.runners import errors, recovery


def stopped(role: str, error: Any, weights: list[types.Params]) -> errors.StoppedError:
  """The error that ends the run after the task of a process has failed.

  Args:
    role: of the process.
    error: raised by Ray.
    weights: the last good ones.
  """
  import ray

  cause = getattr(error, "cause", None) or error
  if isinstance(cause, ray.exceptions.RayActorError):
    # Ray's message about a failed constructor ends with the line of the exception.
    why = str(cause).strip().splitlines()[-1].strip()
    return errors.StoppedError(f"the process of {role} failed: {why}", weights)
  text = " ".join(str(cause).split())
  if isinstance(cause, FloatingPointError | environments.NonFiniteError):
    record = getattr(cause, "record", None)
    return errors.NonFiniteError(f"{role} stopped: {text}", weights, record)
  if isinstance(cause, recovery.UnrecoverableError):
    return errors.EnvironmentFailedError(f"{role} stopped: {text}", weights)
  return errors.StoppedError(f"{role} failed: {type(cause).__name__}: {text}", weights)
