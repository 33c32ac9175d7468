"""The learner's process."""

import time
from typing import Any, NamedTuple

import jax

from explorax.agents import types
from explorax.agents.wiring import learner as learner_lib
from explorax.experiments import config as config_lib
from explorax.experiments.runners.distributed import (
  board_client,
  messages,
  replay,
)

_SECONDS_BETWEEN_LOOKS = 0.2  # Between checks of the board, without a batch.
_SECONDS_OF_STARVATION = 3.0  # Without a batch, after the end of acting.


class Start(NamedTuple):
  """A learner's initial state: the state of `Learner.save`, and its update count."""

  state: types.State
  updates: int
  metrics: dict[str, float]


class LearnerProcess:
  """Learns as fast as replay delivers batches, and publishes weights; a Ray actor."""

  def __init__(
    self,
    agent: types.Agent,
    config: config_lib.RunConfig,
    key: Any,
    run: str,
  ):
    """Starts from what the driver gives: a `Start`, or None.

    Args:
      agent: of the run.
      config: of the run.
      key: of the initialisation.
      run: its name.
    """
    import ray

    self._ray = ray
    self._published = -1
    self._weights: tuple[int, types.Params] | None = None
    self._state: messages.LearnerState | None = None
    self._answered = 0  # Number of the last answered request for its state.
    # First, so that the board counts the death if anything below fails.
    self._client = board_client.BoardClient(run, messages.LEARNER, more=self._more)
    self._spec = agent.replay
    num_shards = config.replay_shards or 1
    part = replay.of_shard(agent, num_shards)
    self._batches = replay.ShardedBatches(
      [
        replay.connect(
          config.replay, messages.handle(run, messages.replay_role(i)), part
        )
        for i in range(num_shards)
      ]
    )
    self._learner = learner_lib.Learner(
      agent, self._batches, self._batches.update_priorities, jax.numpy.asarray(key)
    )
    if self._client.start is not None:
      self._learner.restore(*self._client.start)

  def run(self) -> messages.LearnerState:
    """Learns until the run stops, or all updates due are made.

    Raises:
      learner_lib.NonFiniteUpdateError: if an update was not finite.
    """
    self._offer()
    starved_since = time.monotonic()
    while not self._is_over(starved_since):
      # The first batch may contain keys of an earlier process.
      if (request := self._client.latest.wants_state) > self._answered:
        self._answered = request
        self._state = self._save()
      if not self._batches.wait(0.0) and not self._wait():
        continue
      # Checks the previous update: the device works while the host waits for a batch.
      self._learner.check_finite()
      self._learner.step()
      starved_since = time.monotonic()
      if self._weights is None:
        self._offer()
    self._learner.check_finite()
    self._offer()
    state = self._save()
    self._client.close()
    return state

  def _wait(self) -> bool:
    with self._client.blocked(
      "waits: replay gives no batches while it is below its minimum size, or while "
      "actors are behind by the error buffer"
    ):
      return self._batches.wait(_SECONDS_BETWEEN_LOOKS)

  def _is_over(self, starved_since: float) -> bool:
    latest = self._client.latest
    if latest.phase == messages.ACTING:
      return False
    if latest.phase == messages.STOPPED:
      return True
    if latest.num_acting:
      return False
    due = self._spec.updates_per_step * (latest.env_steps - self._spec.min_size + 1)
    starving = time.monotonic() - starved_since > _SECONDS_OF_STARVATION
    return starving or self._learner.num_updates >= int(due)

  def _offer(self) -> None:
    """Hands the weights to the thread that publishes them.

    They are copied to the host here: the next update may donate their buffers.
    """
    (weights,) = self._learner.get_variables(["params"])
    self._weights = (self._learner.num_updates, jax.device_get(weights))

  def _save(self) -> messages.LearnerState:
    reference = self._ray.put(self._learner.save())
    metrics = self._learner.metrics()
    return messages.LearnerState(self._learner.num_updates, metrics, [reference])

  def _more(self) -> dict[str, Any]:
    """The learner's part of a report; called in the thread of the client."""
    offered, self._weights = self._weights, None
    state, self._state = self._state, None
    more: dict[str, Any] = {"state": state}
    if offered is None or self._published == offered[0]:
      return more
    self._published, weights = offered
    reference = self._ray.put(weights)
    more["version"] = messages.Version(
      self._client.incarnation, self._published, [reference]
    )
    return more | {"updates": self._published, "metrics": self._learner.metrics()}
