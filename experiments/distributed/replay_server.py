"""Replay in a process of its own, or several shards of it, and its clients."""

import collections
import dataclasses
import ipaddress
import math
import pathlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import jax
import numpy as np

from explorax.agents import types
from explorax.agents.wiring import adder as adder_lib
from explorax.agents.wiring import builder, memory_replay
from explorax.experiments import weights

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
    """Returns when all windows made so far can be sampled.

    Raises:
      LostError: if the shard's process has died.
    """


class LostError(Exception):
  """A shard's process has died, and what was in it is lost.

  Attributes:
    shard: which one; None: there is none that could be sampled.
  """

  def __init__(self, shard: int | None = None):
    super().__init__("a shard of replay is lost.")
    self.shard = shard


class Server(NamedTuple):
  """The process that a shard has at present.

  Attributes:
    number: how many it had before.
    handle: the Ray actor.
  """

  number: int
  handle: Any


def of_shard(agent: types.Agent, num_shards: int) -> types.Agent:
  """The agent with a shard's part of its replay."""
  spec = agent.replay
  capacity = math.ceil(spec.capacity / num_shards)
  part = dataclasses.replace(
    spec, capacity=capacity, min_size=min(spec.min_size, capacity)
  )
  return dataclasses.replace(agent, replay=part)


class Kept(NamedTuple):
  """What a `MemoryServer` has saved: name → array, and the counts."""

  arrays: Mapping[str, np.ndarray]
  counts: Mapping[str, Any]


class MemoryServer:
  """A shard in plain numpy; runs as a Ray actor.

  Rows arrive as what is to be called on a `memory_replay.MemoryWriter`.
  """

  def __init__(self, agent: types.Agent, seed: int, kept: Kept | None = None):
    """Makes it, empty if nothing was `kept`; `agent` is that of a shard."""
    self._replay = memory_replay.MemoryReplay(agent, seed)
    # Name → (generation, writer).
    self._writers: dict[str, tuple[int, memory_replay.MemoryWriter]] = {}
    if kept is not None:
      like, refusal = self._replay.shapes(kept.counts), "replay of another agent"
      arrays = weights.arranged(kept.arrays, like, refusal)
      # Arrays that came through Ray cannot be written to.
      self._replay.restore(jax.tree.map(np.array, arrays), kept.counts)
      self._replay.release(kept.counts["open"])

  def save(self) -> tuple[dict[str, Any], dict[str, Any]]:
    """All windows: (a pytree of arrays, what JSON can hold)."""
    arrays, counts = self._replay.save()
    # Held by episodes that are under way, and by no window maybe.
    counts["open"] = [
      row for _, writer in self._writers.values() for row in writer.save()[1]["shown"]
    ]
    return arrays, counts

  def write(
    self, name: str, generation: int, calls: Sequence[tuple[str, tuple[Any, ...]]]
  ) -> None:
    """Makes all calls of one writer, or none.

    Args:
      name: of the writer, which tells it from others.
      generation: which one of that name; what the one before it left of an episode is
        dropped, and nothing is taken from it any more.
      calls: methods of a `memory_replay.MemoryWriter`, and their arguments.
    """
    newest, writer = self._writers.get(name, (-1, None))
    if generation < newest:
      return
    if writer is None or generation > newest:
      if writer is not None:
        writer.end_episode()
      writer = self._replay.writer()
      self._writers[name] = (generation, writer)
    for method, arguments in calls:
      getattr(writer, method)(*arguments)

  def sample(self) -> tuple[np.ndarray, types.Sample]:
    return self._replay.sample()

  def update_priorities(self, keys: np.ndarray, priorities: np.ndarray) -> None:
    self._replay.update_priorities(keys, priorities)


class MemoryClient:
  """Speaks to a `MemoryServer`."""

  def __init__(self, server: Any, name: str, generation: int):
    """Args: server: the Ray actor; name, generation: of its writer."""
    self._server = server
    self._name = name
    self._generation = generation

  def writer(self) -> "MemoryWriter":
    return MemoryWriter(self._server, self._name, self._generation)

  def batches(self) -> Iterator[tuple[np.ndarray, types.Sample]]:
    import ray

    coming = collections.deque(
      self._server.sample.remote() for _ in range(_BATCHES_AHEAD)
    )
    while True:
      try:
        batch = ray.get(coming.popleft())
      except ray.exceptions.RayActorError as error:
        raise LostError from error
      coming.append(self._server.sample.remote())
      yield batch

  def update_priorities(self, keys: np.ndarray, priorities: np.ndarray) -> None:
    self._server.update_priorities.remote(keys, priorities)


class MemoryWriter:
  """Notes what is written, and sends it when it is flushed."""

  def __init__(self, server: Any, name: str, generation: int):
    self._server = server
    self._name = name
    self._generation = generation
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
    try:
      ray.get(self._server.write.remote(self._name, self._generation, calls))
    except ray.exceptions.RayActorError as error:
      raise LostError from error


class ReverbServer:
  """A shard in a Reverb server; runs as a Ray actor."""

  def __init__(self, agent: types.Agent, folder: str | None, port: int | None):
    """Starts it.

    Args:
      agent: that of a shard.
      folder: with what `save_to` has written; None to begin empty.
      port: of the server that it replaces, for which clients wait; None: a free one.
    """
    import ray

    reverb_replay = builder.import_reverb_replay()
    table = reverb_replay.make_table(agent)
    # Where Ray itself can be reached from this machine alone, so can replay.
    here = ipaddress.ip_address(ray.util.get_node_ip_address()).is_loopback
    kept = None if folder is None else pathlib.Path(folder)
    # Ray's own folder goes with Ray, however this process ends.
    scratch = ray.get_runtime_context().get_temp_dir()
    self._replay = reverb_replay.ReverbReplay(
      agent, [table], kept, private=here, port=port, scratch=scratch
    )

  def save_to(self, folder: str) -> None:
    """Writes Reverb's own checkpoint of all windows into an empty folder."""
    self._replay.save_to(pathlib.Path(folder))

  def port(self) -> int:
    """At which it listens."""
    return self._replay.port

  def address(self) -> str:
    """Where others of the same Ray find it."""
    import ray

    return f"{ray.util.get_node_ip_address()}:{self._replay.port}"


def connect(
  agent: types.Agent, backend: str, server: Server, name: str, generation: int
) -> Client:
  """A client of one shard.

  Args:
    agent: that of the shard.
    backend: `reverb` or `memory`.
    server: of the shard.
    name: of whoever connects.
    generation: how many of that name there were before.
  """
  if backend == "memory":
    return MemoryClient(server.handle, name, generation)
  import ray

  reverb_replay = builder.import_reverb_replay()
  return reverb_replay.ReverbClient(agent, ray.get(server.handle.address.remote()))


class MovingWriter:
  """A writer that goes on with another server once its own is lost."""

  def __init__(self, connect: Callable[[Server], Client], server: Server):
    """Writes to a first server.

    Args:
      connect: makes a client of a server.
      server: the first one.
    """
    self._connect = connect
    self.move(server)

  def move(self, server: Server) -> None:
    """Writes to this server from now on, where no row of the episode is."""
    self._writer: Any = self._connect(server).writer()

  def append(self, row: adder_lib.Row) -> None:
    self._writer.append(row)

  def pad(self) -> None:
    self._writer.pad()

  def create_window(self) -> None:
    self._writer.create_window()

  def end_episode(self) -> None:
    self._writer.end_episode()

  def flush(self) -> None:
    self._writer.flush()


class Shards:
  """Batches from several shards in turn; priorities go back to where they belong.

  An iterator that an exception does not end.

  Attributes:
    filled: of each shard, whether there is a window in it; one without is passed over.
  """

  def __init__(self, clients: Sequence[Client]):
    self._clients = list(clients)
    self._batches = [client.batches() for client in clients]
    self._newest = clients[0]
    self._turn = 0
    self.filled: Sequence[bool] = [False] * len(clients)

  def __iter__(self) -> Iterator[tuple[np.ndarray, types.Sample]]:
    return self

  def __next__(self) -> tuple[np.ndarray, types.Sample]:
    """A batch.

    Raises:
      LostError: if the shard whose turn it is was lost, or none is filled.
    """
    for _ in self._clients:
      shard, self._turn = self._turn, (self._turn + 1) % len(self._clients)
      if self.filled[shard]:
        try:
          batch = next(self._batches[shard])
        except LostError as error:
          raise LostError(shard) from error
        self._newest = self._clients[shard]
        return batch
    raise LostError

  def replace(self, shard: int, client: Client) -> None:
    """Takes batches of a shard from another client."""
    self._clients[shard], self._batches[shard] = client, client.batches()
    self.filled = [own and i != shard for i, own in enumerate(self.filled)]

  def update_priorities(self, keys: np.ndarray, priorities: np.ndarray) -> None:
    """Of the newest batch."""
    self._newest.update_priorities(keys, priorities)
