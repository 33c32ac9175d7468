"""The learner's process."""

import queue
import threading
import time
from typing import Any

import jax
import ray

from explorax.agents import types
from explorax.agents.wiring import learner as learner_lib
from explorax.experiments.runners.distributed import (
  board_client,
  checkpoints,
  messages,
  replay,
)

_SECONDS_BETWEEN_LOOKS = 0.2  # Between checks of the board, without a batch.
_SECONDS_OF_STARVATION = 3.0  # Without a batch, after the end of acting.
_WAITS = (
  "waits for a batch: replay gives none while it is below its minimum size, or while "
  "actors are behind by the error buffer"
)


class LearnerProcess:
  """Learns as fast as replay delivers batches, and publishes weights; a Ray actor.

  It starts from the newest checkpoint. `save` is called while `run` runs, in another
  thread.
  """

  def __init__(self, run: messages.Run, agent: types.Agent, key: Any):
    """Args: run: of the process; agent: of the run; key: of the initialisation."""
    # First, so that the board counts the death if anything below fails.
    self._client = board_client.BoardClient(run, messages.LEARNER)
    self._spec = agent.replay
    num_shards = run.config.replay_shards or 1
    part = replay.of_shard(agent, num_shards)
    self._batches = replay.ShardedBatches(
      [
        replay.connect(run, run.handle(messages.replay_role(i)), part)
        for i in range(num_shards)
      ]
    )
    self._learner = learner_lib.Learner(
      agent, self._batches, self._batches.update_priorities, jax.numpy.asarray(key)
    )
    found = checkpoints.newest(run, self._client.number)
    if start := checkpoints.learner(found, agent):
      self._learner.restore(*start)
    self._requested = threading.Event()
    self._states: queue.Queue[messages.LearnerState] = queue.Queue()

  def run(self) -> messages.LearnerState:
    """Learns until the run stops, or all updates due are made; returns the state.

    Raises:
      FloatingPointError: if an update was not finite.
    """
    self._publish()
    while self._wait():
      # Checks the previous update: the device works while the host waits for a batch.
      self._learner.check_finite()
      self._learner.step()
      if not self._client.outbox:
        self._publish()
    self._learner.check_finite()
    self._publish()
    self._batches.close()
    self._client.close()
    return self._state()

  def save(self) -> messages.LearnerState:
    """The state between two updates; `run` must not have ended."""
    self._requested.set()
    return self._states.get()

  def _wait(self) -> bool:
    """Waits for a batch; returns whether there is one before learning is over."""
    began = time.monotonic()
    with self._client.doing(_WAITS):
      while not self._is_over(time.monotonic() - began):
        if self._requested.is_set():
          self._requested.clear()
          self._states.put(self._state())
        # The first batch may contain keys of an earlier process.
        if self._batches.wait(_SECONDS_BETWEEN_LOOKS):
          return True
    return False

  def _is_over(self, starving: float) -> bool:
    """Args: starving: seconds without a batch."""
    latest = self._client.latest
    if latest.phase == messages.ACTING:
      return False
    if latest.phase == messages.STOPPED:
      return True
    if latest.num_acting:
      return False
    due = self._spec.updates_per_step * (latest.env_steps - self._spec.min_size + 1)
    return starving > _SECONDS_OF_STARVATION or self._learner.num_updates >= int(due)

  def _publish(self) -> None:
    """Publishes the weights.

    They are copied to the host here: the next update may donate their buffers.
    """
    (weights,) = self._learner.get_variables(["params"])
    self._client.outbox.append(
      messages.Version(
        self._learner.num_updates,
        self._learner.metrics(),
        [ray.put(jax.device_get(weights))],
      )
    )

  def _state(self) -> messages.LearnerState:
    return messages.LearnerState(
      self._learner.save(), self._learner.num_updates, self._learner.metrics()
    )
