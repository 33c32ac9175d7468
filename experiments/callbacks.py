"""A user's own code in a run: what it is told, and how it ends the run."""

from collections.abc import Sequence
from typing import Any

from explorax import notation
from explorax.experiments import errors

# What a callback may have: on_log(row) is called every `log_every` steps,
# on_episode(episode) at the end of each training episode, on_evaluation(evaluation)
# after each evaluation, on_checkpoint(path, env_steps) after each checkpoint.
EVENTS = ("on_log", "on_episode", "on_evaluation", "on_checkpoint")


class StopTraining(Exception):
  """Raised in a callback to end the run: it counts as finished, and has its weights."""


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
      try:
        if (method := getattr(callback, event, None)) is not None:
          method(*arguments)
      except StopTraining as stop:
        self.reason = self.reason or str(stop) or "no reason given"

  def have_ended(self) -> bool:
    """Whether one of them has ended the run."""
    return self.reason is not None


def make(name: str) -> Any:
  """What the class or function `module:name` of `--callback` makes.

  Raises:
    ValueError: if there is none, or what it makes has no method of `EVENTS`.
  """
  function = notation.import_attribute(name, "callback")
  callback = function() if callable(function) else None
  if not any(callable(getattr(callback, event, None)) for event in EVENTS):
    raise errors.SetUpError(
      f"--callback={name} is no class or function that makes an object with some of "
      f"the methods {', '.join(EVENTS)}."
    )
  return callback
