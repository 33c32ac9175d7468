"""An adder's calls of its writer, to be made in another process."""

from typing import Any

import numpy as np

from explorax.agents.replay import adder

# Names of a writer's methods, and their arguments, in order.
Calls = list[tuple[str, tuple[Any, ...]]]


class CallRecorder:
  """A writer that keeps its calls, with bytes for words: quicker to pickle."""

  def __init__(self) -> None:
    self._calls: Calls = []

  def append(self, records: adder.Records) -> None:
    packed = {kind: words.tobytes() for kind, words in records.items()}
    self._calls.append(("append", (packed,)))

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
    if method == "append":
      (packed,) = arguments
      writer.append({kind: np.frombuffer(x, np.int32) for kind, x in packed.items()})
    else:
      getattr(writer, method)(*arguments)
