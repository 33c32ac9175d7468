"""Replay in a Reverb server in this process (Python 3.11 only)."""

import collections
import math
import pathlib
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import reverb
import tensorflow as tf
from reverb import pybind

from explorax.agents import types
from explorax.agents.replay import adder, loopback, packing

TABLE = "windows"
# Small batches are sampled several at a time, up to this size.
_BATCHES_AT_ONCE = 8
_BYTES_AT_ONCE = 2**24
# Rows of transitions wait for others in a chunk of at most this size.
_SMALL_CHUNK_BYTES = 4096


def _lengths(agent: types.Agent) -> dict[str, int]:
  """Kind → how many of its records a window has; 0: one, of its first row."""
  of_rows, of_first = packing.layouts(agent)
  spec = agent.replay
  lengths = {packing.FRAMES: spec.window_frames, packing.ROWS: spec.window_rows}
  return dict.fromkeys(of_first, 0) | {kind: lengths[kind] for kind in of_rows}


class ReverbReplay:
  """A Reverb server with a table of an agent's windows, first in, first out.

  One thread acts and learns in turn, so the only limit on sampling is a minimum of one
  window; the runner decides when learning starts, and no call can block forever.
  """

  def __init__(self, agent: types.Agent, folder: pathlib.Path | None = None):
    """Starts the server, which accepts only this machine: it has no authentication.

    Args:
      agent: of the windows.
      folder: written by `save_to`, to resume from; None to start.

    Raises:
      OSError: if the system cannot restrict the server to this machine.
    """
    self._agent = agent
    self._spec = spec = agent.replay
    self._of_rows, self._of_first = packing.layouts(agent)
    lengths = _lengths(agent)
    shapes = {
      kind: (lengths[kind], layout.num_words) if lengths[kind] else (layout.num_words,)
      for kind, layout in (self._of_first | self._of_rows).items()
    }
    self._num_bytes = 4 * sum(map(math.prod, shapes.values()))  # Of a window.
    # Reverb restores the checkpoint in its folder, and keeps only the newest one.
    self._folder = tempfile.mkdtemp(prefix="explorax_")
    self._remove_folder = weakref.finalize(
      self, shutil.rmtree, self._folder, ignore_errors=True
    )
    if folder is not None:
      shutil.copytree(folder, self._folder, dirs_exist_ok=True)
    sampler = (
      reverb.selectors.Prioritized(spec.priority_exponent)
      if spec.priority_exponent > 0
      else reverb.selectors.Uniform()
    )
    table = reverb.Table(
      name=TABLE,
      sampler=sampler,
      remover=reverb.selectors.Fifo(),
      max_size=spec.max_windows,
      rate_limiter=reverb.rate_limiters.MinSize(1),
      signature={
        kind: tf.TensorSpec(shape, tf.int32, name=kind)
        for kind, shape in shapes.items()
      },
    )
    checkpointer = reverb.platform.checkpointers_lib.DefaultCheckpointer(
      path=self._folder
    )
    self._server = reverb.Server([table], None, checkpointer)
    loopback.restrict(self.port)
    self._address = f"localhost:{self.port}"
    self._client = reverb.Client(self._address)
    self._writers: list[ReverbWriter] = []

  @property
  def port(self) -> int:
    """The port at which the server listens."""
    return self._server.port

  def writer(self) -> "ReverbWriter":
    self._writers.append(ReverbWriter(self._agent, self._address))
    return self._writers[-1]

  def update_priorities(self, keys: np.ndarray, priorities: np.ndarray) -> None:
    if self._spec.priority_exponent > 0:
      updates = dict(zip(keys.tolist(), priorities.tolist(), strict=True))
      self._client.mutate_priorities(TABLE, updates)

  def batches(self) -> Iterator[tuple[np.ndarray, types.Sample]]:
    """Batches of windows; the first one waits for a window in the table.

    They are drawn ahead: a batch may have been drawn before the last
    `2 * _BATCHES_AT_ONCE + 2` of them were taken.
    """
    size = self._spec.batch_size
    dataset = reverb.TrajectoryDataset.from_table_signature(
      server_address=self._address,
      table=TABLE,
      max_in_flight_samples_per_worker=2 * size,
    )
    # Several batches at once: tf.data's and Reverb's costs are per call. A single batch
    # of sequences of frames already takes as long as many calls.
    fitting = _BYTES_AT_ONCE // (size * self._num_bytes)
    num_batches = min(max(1, fitting), _BATCHES_AT_ONCE)
    dataset = dataset.batch(num_batches * size, drop_remainder=True)
    self._flush()
    for item in dataset.prefetch(1).as_numpy_iterator():
      probabilities = item.info.probability.astype(np.float32)
      for start in range(0, num_batches * size, size):
        batch = slice(start, start + size)
        rows, first = (
          packing.Rows(layouts, {kind: item.data[kind][batch] for kind in layouts})
          for layouts in (self._of_rows, self._of_first)
        )
        sample = types.Sample(
          rows,
          first,
          probabilities[batch],
          np.int32(item.info.table_size[start + size - 1]),
        )
        yield item.info.key[batch], sample

  def save_to(self, folder: pathlib.Path) -> None:
    """Writes Reverb's checkpoint of all windows into an empty folder."""
    self._flush()
    self._client.checkpoint()
    shutil.copytree(self._folder, folder, dirs_exist_ok=True)

  def close(self) -> None:
    for writer in self._writers:
      writer.close()
    self._server.stop()
    self._remove_folder()

  def _flush(self) -> None:
    for writer in self._writers:
      writer.flush()


class ReverbWriter:
  """Appends records to a trajectory writer, and makes items of their windows.

  Reverb's Python wrapper of its writer searches a nested structure for columns at every
  row and item, three times as slow as the writer itself; records are flat.
  """

  def __init__(self, agent: types.Agent, address: str):
    """Starts a stream to the server at `address` (`host:port`)."""
    self._spec = spec = agent.replay
    self._lengths = _lengths(agent)
    of_rows, of_first = packing.layouts(agent)
    self._zeros = {
      kind: np.zeros(layout.num_words, np.int32)
      for kind, layout in (of_rows | of_first).items()
    }
    # Windows overlap: with automatic chunk lengths (one row), long ones would need
    # several times the memory, and small ones the time of several chunks per row.
    chunk = spec.window_rows // 2
    if spec.length == 1:
      num_bytes = max(zeros.nbytes for zeros in self._zeros.values())
      chunk = max(1, min(chunk, _SMALL_CHUNK_BYTES // num_bytes))
    kept = max(chunk, spec.window_frames)
    self._writer = pybind.Client(address).NewTrajectoryWriter(
      _chunks(chunk, kept), True
    )
    if of_first:
      column = list(self._lengths).index(packing.FIRST)
      self._writer.ConfigureChunker(column, _chunks(1, kept))
    # For each kind, references to the records of the newest rows.
    self._newest: list[collections.deque[Any]] = [
      collections.deque(maxlen=length or spec.window_rows)
      for length in self._lengths.values()
    ]
    self._is_one = [not length for length in self._lengths.values()]
    self._begins_episode = True

  def append(self, records: adder.Records) -> None:
    if self._begins_episode:
      # The frames before the episode, which its first rows contain, are zeros.
      for _ in range(self._spec.num_frames - 1):
        self._append({packing.FRAMES: self._zeros[packing.FRAMES]})
      self._begins_episode = False
    self._append(records)

  def pad(self) -> None:
    self._append(self._zeros)

  def create_window(self, priority: float) -> None:
    columns = [
      [newest[0]] if is_one else list(newest)
      for newest, is_one in zip(self._newest, self._is_one, strict=True)
    ]
    self._writer.CreateItem(TABLE, priority, columns, self._is_one)

  def end_episode(self) -> None:
    self._writer.EndEpisode(True, None)
    self._begins_episode = True

  def _append(self, records: adder.Records) -> None:
    references = self._writer.Append([records.get(kind) for kind in self._lengths])
    for column, reference in zip(self._newest, references, strict=True):
      column.append(reference)

  def flush(self) -> None:
    self._writer.Flush(0, -1)

  def close(self) -> None:
    self._writer.Close()


def _chunks(length: int, kept: int) -> pybind.ConstantChunkerOptions:
  return pybind.ConstantChunkerOptions(
    max_chunk_length=length, num_keep_alive_refs=kept
  )
