"""An adder's calls of its writer, to be made in another process."""

from typing import Any

from explorax.agents.replay import adder

# Names of a writer's methods, and their arguments, in order.
Calls = list[tuple[str, tuple[Any, ...]]]


class CallRecorder:
  """A writer that keeps its calls."""

  def __init__(self) -> None:
    self._calls: Calls = []

  def append(self, records: adder.Records) -> None:
    self._calls.append(("append", (records,)))

  def pad(self) -> None:
    self._calls.append(("pad", ()))

  def create_window(self, priority: float) -> None:
    self._calls.append(("create_window", (priority,)))

  def end_episode(self) -> None:
    self._calls.append(("end_episode", ()))

  def take(self) -> Calls:
    """The calls since the last `take`."""
    calls, self._calls = self._calls, []
    return calls


def make(calls: Calls, writer: adder.Writer) -> None:
  """Makes the calls."""
  for method, arguments in calls:
    getattr(writer, method)(*arguments)
