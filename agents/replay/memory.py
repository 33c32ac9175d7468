"""Replay in numpy arrays: seeded, without Reverb or TensorFlow."""

import collections
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from explorax.agents import types
from explorax.agents.replay import adder, packing, sum_tree

# The index of a row of zeros, which is padding in all windows and stays for ever.
PADDING = 0


class MemoryReplay:
  """Rows, each stored once, and a ring of windows that refer to them.

  A row is kept while windows refer to it, or the writer of its episode, which may still
  make windows of it; then its place is free for another one.

  Windows are sampled with replacement by a seeded generator. It is the reference for
  the other backends, which store the same data and draw it equally often; two runs with
  one seed draw the same windows.
  """

  def __init__(self, agent: types.Agent, seed: int, max_steps: int | None = None):
    """Makes an empty replay; memory is used as rows arrive.

    Args:
      agent: whose rows it stores.
      seed: of the sampling.
      max_steps: environment steps after which the run ends, for which memory is
        reserved; None: for a full replay. It grows if there are more.
    """
    self._agent = agent
    self._spec = spec = agent.replay
    self._rng = np.random.Generator(np.random.PCG64(seed))
    self._num_created = 0
    # An episode of one window may have burn_in + length + 1 rows, or more if it is left
    # unfinished; the newest episode's rows are also stored, and the row of padding.
    num_rows = 1 + spec.window_frames
    num_rows += spec.max_windows * (spec.burn_in + spec.length + 1)
    num_windows = spec.max_windows
    if max_steps is not None:
      # Each window starts at another step, and each episode has one more row.
      num_rows = min(num_rows, 1 + spec.window_frames + 2 * max_steps)
      num_windows = min(num_windows, max_steps)
    self._of_rows, self._of_first = packing.layouts(agent)
    self._words = _zeros(self._of_rows, num_rows)
    self._first = _zeros(self._of_first, num_windows)
    # The rows of each window, the number of references to each row, and free places.
    self._windows = np.zeros((num_windows, spec.window_frames), np.int32)
    self._references = [0]
    self._free: list[int] = []
    self._priorities = (
      sum_tree.SumTree(spec.max_windows) if spec.priority_exponent > 0 else None
    )

  @property
  def num_windows(self) -> int:
    return min(self._num_created, self._spec.max_windows)

  @property
  def num_rows(self) -> int:
    """The number of stored rows."""
    return len(self._references) - 1 - len(self._free)

  def writer(self) -> "MemoryWriter":
    return MemoryWriter(self, self._agent)

  def store(self, records: adder.Records) -> int:
    """Stores a row, to which the caller has a reference; returns its index."""
    if self._free:
      index = self._free.pop()
      self._references[index] = 1
    else:
      index = len(self._references)
      self._references.append(1)
      self._reserve(len(self._references))
    for kind, words in self._words.items():
      words[index] = records[kind]
    return index

  def release(self, rows: Iterable[int]) -> None:
    """Ends a reference to each row; one without any may be overwritten."""
    for index in rows:
      self._references[index] -= 1
      if not self._references[index] and index != PADDING:
        self._free.append(index)

  def insert(self, rows: Sequence[int], first: adder.Records, priority: float) -> None:
    """Makes a window of stored rows; in a full ring it replaces the oldest."""
    slot = self._num_created % self._spec.max_windows
    if self._num_created < self._spec.max_windows:
      self._reserve_windows(slot + 1)
    else:
      self.release(self._windows[slot].tolist())
    for index in rows:
      self._references[index] += 1
    self._windows[slot] = rows
    for kind, words in self._first.items():
      words[slot] = first[kind]
    self._num_created += 1
    if self._priorities is not None:
      self.update_priorities(np.array([slot], np.uint64), np.array([priority]))

  def update_priorities(self, keys: np.ndarray, priorities: np.ndarray) -> None:
    if self._priorities is not None:
      powered = np.power(
        np.asarray(priorities, np.float64), self._spec.priority_exponent
      )
      self._priorities.set(keys.astype(np.int64), powered)

  def sample(self) -> tuple[np.ndarray, types.Sample]:
    """Draws a batch: (keys uint64 `[B]` for `update_priorities`, the Sample)."""
    num, batch = self.num_windows, self._spec.batch_size
    if self._priorities is None or not self._priorities.total > 0:
      slots = self._rng.integers(0, num, batch)
      probabilities = np.full(batch, 1.0 / num, np.float32)
    else:
      slots, probabilities = self._priorities.sample(self._rng.random(batch))
    frames = self._windows[slots]
    indices = frames[:, self._spec.num_frames - 1 :]
    words = {  # `take` is faster than indexing.
      kind: column.take(frames if kind == packing.FRAMES else indices, axis=0)
      for kind, column in self._words.items()
    }
    first = {kind: column[slots] for kind, column in self._first.items()}
    sample = types.Sample(
      packing.Rows(self._of_rows, words),
      packing.Rows(self._of_first, first),
      probabilities,
      np.int32(num),
    )
    return slots.astype(np.uint64), sample

  def batches(self) -> Iterator[tuple[np.ndarray, types.Sample]]:
    while True:
      yield self.sample()

  def save(self) -> tuple[dict[str, Any], dict[str, Any]]:
    """The windows: (a pytree of arrays, values in JSON's types)."""
    num_rows, num_windows = len(self._references), self.num_windows
    arrays = {
      "words": {kind: words[:num_rows] for kind, words in self._words.items()},
      "first": {kind: words[:num_windows] for kind, words in self._first.items()},
      "windows": self._windows[:num_windows],
      "priorities": () if self._priorities is None else self._priorities.nodes,
    }
    counts = {
      "num_rows": num_rows,
      "num_created": self._num_created,
      "rng": self._rng.bit_generator.state,
    }
    return arrays, counts

  def restore(
    self, arrays: Mapping[str, np.ndarray], counts: Mapping[str, Any]
  ) -> None:
    """Resumes from the result of `save`; the replay must be empty.

    Rows that were in no window, as the newest of open episodes, are released.

    Args:
      arrays: by their paths, as `words/rows`.
      counts: the other values.
    """
    num_rows, windows = counts["num_rows"], arrays["windows"]
    self._reserve(num_rows)
    self._reserve_windows(len(windows))
    for kind, words in self._words.items():
      words[:num_rows] = arrays[f"words/{kind}"]
    for kind, words in self._first.items():
      words[: len(windows)] = arrays[f"first/{kind}"]
    self._windows[: len(windows)] = windows
    self._references = np.bincount(windows.ravel(), minlength=num_rows).tolist()
    self._free = [
      row for row, num in enumerate(self._references) if not num and row != PADDING
    ]
    self._num_created = counts["num_created"]
    self._rng.bit_generator.state = counts["rng"]
    if self._priorities is not None:
      self._priorities.nodes[:] = arrays["priorities"]

  def _reserve(self, num_rows: int) -> None:
    """Doubles the columns until they have this many rows."""
    for kind, words in self._words.items():
      self._words[kind] = _doubled(words, num_rows)

  def _reserve_windows(self, num_windows: int) -> None:
    self._windows = _doubled(self._windows, num_windows)
    for kind, words in self._first.items():
      self._first[kind] = _doubled(words, num_windows)

  def close(self) -> None:
    """Does nothing."""


class MemoryWriter:
  """Refers to the episode's newest rows, and makes windows of them.

  Attributes:
    rows: indices in replay of the rows of a window, and of those before it whose frames
      are in its observations.
  """

  def __init__(self, replay: MemoryReplay, agent: types.Agent):
    self._replay = replay
    self._spec = agent.replay
    self._begin_episode()

  def append(self, records: adder.Records) -> None:
    self._append(self._replay.store(records), records)

  def pad(self) -> None:
    self._append(PADDING, {})

  def create_window(self, priority: float) -> None:
    self._replay.insert(self.rows, self._records[0], priority)

  def end_episode(self) -> None:
    self._replay.release(self.rows)
    self._begin_episode()

  def _begin_episode(self) -> None:
    self.rows = collections.deque([PADDING] * (self._spec.num_frames - 1))
    # The records of the window's rows; of its first one all kinds are needed.
    self._records: collections.deque[adder.Records] = collections.deque(
      maxlen=self._spec.window_rows
    )

  def _append(self, index: int, records: adder.Records) -> None:
    self.rows.append(index)
    if len(self.rows) > self._spec.window_frames:
      self._replay.release([self.rows.popleft()])
    self._records.append(records)


def num_bytes(agent: types.Agent, max_steps: float = math.inf) -> int:
  """About what replay takes at a run's end: its rows, one per environment step.

  Args:
    agent: whose rows it stores.
    max_steps: environment steps of the run.
  """
  spec = agent.replay
  of_rows, of_first = packing.layouts(agent)
  rows = sum(4 * layout.num_words for layout in of_rows.values())
  first = sum(4 * layout.num_words for layout in of_first.values())
  num_rows = int(min(spec.capacity, max_steps))
  return num_rows * rows + int(min(spec.max_windows, max_steps)) * first


def _zeros(layouts: packing.Layouts, length: int) -> adder.Records:
  """Kind → words `[length, num_words]`."""
  return {
    kind: np.zeros((length, layout.num_words), np.int32)
    for kind, layout in layouts.items()
  }


def _doubled(column: np.ndarray, length: int) -> np.ndarray:
  """The column, continued with zeros to at least this length."""
  while len(column) < length:
    column = np.concatenate([column, np.zeros_like(column)])
  return column
