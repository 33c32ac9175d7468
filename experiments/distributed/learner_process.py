"""The learner's process."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax

from explorax.agents import types
from explorax.agents.wiring import learner as learner_lib
from explorax.experiments.distributed import messages, replay_server
from explorax.experiments.distributed import weights as weights_lib


class Learnt(NamedTuple):
  """What the learner leaves."""

  version: weights_lib.Version
  saved: messages.Saved


class Start(NamedTuple):
  """What a learner goes on from.

  Attributes:
    state: of `Learner.save`.
    updates: made until then.
    metrics: of the last of them.
  """

  state: types.State
  updates: int
  metrics: dict[str, float]


class LearnerProcess:
  """Makes the updates that are due, and publishes weights; runs as a Ray actor."""

  def __init__(
    self,
    agent: types.Agent,
    key: Any,
    *,
    replay: str,
    servers: Sequence[replay_server.Server],
    collector: Any,
    publish_every: int,
    generation: int,
    start: Start | None,
  ):
    """Prepares to learn.

    Args:
      agent: of the run.
      key: of the initialisation.
      replay: `reverb` or `memory`.
      servers: of the shards.
      collector: the Ray actor.
      publish_every: updates between two versions of the weights, at most.
      generation: how many processes it had before.
      start: what it goes on from; None to begin.
    """
    import ray

    self._ray = ray
    part = replay_server.of_shard(agent, len(servers))

    def connect(server: replay_server.Server) -> replay_server.Client:
      name = messages.LEARNER
      return replay_server.connect(part, replay, server, name, generation)

    self._connect = connect
    self._servers = list(servers)
    self._shards = replay_server.Shards([connect(server) for server in servers])
    self._learner = learner_lib.Learner(
      agent, self._shards, self._shards.update_priorities, jax.numpy.asarray(key)
    )
    if start is not None:
      self._learner.restore(*start)
    self._collector = collector
    self._publish_every = publish_every
    self._generation = generation

  def run(self) -> Learnt:
    """Learns until the collector says that the run is over.

    Raises:
      FloatingPointError: if an update was not finite.
    """
    self._publish()
    while not (task := self._next()).over:
      if task.saves:
        self._ray.get(self._collector.give_state.remote(self._save()))
      before = self._learner.num_updates
      try:
        for _ in range(min(task.updates, self._publish_every)):
          self._learner.step()
          self._learner.check_finite()
      except replay_server.LostError as lost:
        if lost.shard is not None:
          self._move(lost.shard)
      if self._learner.num_updates > before:
        self._publish()
    return Learnt(self._version(), self._save())

  def _next(self) -> messages.Task:
    """What to do now; waits for it."""
    updates, metrics = self._learner.num_updates, self._learner.metrics()
    asked = self._collector.learn.remote(updates, metrics, self._generation)
    task = self._ray.get(asked)
    self._shards.filled = task.filled
    return task

  def _move(self, shard: int) -> None:
    """Goes on with the replay that has the place of the one that was lost."""
    after = self._servers[shard].number
    server = self._ray.get(self._collector.server.remote(shard, after))
    self._servers[shard] = server
    self._shards.replace(shard, self._connect(server))

  def _save(self) -> messages.Saved:
    """Its state, in Ray's object store."""
    reference = self._ray.put(self._learner.save())
    metrics = self._learner.metrics()
    return messages.Saved(self._learner.num_updates, metrics, [reference])

  def _publish(self) -> None:
    version = self._version()
    self._ray.get(self._collector.publish.remote(version, False, self._generation))

  def _version(self) -> weights_lib.Version:
    (weights,) = self._learner.get_variables(["params"])
    return weights_lib.publish(self._learner.num_updates, weights)
