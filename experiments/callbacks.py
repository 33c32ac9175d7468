"""A user's own code in a run: what it is told, and how it ends the run."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from explorax import notation
from explorax.experiments import errors


class StopTraining(Exception):
  """Raised in a callback to end the run: it counts as finished, and has its weights."""


@dataclasses.dataclass(frozen=True)
class Functions:
  """A callback made of functions; None is not called.

  on_log(row)                       every `log_every` steps (`LogRow`)
  on_episode(episode)               at the end of each training episode (`Episode`)
  on_evaluation(evaluation)         after each evaluation (`Evaluation`)
  on_checkpoint(path, env_steps)    after each checkpoint, with its directory
  """

  on_log: Any = None
  on_episode: Any = None
  on_evaluation: Any = None
  on_checkpoint: Any = None


EVENTS = tuple(field.name for field in dataclasses.fields(Functions))


class Callbacks:
  """Calls objects that have some of the methods of `EVENTS`.

  Attributes:
    reason: why one of them has ended the run; None if none has.
  """

  def __init__(self, objects: Sequence[Any]):
    self._objects = objects
    self.reason: str | None = None

  def call(self, event: str, *arguments: Any) -> None:
    """Calls the method of that name of each object."""
    for callback in self._objects:
      function = getattr(callback, event, None)
      if function is None:
        continue
      try:
        function(*arguments)
      except StopTraining as stop:
        self.reason = self.reason or str(stop) or "no reason given"

  @property
  def have_ended(self) -> bool:
    """Whether one of them has ended the run."""
    return self.reason is not None


def make(name: str) -> Any:
  """What the class or function `module:name` of `--callback` makes.

  Raises:
    SetUpError: if there is none, or what it makes has no method of `EVENTS`.
  """
  callback = find(name)()
  if not any(callable(getattr(callback, event, None)) for event in EVENTS):
    raise errors.SetUpError(
      f"--callback={name} made a {type(callback).__name__}, which has none of the "
      f"methods {', '.join(EVENTS)}; write at least one."
    )
  return callback


def find(name: str) -> Any:
  """The class or function `module:name` of `--callback`.

  Raises:
    SetUpError: if it does not exist, or cannot be called.
  """
  function = notation.import_attribute(name, "callback")
  if not callable(function):
    raise errors.SetUpError(
      f"--callback={name} is not callable; name a class, or a function that returns an "
      f"object with some of the methods {', '.join(EVENTS)}."
    )
  return function
