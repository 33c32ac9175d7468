"""Replay in plain numpy arrays: seeded, without Reverb or TensorFlow."""

from collections.abc import Iterator

import numpy as np

from explorax.agents import types
from explorax.agents.wiring import adder, sum_tree


class MemoryReplay:
  """A ring of windows, sampled with replacement by a seeded generator.

  The reference for the other backends: what is stored and how often it is drawn is
  the same, and two runs with one seed draw the same windows.
  """

  def __init__(self, agent: types.Agent, seed: int):
    self._spec = agent.replay
    self._columns = adder.column_specs(agent)
    self._rng = np.random.Generator(np.random.PCG64(seed))
    self._num_created = 0
    size = self._spec.max_windows
    rows = self._spec.window_rows
    self._store = {
      name: np.zeros((size, *(() if self._is_first(name) else (rows,)), *shape), dtype)
      for name, (shape, dtype) in self._columns.items()
    }
    self._priorities = (
      sum_tree.SumTree(size) if self._spec.priority_exponent > 0 else None
    )

  def _is_first(self, name: str) -> bool:
    return name in self._spec.first_row_extras

  @property
  def num_windows(self) -> int:
    return min(self._num_created, self._spec.max_windows)

  def writer(self) -> "MemoryWriter":
    return MemoryWriter(self, self._spec.window_rows)

  def insert(self, rows: list[adder.Row]) -> None:
    """Stores one window, in place of the oldest once the ring is full."""
    slot = self._num_created % self._spec.max_windows
    for name, column in self._store.items():
      if self._is_first(name):
        column[slot] = rows[0][name]
      else:
        for i, row in enumerate(rows):
          column[slot, i] = row[name]
    self._num_created += 1
    self.update_priorities(
      np.array([slot], np.uint64), np.array([self._spec.initial_priority])
    )

  def update_priorities(self, keys: np.ndarray, priorities: np.ndarray) -> None:
    if self._priorities is not None:
      powered = np.power(
        np.asarray(priorities, np.float64), self._spec.priority_exponent
      )
      self._priorities.set(keys.astype(np.int64), powered)

  def sample(self) -> tuple[np.ndarray, types.Sample]:
    """Draws a batch: (keys uint64 `[B]` for `update_priorities`, the Sample)."""
    num, batch = self.num_windows, self._spec.batch_size
    if num == 0:
      raise ValueError("replay is empty; wait until the adder has made a window.")
    if self._priorities is None or not self._priorities.total > 0:
      slots = self._rng.integers(0, num, batch)
      probabilities = np.full(batch, 1.0 / num, np.float32)
    else:
      slots, probabilities = self._priorities.sample(self._rng.random(batch))
    batched = {name: column[slots] for name, column in self._store.items()}
    first = {name: batched.pop(name) for name in self._spec.first_row_extras}
    sample = types.Sample(batched, first, probabilities, np.int32(num))
    return slots.astype(np.uint64), sample

  def batches(self) -> Iterator[tuple[np.ndarray, types.Sample]]:
    while True:
      yield self.sample()

  def close(self) -> None:
    """There is nothing to stop."""


class MemoryWriter:
  """Keeps the newest rows of the episode, and copies windows of them out."""

  def __init__(self, replay: MemoryReplay, window_rows: int):
    self._replay = replay
    self._window_rows = window_rows
    self._rows: list[adder.Row] = []

  def append(self, row: adder.Row) -> None:
    self._rows.append(row)
    del self._rows[: -self._window_rows]

  def create_window(self) -> None:
    self._replay.insert(self._rows)

  def end_episode(self) -> None:
    self._rows.clear()
