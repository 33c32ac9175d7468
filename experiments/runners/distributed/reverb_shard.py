"""A shard of replay in a Reverb server, limited by Reverb's own rate limiter."""

import contextlib
import ipaddress
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import ray
import reverb
import tensorflow as tf
from reverb import pybind

from explorax.agents import types
from explorax.agents.replay import reverb as reverb_replay
from explorax.experiments.runners.distributed import (
  board_client,
  messages,
  rate_limit,
  replay,
)

_STEPS = "steps"  # The rate limiter's table, with one item for several steps.
_MAX_PENDING = 64  # Windows of a writer in transit.
_CHUNK_BYTES = 4096  # The cost of a message is per chunk and item.
_ROWS_OF_EPISODE = 1024  # Minimum length of a Reverb episode.
_ENDLESS = 2**31 - 1
_SECONDS_TO_ASK = 2


def _steps_table(limit: rate_limit.RateLimit) -> reverb.Table:
  """The table whose limiter compares environment steps and updates."""
  return reverb.Table(
    name=_STEPS,
    sampler=reverb.selectors.Fifo(),
    remover=reverb.selectors.Fifo(),
    max_size=limit.min_inserts,
    rate_limiter=reverb.rate_limiters.SampleToInsertRatio(
      samples_per_insert=limit.samples_per_insert,
      min_size_to_sample=limit.min_inserts,
      error_buffer=limit.error_range,
    ),
    signature={_STEPS: tf.TensorSpec((1,), tf.uint8)},
  )


class ReverbShard:
  """The process of a Reverb server; a Ray actor.

  A restarted server listens at the same port, where the clients of the first one wait
  for it.
  """

  def __init__(
    self, agent: types.Agent, limit: rate_limit.RateLimit, run: str, role: str
  ):
    """Starts from what the driver gives: a folder written by `save`, or None.

    Args:
      agent: with a shard's part of its replay.
      limit: of the shard.
      run: its name.
      role: for example `replay 0`.
    """
    _, folder = board_client.register(run, role)
    board = messages.handle(run, messages.BOARD)
    port = ray.get(board.recall.remote(role))
    # If Ray is reachable only from this machine, replay is, too.
    node = ray.util.get_node_ip_address()
    self._replay = reverb_replay.ReverbReplay(
      agent,
      [reverb_replay.make_table(agent), _steps_table(limit)],
      None if folder is None else pathlib.Path(folder),
      private=ipaddress.ip_address(node).is_loopback,
      port=port,
      scratch=ray.get_runtime_context().get_temp_dir(),
    )
    ray.get(board.remember.remote(role, self._replay.port))
    self._address = f"{node}:{self._replay.port}"

  def ready(self) -> None:
    """Returns when the process has started."""

  def address(self) -> str:
    """The server's address for other processes of the same Ray."""
    return self._address

  def save(self, folder: str) -> None:
    """Writes Reverb's own checkpoint into an empty folder."""
    self._replay.save_to(pathlib.Path(folder))


class ReverbClient:
  """The interface of other processes to a shard."""

  def __init__(self, agent: types.Agent, address: str):
    self._agent = agent
    self._address = address
    self._client = reverb.Client(address)
    self._windows = reverb_replay.ReverbClient(agent, address)

  def writer(self, name: str, incarnation: int) -> "ReverbWriter":
    del name, incarnation
    return ReverbWriter(self._agent, self._address, _CHUNK_BYTES)

  def limiter(self) -> "ReverbLimiter":
    return ReverbLimiter(self._address)

  def batches(self) -> Iterator[replay.Batch]:
    batches = self._windows.batches()
    # Reverb blocks the sample until its limiter allows it.
    for _ in self._client.sample(_STEPS, _ENDLESS, emit_timesteps=False):
      yield next(batches)

  def update_priorities(self, keys: np.ndarray, priorities: np.ndarray) -> None:
    with contextlib.suppress(RuntimeError):  # Priorities of a dead server are lost.
      self._windows.update_priorities(keys, priorities)


class ReverbWriter(reverb_replay.ReverbWriter):
  """A writer that does not wait for the server."""

  def end_episode(self) -> None:
    self._begins_episode = True
    # Windows never cross the adder's episodes. Reverb's own episodes, whose end closes
    # and sends a chunk, may be longer: ending one costs as much as several rows.
    if self._writer.episode_steps >= _ROWS_OF_EPISODE:
      _in_time(self._writer.EndEpisode, True, 0)

  def wait(self, seconds: float) -> bool:
    _in_time(self._writer.Flush, 0, 0)  # Sends incomplete chunks, too.
    return _in_time(self._writer.Flush, _MAX_PENDING, int(1000 * seconds))


class ReverbLimiter:
  """Inserts an item for every `steps_per_insert` environment steps."""

  def __init__(self, address: str):
    chunks = pybind.ConstantChunkerOptions(max_chunk_length=1, num_keep_alive_refs=1)
    self._writer = pybind.Client(address).NewTrajectoryWriter(chunks, True)
    self._client = reverb.Client(address)
    self._has_window = False

  def insert(self) -> None:
    references = self._writer.Append([np.zeros((), np.uint8)])
    self._writer.CreateItem(_STEPS, 1.0, [references], [False])

  def wait(self, seconds: float) -> bool:
    return _in_time(self._writer.Flush, 1, int(1000 * seconds)) or not self._may_wait()

  def _may_wait(self) -> bool:
    """Whether there is a window; without one, the learner waits for actors.

    A restarted process drops its episodes, and a run may resume with more actors than
    its limit was made for. Then there may be no window when the limiter reaches its
    minimum.
    """
    if self._has_window:
      return True
    try:
      tables = self._client.server_info(timeout=_SECONDS_TO_ASK)
    except (RuntimeError, reverb.errors.ReverbError):
      return True  # The server has died: wait for the next one.
    self._has_window = tables[reverb_replay.TABLE].current_size > 0
    return self._has_window


def _in_time(call: Callable[..., None], *args: Any) -> bool:
  """Calls a writer with a timeout in ms (last argument); returns whether it was met."""
  try:
    call(*args)
  except RuntimeError as error:
    if "Timeout exceeded" not in str(error):
      raise
    return False
  return True
