"""A shard of replay in a Reverb server, limited by Reverb's own rate limiter."""

import contextlib
import functools
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
from explorax.agents.replay import adder
from explorax.agents.replay import reverb as reverb_replay
from explorax.experiments.runners.distributed import (
  board_client,
  checkpoints,
  messages,
  rate_limit,
  replay,
)

_STEPS = "steps"  # The rate limiter's table, with one item for several steps.
_MAX_PENDING = 64  # Windows of a writer in transit.
_CHUNK_BYTES = 4096  # The cost of a message is per chunk and item.
_ROWS_OF_EPISODE = 1024  # Minimum length of a Reverb episode.
_ENDLESS = 2**31 - 1


def steps_table(limit: rate_limit.RateLimit) -> reverb.Table:
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
  """The process of a Reverb server, which starts from the newest checkpoint.

  A Ray actor. A restarted server listens at the same port, where the clients of the
  first one wait for it.
  """

  def __init__(self, run: messages.Run, agent: types.Agent, shard: int):
    """Args: run: of the process; agent: with its part of replay; shard: its index."""
    role = messages.replay_role(shard)
    found = checkpoints.newest(run, board_client.register(run, role))
    board = run.handle(messages.BOARD)
    # If Ray is reachable only from this machine, replay is, too.
    node = ray.util.get_node_ip_address()
    self._replay = reverb_replay.ReverbReplay(
      agent,
      [reverb_replay.make_table(agent), steps_table(run.limit)],
      checkpoints.shard(found, run.config, shard),
      private=ipaddress.ip_address(node).is_loopback,
      port=ray.get(board.recall.remote(role)),
      scratch=ray.get_runtime_context().get_temp_dir(),
    )
    ray.get(board.remember.remote(role, self._replay.port))
    self._address = f"{node}:{self._replay.port}"

  def run(self) -> None:
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

  def inserter(self, actor: str, num_envs: int) -> "ReverbInserter":
    del actor
    return ReverbInserter(self._agent, self._address, num_envs)

  def batches(self) -> Iterator[replay.Batch]:
    batches = self._windows.batches()
    # Reverb blocks the sample until its limiter allows it.
    for _ in self._client.sample(_STEPS, _ENDLESS, emit_timesteps=False):
      yield next(batches)

  def update_priorities(self, keys: np.ndarray, priorities: np.ndarray) -> None:
    with contextlib.suppress(RuntimeError):  # Priorities of a dead server are lost.
      self._windows.update_priorities(keys, priorities)


class ReverbInserter:
  """A stream for each environment, and one of items for the limiter's table.

  Steps are counted once there is a window of this process. Otherwise an actor could
  wait for the learner, which waits for a window: a restarted process drops its
  unfinished episodes, and a run may resume with more actors than its limit was made
  for.
  """

  def __init__(self, agent: types.Agent, address: str, num_envs: int):
    self._writers = [
      ReverbWriter(agent, address, _CHUNK_BYTES) for _ in range(num_envs)
    ]
    chunks = pybind.ConstantChunkerOptions(max_chunk_length=1, num_keep_alive_refs=1)
    self._steps = pybind.Client(address).NewTrajectoryWriter(chunks, True)
    self._due = 0  # Inserts.

  def writer(self, env: int) -> "ReverbWriter":
    return self._writers[env]

  def send(self, num_inserts: int) -> None:
    for writer in self._writers:
      writer.send()
    self._due += num_inserts
    if not any(writer.has_window for writer in self._writers):
      return
    due, self._due = self._due, 0
    for _ in range(due):
      references = self._steps.Append([np.zeros((), np.uint8)])
      self._steps.CreateItem(_STEPS, 1.0, [references], [False])

  def wait(self, seconds: float) -> bool:
    """As of `replay.Inserter`; a few windows and an item may be in transit."""
    milliseconds = int(1000 * seconds)
    return all(writer.wait(milliseconds) for writer in self._writers) and _in_time(
      self._steps.Flush, 1, milliseconds
    )

  def close(self) -> None:
    for writer in self._writers:
      writer.close()
    self._steps.Close()

  def __del__(self) -> None:
    # The destructor of an open writer waits for the table, perhaps forever.
    if hasattr(self, "_steps"):  # The constructor succeeded.
      self.close()


class ReverbWriter(reverb_replay.ReverbWriter):
  """A writer that writes when it sends, and does not wait for the server.

  Reverb's threads and its server wake up once for all steps between two sends, and not
  beside the actor at each of them.
  """

  def __init__(self, agent: types.Agent, address: str, chunk_bytes: int = 0):
    super().__init__(agent, address, chunk_bytes)
    self.has_window = False  # Whether it has created one.
    self._calls: list[Callable[[], None]] = []  # Since the last send.

  def append(self, row: adder.Row) -> None:
    self._calls.append(functools.partial(super().append, row))

  def pad(self) -> None:
    self._calls.append(super().pad)

  def create_window(self, priority: float) -> None:
    self._calls.append(functools.partial(super().create_window, priority))
    self.has_window = True

  def end_episode(self) -> None:
    self._calls.append(self._end_episode)

  def _end_episode(self) -> None:
    self._begins_episode = True
    # Windows never cross the adder's episodes. Reverb's own episodes, whose end closes
    # and sends a chunk, may be longer: ending one costs as much as several rows.
    if self._writer.episode_steps >= _ROWS_OF_EPISODE:
      _in_time(self._writer.EndEpisode, True, 0)

  def send(self) -> None:
    for call in self._calls:
      call()
    self._calls.clear()
    _in_time(self._writer.Flush, 0, 0)  # Sends incomplete chunks, too.

  def wait(self, milliseconds: int) -> bool:
    return _in_time(self._writer.Flush, _MAX_PENDING, milliseconds)


def _in_time(call: Callable[..., None], *args: Any) -> bool:
  """Calls a writer with a timeout in ms (last argument); returns whether it was met."""
  try:
    call(*args)
  except RuntimeError as error:
    if "Timeout exceeded" not in str(error):
      raise
    return False
  return True
