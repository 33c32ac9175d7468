"""Replay in separate processes: the common part of both backends."""

import contextlib
import dataclasses
import math
import queue
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np
import ray

from explorax.agents import types
from explorax.agents.replay import adder as adder_lib
from explorax.experiments import config as config_lib
from explorax.experiments.runners import distributed
from explorax.experiments.runners.distributed import messages

_SECONDS_TO_WAIT = 0.2

Batch = tuple[np.ndarray, types.Sample]


class Inserter(Protocol):
  """What an actor's process writes to a shard with."""

  def writer(self, env: int) -> adder_lib.Writer:
    """The writer of an environment; it sends rows asynchronously."""

  def send(self, num_inserts: int) -> None:
    """Sends the rows, and counts so many `RateLimit.steps_per_insert`."""

  def wait(self, seconds: float) -> bool:
    """Waits at most this long; returns whether replay has accepted what was sent."""

  def close(self) -> None:
    """Ends the streams; what replay has not accepted is lost."""


class Client(Protocol):
  """The interface of other processes to a shard."""

  def inserter(self, actor: str, num_envs: int) -> Inserter: ...

  def batches(self) -> Iterator[Batch]:
    """Batches, each when the rate limiter allows an update."""

  def update_priorities(self, keys: np.ndarray, priorities: np.ndarray) -> None: ...


def of_shard(agent: types.Agent, num_shards: int) -> types.Agent:
  """The agent with a shard's part of its replay."""
  spec = agent.replay
  capacity = math.ceil(spec.capacity / num_shards)
  part = dataclasses.replace(
    spec, capacity=capacity, min_size=min(spec.min_size, capacity)
  )
  return dataclasses.replace(agent, replay=part)


def process(config: config_lib.RunConfig) -> type:
  """The class of a shard's process."""
  if config.replay == "memory":
    return distributed.memory_shard.MemoryShard
  return distributed.reverb_shard.ReverbShard


def connect(run: messages.Run, shard: Any, agent: types.Agent) -> Client:
  """A client of a shard; `agent` has a shard's part of replay."""
  if run.config.replay == "memory":
    return distributed.memory_shard.MemoryClient(shard)
  address = ray.get(shard.address.remote())
  return distributed.reverb_shard.ReverbClient(agent, address)


class ShardedBatches:
  """Batches of several shards in turn; priorities are sent to the right shard.

  A thread for each shard fetches its next batch. A shard that has none in time (its
  process died, or its actors are slow) is skipped.
  """

  def __init__(self, clients: Sequence[Client]):
    self._clients = clients
    self._queues: list[queue.Queue[Batch]] = [queue.Queue(1) for _ in clients]
    self._next: Batch | None = None
    self._turn = self._newest = 0
    self._closed = threading.Event()
    for i in range(len(clients)):
      threading.Thread(target=self._fill, args=(i,), daemon=True).start()

  def wait(self, seconds: float) -> bool:
    """Waits at most this long for a batch; checks each shard at least once."""
    for _ in self._clients:
      if self._next is not None:
        break
      shard, self._turn = self._turn, (self._turn + 1) % len(self._clients)
      with contextlib.suppress(queue.Empty):
        self._next = self._queues[shard].get(
          timeout=max(1e-6, seconds / len(self._clients))
        )
        self._newest = shard
    return self._next is not None

  def __iter__(self) -> Iterator[Batch]:
    return self

  def __next__(self) -> Batch:
    while not self.wait(1.0):
      pass
    batch, self._next = self._next, None
    assert batch is not None
    return batch

  def update_priorities(self, keys: np.ndarray, priorities: np.ndarray) -> None:
    """Updates the priorities of the newest batch."""
    self._clients[self._newest].update_priorities(keys, priorities)

  def close(self) -> None:
    """Ends the threads, each as soon as its shard answers."""
    self._closed.set()

  def _fill(self, shard: int) -> None:
    while not self._closed.is_set():
      try:
        for batch in self._clients[shard].batches():
          self._put(shard, batch)
          if self._closed.is_set():
            return
      except Exception:  # The shard's process died; Ray restarts it.
        time.sleep(_SECONDS_TO_WAIT)

  def _put(self, shard: int, batch: Batch) -> None:
    while not self._closed.is_set():
      with contextlib.suppress(queue.Full):
        return self._queues[shard].put(batch, timeout=_SECONDS_TO_WAIT)
