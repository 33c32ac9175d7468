"""Replay in a process of its own, or several shards of it, and its clients."""

import collections
import dataclasses
import ipaddress
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from explorax.agents import types
from explorax.agents.wiring import adder as adder_lib
from explorax.agents.wiring import builder, memory_replay

# Batches that are asked for before they are needed.
_BATCHES_AHEAD = 2


class Client(Protocol):
  """A shard as seen from another process."""

  def writer(self) -> "Writer": ...

  def batches(self) -> Iterator[tuple[np.ndarray, types.Sample]]: ...

  def update_priorities(self, keys: np.ndarray, priorities: np.ndarray) -> None: ...


class Writer(adder_lib.Writer, Protocol):
  """An adder's writer whose rows may be on their way for a while."""

  def flush(self) -> None:
    """Returns when all windows made so far can be sampled."""


def of_shard(agent: types.Agent, num_shards: int) -> types.Agent:
  """The agent with a shard's part of its replay."""
  spec = agent.replay
  capacity = math.ceil(spec.capacity / num_shards)
  part = dataclasses.replace(
    spec, capacity=capacity, min_size=min(spec.min_size, capacity)
  )
  return dataclasses.replace(agent, replay=part)


class MemoryServer:
  """A shard in plain numpy; runs as a Ray actor.

  Rows arrive as what is to be called on a `memory_replay.MemoryWriter`.
  """

  def __init__(self, agent: types.Agent, seed: int):
    """Makes it empty; `agent` is that of a shard."""
    self._replay = memory_replay.MemoryReplay(agent, seed)
    self._writers: dict[str, memory_replay.MemoryWriter] = {}

  def write(self, writer: str, calls: Sequence[tuple[str, tuple[Any, ...]]]) -> None:
    """Makes the calls of one writer, which a name tells from others."""
    if writer not in self._writers:
      self._writers[writer] = self._replay.writer()
    for method, arguments in calls:
      getattr(self._writers[writer], method)(*arguments)

  def sample(self) -> tuple[np.ndarray, types.Sample]:
    return self._replay.sample()

  def update_priorities(self, keys: np.ndarray, priorities: np.ndarray) -> None:
    self._replay.update_priorities(keys, priorities)


class MemoryClient:
  """Speaks to a `MemoryServer`."""

  def __init__(self, server: Any, name: str):
    """Args: server: the Ray actor; name: of its writer, used by nobody else."""
    self._server = server
    self._name = name

  def writer(self) -> "MemoryWriter":
    return MemoryWriter(self._server, self._name)

  def batches(self) -> Iterator[tuple[np.ndarray, types.Sample]]:
    import ray

    coming = collections.deque(
      self._server.sample.remote() for _ in range(_BATCHES_AHEAD)
    )
    while True:
      batch = ray.get(coming.popleft())
      coming.append(self._server.sample.remote())
      yield batch

  def update_priorities(self, keys: np.ndarray, priorities: np.ndarray) -> None:
    self._server.update_priorities.remote(keys, priorities)


class MemoryWriter:
  """Notes what is written, and sends it when it is flushed."""

  def __init__(self, server: Any, name: str):
    self._server = server
    self._name = name
    self._calls: list[tuple[str, tuple[Any, ...]]] = []

  def append(self, row: adder_lib.Row) -> None:
    self._calls.append(("append", (row,)))

  def pad(self) -> None:
    self._calls.append(("pad", ()))

  def create_window(self) -> None:
    self._calls.append(("create_window", ()))

  def end_episode(self) -> None:
    self._calls.append(("end_episode", ()))

  def flush(self) -> None:
    import ray

    calls, self._calls = self._calls, []
    ray.get(self._server.write.remote(self._name, calls))


class ReverbServer:
  """A shard in a Reverb server; runs as a Ray actor."""

  def __init__(self, agent: types.Agent):
    """Starts it, empty; `agent` is that of a shard."""
    import ray

    reverb_replay = builder.import_reverb_replay()
    table = reverb_replay.make_table(agent)
    # Where Ray itself can be reached from this machine alone, so can replay.
    here = ipaddress.ip_address(ray.util.get_node_ip_address()).is_loopback
    self._replay = reverb_replay.ReverbReplay(agent, [table], private=here)

  def address(self) -> str:
    """Where others of the same Ray find it."""
    import ray

    return f"{ray.util.get_node_ip_address()}:{self._replay.port}"


def connect(agent: types.Agent, backend: str, server: Any, name: str) -> Client:
  """A client of one shard.

  Args:
    agent: that of the shard.
    backend: `reverb` or `memory`.
    server: the Ray actor.
    name: of whoever connects.
  """
  if backend == "memory":
    return MemoryClient(server, name)
  import ray

  reverb_replay = builder.import_reverb_replay()
  return reverb_replay.ReverbClient(agent, ray.get(server.address.remote()))


class Shards:
  """Batches from several shards in turn; priorities go back to where they belong.

  Attributes:
    filled: of each shard, whether there is a window in it; one without is passed over.
  """

  def __init__(self, clients: Sequence[Client]):
    self._clients = clients
    self._newest = clients[0]
    self.filled: Sequence[bool] = [False] * len(clients)

  def batches(self) -> Iterator[tuple[np.ndarray, types.Sample]]:
    """To be asked for once a shard is filled."""
    iterators = [client.batches() for client in self._clients]
    for index in itertools.cycle(range(len(iterators))):
      if self.filled[index]:
        batch = next(iterators[index])
        self._newest = self._clients[index]
        yield batch

  def update_priorities(self, keys: np.ndarray, priorities: np.ndarray) -> None:
    """Of the newest batch."""
    self._newest.update_priorities(keys, priorities)
