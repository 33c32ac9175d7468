"""A shard of replay in numpy, with the same rate limit as Reverb's."""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import numpy as np
import ray

from explorax.agents import types
from explorax.agents.replay import adder as adder_lib
from explorax.agents.replay import memory as memory_replay
from explorax.experiments import checkpoint
from explorax.experiments.runners.distributed import (
  board_client,
  checkpoints,
  messages,
  rate_limit,
  replay,
)

_BATCHES_AHEAD = 2

# A method of an environment's `memory_replay.MemoryWriter`, and its arguments.
Call = tuple[int, str, tuple[Any, ...]]


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
  """The process of a shard, which starts from the newest checkpoint; a Ray actor."""

  def __init__(self, run: messages.Run, agent: types.Agent, shard: int):
    """Args: run: of the process; agent: with its part of replay; shard: its index."""
    number = board_client.register(run, messages.replay_role(shard))
    found = checkpoints.newest(run, number)
    saved = checkpoints.shard(found, run.config, shard)
    self._replay = memory_replay.MemoryReplay(
      agent, run.config.seed + shard, run.config.steps
    )
    self._limit, inserts = run.limit, 0
    # Actor → the writer of each environment; None waits for the start of an episode.
    self._writers: dict[str, list[memory_replay.MemoryWriter | None]] = {}
    if saved is not None:
      like = self._replay.shapes(saved.counts["replay"])
      arrays = checkpoint.arranged(saved.arrays, like, "replay of another agent")
      self._replay.restore(jax.tree.map(np.array, arrays), saved.counts["replay"])
      self._replay.release(saved.counts["open"])
      # Errors of another limit have no meaning here.
      inserts = min(
        saved.counts["steps"] // run.limit.steps_per_insert, run.limit.min_inserts
      )
    self._limiter = RateLimiter(run.limit, inserts)

  async def run(self) -> None:
    """Returns when the process has started."""

  async def save(self) -> checkpoints.MemoryState:
    """All windows."""
    arrays, counts = self._replay.save()
    # Drop the rows of unfinished episodes that no window contains.
    rows = [
      row
      for writers in self._writers.values()
      for writer in writers
      if writer is not None
      for row in writer.rows
    ]
    steps = self._limiter.inserts * self._limit.steps_per_insert
    return checkpoints.MemoryState(
      arrays, {"replay": counts, "open": rows, "steps": steps}
    )

  async def insert(
    self,
    actor: str,
    num_envs: int,
    is_first: bool,
    calls: Sequence[Call],
    num_inserts: int,
  ) -> None:
    """Stores rows, and waits until the limiter allows the inserts.

    While there is no window, actors do not wait for the learner, since the learner
    waits for them. Such inserts are not counted.

    Args:
      actor: identifies the writers.
      num_envs: number of its writers.
      is_first: whether these are the first calls of the actor's process, whose writers
        replace those of a process before. If the actor is unknown otherwise, because
        this shard is new, episodes under way are dropped.
      calls: of the writers.
      num_inserts: for the limiter.
    """
    if is_first:
      for writer in self._writers.get(actor, ()):
        if writer is not None:
          writer.end_episode()
      self._writers[actor] = [self._replay.writer() for _ in range(num_envs)]
    writers = self._writers.setdefault(actor, [None] * num_envs)
    for env, method, arguments in calls:
      if (writer := writers[env]) is not None:
        getattr(writer, method)(*arguments)
      elif method == "end_episode":
        writers[env] = self._replay.writer()
    for _ in range(num_inserts):
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

  def inserter(self, actor: str, num_envs: int) -> "MemoryInserter":
    return MemoryInserter(self._shard, actor, num_envs)

  def batches(self) -> Iterator[replay.Batch]:
    coming = [self._shard.sample.remote() for _ in range(_BATCHES_AHEAD)]
    while True:
      batch = ray.get(coming.pop(0))
      coming.append(self._shard.sample.remote())
      yield batch

  def update_priorities(self, keys: np.ndarray, priorities: np.ndarray) -> None:
    self._shard.update_priorities.remote(keys, priorities)


class MemoryInserter:
  """Collects the calls of an actor's writers, and sends them together."""

  def __init__(self, shard: Any, actor: str, num_envs: int):
    self.shard = shard
    self._actor, self._num_envs = actor, num_envs
    self._is_first = True
    self._pending: list[Any] = []
    self.calls: list[Call] = []

  def writer(self, env: int) -> "MemoryWriter":
    return MemoryWriter(self, env)

  def send(self, num_inserts: int) -> None:
    calls, self.calls = self.calls, []
    self._pending.append(
      self.shard.insert.remote(
        self._actor, self._num_envs, self._is_first, calls, num_inserts
      )
    )
    self._is_first = False

  def wait(self, seconds: float) -> bool:
    """As of `replay.Inserter`; the last message may still be in transit."""
    if excess := len(self._pending) - 1:
      _, self._pending = ray.wait(self._pending, num_returns=excess, timeout=seconds)
    return len(self._pending) <= 1

  def close(self) -> None:
    """Nothing is open."""


class MemoryWriter:
  """Adds the calls of an adder to those that the inserter sends."""

  def __init__(self, inserter: MemoryInserter, env: int):
    self._inserter, self._env = inserter, env

  def append(self, row: adder_lib.Row) -> None:
    self._call("append", row)

  def pad(self) -> None:
    self._call("pad")

  def create_window(self, priority: float) -> None:
    self._call("create_window", priority)

  def end_episode(self) -> None:
    self._call("end_episode")

  def _call(self, method: str, *arguments: Any) -> None:
    self._inserter.calls.append((self._env, method, arguments))
