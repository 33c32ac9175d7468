"""An adder's calls of its writer, to be made in another process."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from explorax.agents.replay import adder


class Calls(NamedTuple):
  """Calls of a writer, in order; quick to pickle.

  Attributes:
    calls: the method, and its argument: for `append` the names of the row's columns.
    columns: column name → the values of all rows that have it, `[N, ...]`.
  """

  calls: Sequence[tuple[str, Any]]
  columns: adder.Row

  @property
  def has_window(self) -> bool:
    """Whether a window is made."""
    return any(method == "create_window" for method, _ in self.calls)

  def make(self, writer: adder.Writer) -> None:
    """Makes the calls."""
    values = {name: iter(column) for name, column in self.columns.items()}
    for method, argument in self.calls:
      if method == "append":
        writer.append({name: next(values[name]) for name in argument})
      elif method == "create_window":
        writer.create_window(argument)
      else:
        getattr(writer, method)()


class CallRecorder:
  """A writer that keeps its calls."""

  def __init__(self) -> None:
    self._calls: list[tuple[str, Any]] = []
    self._columns: dict[str, list[np.ndarray]] = {}

  def append(self, row: adder.Row) -> None:
    self._calls.append(("append", tuple(row)))
    for name, value in row.items():
      self._columns.setdefault(name, []).append(value)

  def pad(self) -> None:
    self._calls.append(("pad", None))

  def create_window(self, priority: float) -> None:
    self._calls.append(("create_window", priority))

  def end_episode(self) -> None:
    self._calls.append(("end_episode", None))

  def take(self) -> Calls:
    """The calls since the last `take`."""
    columns = {name: np.stack(values) for name, values in self._columns.items()}
    calls = Calls(self._calls, columns)
    self._calls, self._columns = [], {}
    return calls
