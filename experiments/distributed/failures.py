"""What has ended a process, in a sentence."""

import re
from typing import Any

from explorax import environments
from explorax.agents import types
from explorax.experiments.distributed import collector
from explorax.experiments.runners import errors, recovery

# In what Ray says of a process that has failed as it began.
_AS_IT_BEGAN = "raised in its creation task"


def sentence(name: str, error: Any, weights: list[types.Params]) -> errors.StoppedError:
  """What ends the run, with the sentence that says why.

  Args:
    name: of whose process it was.
    error: what Ray has raised.
    weights: the last good ones.
  """
  import ray

  cause = getattr(error, "cause", None) or error
  if isinstance(cause, ray.exceptions.RayActorError):
    # Who asked a process that died has raised what it was told.
    asked = isinstance(error, ray.exceptions.RayTaskError)
    return errors.StoppedError(death(name, str(cause), asked), weights)
  text = " ".join(str(cause).split())
  if isinstance(cause, FloatingPointError | environments.NonFiniteError):
    record = getattr(cause, "record", None)
    return errors.NonFiniteError(f"{name} stopped: {text}", weights, record)
  if isinstance(cause, recovery.GivenUpError):
    return errors.EnvironmentFailedError(f"{name} stopped: {text}", weights)
  return errors.StoppedError(f"{name} failed: {type(cause).__name__}: {text}", weights)


def is_death(error: Exception) -> bool:
  """Whether a process died, and did not fail as it began or at its work."""
  import ray

  if isinstance(error, ray.exceptions.OutOfMemoryError):
    return True
  if not isinstance(error, ray.exceptions.RayActorError):
    return False
  if not error.actor_init_failed:
    return True
  # Another that it asked as it began may have died.
  return "RayActorError" in str(error) or "ActorDiedError" in str(error)


def death(name: str, told: str, asked: bool) -> str:
  """Ray's paragraph on a process that died, in one sentence.

  Args:
    name: whose work has ended by it.
    told: what Ray says.
    asked: whether that one is alive, and has asked another that is not.
  """
  found = re.search(r"class_name: (\w+)", told)
  if asked and found:
    owner = "the collector" if found[1] == collector.Collector.__name__ else "replay"
    name = f"{owner}, of which {name} asked something,"
  if _AS_IT_BEGAN in told:
    # The last line says why.
    return f"the process of {name} failed: {told.strip().splitlines()[-1].strip()}"
  return (
    f"the process of {name} died unexpectedly: it was killed, ran out of memory or "
    "crashed."
  )
