"""A user's own code in a run: what it is told, and how it ends the run."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from explorax.experiments import errors
from explorax.experiments import settings as settings_lib


class StopTraining(Exception):
  """Raised in a callback to end the run: it counts as finished, and has its weights."""


class CallbackError(BaseException):
  """Carries an exception of a callback through a runner, which would wrap others.

  Attributes:
    error: the exception.
  """

  def __init__(self, error: Exception):
    super().__init__(str(error))
    self.error = error


@dataclasses.dataclass(frozen=True)
class Functions:
  """A callback made of functions; None is not called."""

  on_log: Any = None
  on_episode: Any = None
  on_evaluation: Any = None
  on_checkpoint: Any = None


class Callbacks:
  """Calls the methods that objects have: those of `Functions`, all of them optional.

  on_log(row)                       every `log_every` steps (`LogRow`)
  on_episode(episode)               at the end of each training episode (`Episode`)
  on_evaluation(evaluation)         after each evaluation (`Evaluation`)
  on_checkpoint(path, env_steps)    after each checkpoint, with its directory

  Attributes:
    reason: why one of them has ended the run; None if none has.
  """

  def __init__(self, objects: Sequence[Any]):
    self._objects = objects
    self.reason: str | None = None

  def call(self, method: str, *arguments: Any) -> None:
    """Calls a method of each object.

    Raises:
      CallbackError: if one of them raises anything but a `StopTraining`.
    """
    for each in self._objects:
      function = getattr(each, method, None)
      if function is None:
        continue
      try:
        function(*arguments)
      except StopTraining as stop:
        self.reason = self.reason or str(stop) or "no reason given"
      except Exception as error:
        raise CallbackError(error) from error

  @property
  def have_ended(self) -> bool:
    """Whether one of them has ended the run."""
    return self.reason is not None


def find(name: str) -> Any:
  """The class or function `module:name` of `--callback`, which makes a callback.

  Raises:
    SetUpError: if it does not exist, or cannot be called.
  """
  make = settings_lib.import_attribute(name, "callback")
  if not callable(make):
    raise errors.SetUpError(
      f"--callback={name} is not callable; name a class, or a function that returns an "
      "object with on_log, on_episode, on_evaluation or on_checkpoint."
    )
  return make


def make(name: str | None, *others: Any) -> Callbacks:
  """The callbacks of a run: `others`, then that of `--callback`.

  Raises:
    SetUpError: if it cannot be made, or has none of the methods.
  """
  if name is None:
    return Callbacks(others)
  try:
    found = find(name)()
  except Exception as error:
    raise errors.SetUpError(
      f"--callback={name} failed when it was called without arguments "
      f"({errors.describe(error)}); name a class, or a function, that takes none."
    ) from error
  methods = [field.name for field in dataclasses.fields(Functions)]
  if not any(callable(getattr(found, method, None)) for method in methods):
    raise errors.SetUpError(
      f"--callback={name} made a {type(found).__name__}, which has none of the methods "
      f"{', '.join(methods)}; write at least one."
    )
  return Callbacks([*others, found])
