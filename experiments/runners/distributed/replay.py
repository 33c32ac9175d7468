"""Replay in a separate process: the common part of both backends."""

import contextlib
import queue
import threading
import time
from collections.abc import Iterator
from typing import Protocol

import numpy as np

from explorax.agents import types
from explorax.agents.replay import adder as adder_lib
from explorax.experiments.runners.distributed import messages

_SECONDS_TO_WAIT = 0.2

Batch = tuple[np.ndarray, types.Sample]


class Inserter(Protocol):
  """What an actor's process writes to replay with."""

  def writer(self, env: int) -> adder_lib.Writer:
    """The writer of an environment; it sends rows asynchronously."""

  def send(self, num_inserts: int) -> None:
    """Sends the rows, and counts so many `RateLimit.steps_per_insert`."""

  def wait(self, seconds: float) -> bool:
    """Waits at most this long; returns whether replay has accepted what was sent."""

  def close(self) -> None:
    """Ends the streams; what replay has not accepted is lost."""


class Client(Protocol):
  """The interface of other processes to replay."""

  def inserter(self, actor: str, num_envs: int) -> Inserter: ...

  def batches(self) -> Iterator[Batch]:
    """Batches, each when the rate limiter allows an update."""

  def update_priorities(self, keys: np.ndarray, priorities: np.ndarray) -> None: ...


def connect(run: messages.Run, agent: types.Agent) -> Client:
  """A client of the run's replay."""
  store = run.handle(messages.REPLAY)
  if run.config.replay == "memory":
    from explorax.experiments.runners.distributed import memory_store

    return memory_store.MemoryClient(store)
  import ray

  from explorax.experiments.runners.distributed import reverb_store

  return reverb_store.ReverbClient(agent, ray.get(store.address.remote()))


class Batches:
  """The batches of a client, also of those after the death of replay's process.

  A thread fetches the next one.
  """

  def __init__(self, client: Client):
    self._client = client
    self._queue: queue.Queue[Batch] = queue.Queue(1)
    self._next: Batch | None = None
    self._closed = threading.Event()
    threading.Thread(target=self._fill, daemon=True).start()

  def wait(self, seconds: float) -> bool:
    """Waits at most this long; returns whether there is a batch."""
    if self._next is None:
      with contextlib.suppress(queue.Empty):
        self._next = self._queue.get(timeout=seconds)
    return self._next is not None

  def __iter__(self) -> Iterator[Batch]:
    return self

  def __next__(self) -> Batch:
    while not self.wait(1.0):
      pass
    batch, self._next = self._next, None
    assert batch is not None
    return batch

  def close(self) -> None:
    """Ends the thread, as soon as replay answers."""
    self._closed.set()

  def _fill(self) -> None:
    while not self._closed.is_set():
      try:
        for batch in self._client.batches():
          self._put(batch)
          if self._closed.is_set():
            return
      except Exception:  # The process of replay died; Ray restarts it.
        time.sleep(_SECONDS_TO_WAIT)

  def _put(self, batch: Batch) -> None:
    while not self._closed.is_set():
      with contextlib.suppress(queue.Full):
        return self._queue.put(batch, timeout=_SECONDS_TO_WAIT)
