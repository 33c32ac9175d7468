"""A shard of replay in numpy, with the same rate limit as Reverb's."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from explorax.agents import types
from explorax.agents.replay import adder as adder_lib
from explorax.agents.replay import memory as memory_replay
from explorax.experiments import weights
from explorax.experiments.runners.distributed import board_client, rate_limit, replay

_MAX_PENDING = 2  # Messages of a writer in transit.
_BATCHES_AHEAD = 2

# A method of a `memory_replay.MemoryWriter` and its arguments.
Call = tuple[str, tuple[Any, ...]]


class Saved(NamedTuple):
  """The result of `MemoryShard.save`: name → array, and the counts."""

  arrays: Mapping[str, np.ndarray]
  counts: Mapping[str, Any]


class RateLimiter:
  """Reverb's `SampleToInsertRatio` for an asynchronous Ray actor."""

  def __init__(self, limit: rate_limit.RateLimit, inserts: int = 0):
    self._limit = limit
    self._changed = asyncio.Condition()
    self.inserts, self.samples = inserts, 0

  @property
  def can_insert(self) -> bool:
    limit = self._limit
    if self.inserts < limit.min_inserts:
      return True
    error = (self.inserts + 1) * limit.samples_per_insert - self.samples
    return error <= limit.error_range[1]

  @property
  def can_sample(self) -> bool:
    limit = self._limit
    error = self.inserts * limit.samples_per_insert - (self.samples + 1)
    return self.inserts >= limit.min_inserts and error >= limit.error_range[0]

  async def insert(self) -> None:
    """Waits until an insert is allowed, and counts it."""
    async with self._changed:
      await self._changed.wait_for(lambda: self.can_insert)
      self.inserts += 1
      self._changed.notify_all()

  async def sample(self) -> None:
    """Waits until a sample is allowed, and counts it."""
    async with self._changed:
      await self._changed.wait_for(lambda: self.can_sample)
      self.samples += 1
      self._changed.notify_all()


class MemoryShard:
  """The process of a shard; an asynchronous Ray actor."""

  def __init__(
    self,
    agent: types.Agent,
    limit: rate_limit.RateLimit,
    run: str,
    role: str,
    seed: int,
  ):
    """Starts from what the driver gives: a `Saved`, or None.

    Args:
      agent: with a shard's part of its replay.
      limit: of the shard.
      run: its name.
      role: for example `replay 0`.
      seed: of sampling.
    """
    _, saved = board_client.register(run, role)
    self._replay = memory_replay.MemoryReplay(agent, seed)
    self._limit = limit
    self._limiter = RateLimiter(limit)
    # Name → (incarnation, writer); None: it waits for the start of an episode.
    self._writers: dict[str, tuple[int, memory_replay.MemoryWriter | None]] = {}
    if saved is not None:
      like = self._replay.shapes(saved.counts["replay"])
      arrays = weights.arranged(saved.arrays, like, "replay of another agent")
      # Arrays from Ray are read-only.
      self._replay.restore(jax.tree.map(np.array, arrays), saved.counts["replay"])
      self._replay.release(saved.counts["open"])
      # Errors of another limit have no meaning here.
      inserts = saved.counts["steps"] // limit.steps_per_insert
      self._limiter = RateLimiter(limit, min(inserts, limit.min_inserts))

  async def ready(self) -> None:
    """Returns when the process has started."""

  async def save(self) -> Saved:
    """All windows."""
    arrays, counts = self._replay.save()
    # Drop the rows of unfinished episodes that no window contains.
    rows = [
      row
      for _, writer in self._writers.values()
      if writer is not None
      for row in writer.rows
    ]
    steps = self._limiter.inserts * self._limit.steps_per_insert
    return Saved(arrays, {"replay": counts, "open": rows, "steps": steps})

  async def write(
    self, name: str, incarnation: int, is_first: bool, calls: Sequence[Call]
  ) -> None:
    """Makes the calls of a writer.

    Args:
      name: identifies the writer.
      incarnation: of its process; a later one replaces the writer.
      is_first: whether these are the first calls of that process. For a writer that is
        unknown because this shard is new, the episode is dropped.
      calls: method names and arguments.
    """
    newest, writer = self._writers.get(name, (-1, None))
    if incarnation < newest:
      return
    if incarnation > newest:
      if writer is not None:
        writer.end_episode()
      writer = self._replay.writer() if is_first else None
    for method, arguments in calls:
      if writer is not None:
        getattr(writer, method)(*arguments)
      elif method == "end_episode":
        writer = self._replay.writer()
    self._writers[name] = (incarnation, writer)

  async def insert(self) -> None:
    """Waits until the limiter allows an insert of environment steps, and counts it.

    While there is no window, actors do not wait for the learner, since the learner
    waits for them: a restarted process drops its unfinished episodes, so that there may
    be no window when the limiter reaches its minimum. Such steps are not counted.
    """
    if self._replay.num_windows or self._limiter.can_insert:
      await self._limiter.insert()

  async def sample(self) -> replay.Batch:
    """A batch, once the limiter allows an update and there is a window."""
    await self._limiter.sample()
    while not self._replay.num_windows:
      await asyncio.sleep(0.01)
    return self._replay.sample()

  async def update_priorities(self, keys: np.ndarray, priorities: np.ndarray) -> None:
    self._replay.update_priorities(keys, priorities)


class MemoryClient:
  """The interface of other processes to a shard."""

  def __init__(self, shard: Any):
    self._shard = shard

  def writer(self, name: str, incarnation: int) -> "MemoryWriter":
    return MemoryWriter(self._shard, name, incarnation)

  def limiter(self) -> "MemoryLimiter":
    return MemoryLimiter(self._shard)

  def batches(self) -> Iterator[replay.Batch]:
    import ray

    coming = [self._shard.sample.remote() for _ in range(_BATCHES_AHEAD)]
    while True:
      batch = ray.get(coming.pop(0))
      coming.append(self._shard.sample.remote())
      yield batch

  def update_priorities(self, keys: np.ndarray, priorities: np.ndarray) -> None:
    self._shard.update_priorities.remote(keys, priorities)


class _Pending:
  """Unanswered calls of a Ray actor."""

  def __init__(self, most: int):
    self._most = most
    self._calls: list[Any] = []

  def add(self, call: Any) -> None:
    self._calls.append(call)

  def wait(self, seconds: float) -> bool:
    """Waits at most this long; returns whether there are few enough."""
    import ray

    excess = len(self._calls) - self._most
    if excess > 0:
      _, self._calls = ray.wait(self._calls, num_returns=excess, timeout=seconds)
    return len(self._calls) <= self._most


class MemoryWriter:
  """Collects calls, and sends them on `wait`."""

  def __init__(self, shard: Any, name: str, incarnation: int):
    self._shard = shard
    self._name, self._incarnation = name, incarnation
    self._calls: list[Call] = []
    self._pending = _Pending(_MAX_PENDING)
    self._is_first = True

  def append(self, row: adder_lib.Row) -> None:
    self._calls.append(("append", (row,)))

  def pad(self) -> None:
    self._calls.append(("pad", ()))

  def create_window(self, priority: float) -> None:
    self._calls.append(("create_window", (priority,)))

  def end_episode(self) -> None:
    self._calls.append(("end_episode", ()))

  def wait(self, seconds: float) -> bool:
    if self._calls:
      calls, self._calls = self._calls, []
      self._pending.add(
        self._shard.write.remote(self._name, self._incarnation, self._is_first, calls)
      )
      self._is_first = False
    return self._pending.wait(seconds)


class MemoryLimiter:
  """Counts environment steps in a shard."""

  def __init__(self, shard: Any):
    self._shard = shard
    self._pending = _Pending(1)

  def insert(self) -> None:
    self._pending.add(self._shard.insert.remote())

  def wait(self, seconds: float) -> bool:
    return self._pending.wait(seconds)
