"""A user's own code in a run: what it is told, and how it ends the run."""

from collections.abc import Sequence
from typing import Any

from explorax import notation
from explorax.experiments import errors

# The methods that a callback may have. They are called every `log_every` steps with a
# `LogRow`, after each training episode with the `Episode`, after each evaluation with
# the `Evaluation`, and after each checkpoint with its path and the environment steps.
EVENTS = ("on_log", "on_episode", "on_evaluation", "on_checkpoint")


class StopTraining(Exception):
  """Raised in a callback to end the run: it counts as finished, and has its weights."""


class Callbacks:
  """Calls objects that have some of the methods of `EVENTS`.

  Attributes:
    reason: why one of them has ended the run; None if none has.
  """

  def __init__(self, ours: Sequence[Any], users: Sequence[Any]):
    self._ours, self._users = ours, users
    self.reason: str | None = None

  def call(self, event: str, *arguments: Any) -> None:
    """Calls the method of that name of each object."""
    self._call([*self._ours, *self._users], event, *arguments)

  def on_episodes(self, episodes: Sequence[Any]) -> None:
    """Calls `on_episodes` of ours, then `on_episode` of users' for each episode."""
    self._call(self._ours, "on_episodes", episodes)
    for episode in episodes:
      self._call(self._users, "on_episode", episode)

  def _call(self, objects: Sequence[Any], event: str, *arguments: Any) -> None:
    for callback in objects:
      try:
        if (method := getattr(callback, event, None)) is not None:
          method(*arguments)
      except StopTraining as stop:
        self.reason = self.reason or str(stop) or "no reason given"


def make(name: str) -> Any:
  """What the class or function `module:name` of `--callback` makes.

  Raises:
    ValueError: if there is none, or what it makes has none of `EVENTS`.
  """
  callback = notation.import_attribute(name, "callback")()
  if not any(hasattr(callback, event) for event in EVENTS):
    raise errors.SetUpError(
      f"--callback={name} makes an object with none of the methods {', '.join(EVENTS)}."
    )
  return callback
