"""The learner's process."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax

from explorax.agents import types
from explorax.agents.wiring import learner as learner_lib
from explorax.experiments.distributed import replay_server
from explorax.experiments.distributed import weights as weights_lib


class Learnt(NamedTuple):
  """What the learner leaves."""

  weights: types.Params  # On the host.
  updates: int


class LearnerProcess:
  """Makes the updates that are due, and publishes weights; runs as a Ray actor."""

  def __init__(
    self,
    agent: types.Agent,
    key: Any,
    *,
    replay: str,
    servers: Sequence[Any],
    collector: Any,
    publish_every: int,
  ):
    """Prepares to learn.

    Args:
      agent: of the run.
      key: of the initialisation.
      replay: `reverb` or `memory`.
      servers: the Ray actors of the shards.
      collector: the Ray actor.
      publish_every: updates between two versions of the weights, at most.
    """
    import ray

    self._ray = ray
    part = replay_server.of_shard(agent, len(servers))
    self._shards = replay_server.Shards(
      [replay_server.connect(part, replay, server, "learner") for server in servers]
    )
    self._learner = learner_lib.Learner(
      agent,
      self._shards.batches(),
      self._shards.update_priorities,
      jax.numpy.asarray(key),
    )
    self._collector = collector
    self._publish_every = publish_every

  def run(self) -> Learnt:
    """Learns until the collector says that the run is over.

    Raises:
      FloatingPointError: if an update was not finite.
    """
    self._publish()
    while due := self._next():
      for _ in range(min(due, self._publish_every)):
        self._learner.step()
        self._check_finite()
      self._publish()
    self._publish(last=True)
    return Learnt(jax.device_get(self._weights()), self._learner.num_updates)

  def _next(self) -> int:
    """Updates to make now; waits for them."""
    updates, metrics = self._learner.num_updates, self._learner.metrics()
    task = self._ray.get(self._collector.learn.remote(updates, metrics))
    self._shards.filled = task.filled
    return task.updates

  def _check_finite(self) -> None:
    if not self._learner.is_finite():
      raise FloatingPointError(
        f"the loss became {self._learner.metrics()['loss']} in learner update "
        f"{self._learner.num_updates}; lower the learning rate or clip the gradient."
      )

  def _publish(self, last: bool = False) -> None:
    version = weights_lib.publish(self._learner.num_updates, self._weights())
    self._ray.get(self._collector.publish.remote(version, last))

  def _weights(self) -> types.Params:
    (weights,) = self._learner.get_variables(["params"])
    return weights
