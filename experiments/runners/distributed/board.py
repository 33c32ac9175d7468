"""The board: one small asynchronous Ray actor that receives all reports."""

import dataclasses
import os
import time
from collections.abc import Sequence
from typing import Any

from explorax.experiments import config as config_lib
from explorax.experiments.runners import clock as clock_lib
from explorax.experiments.runners import core
from explorax.experiments.runners.distributed import messages

NOT_STARTED = "has not started (Ray may have no free CPU or GPU for it)"
NOT_RESPONDING = "has not responded"
_LATE = 5.0  # Seconds after which a missing report is noticed.
_WARM_UP_UPDATES = 2  # The first updates compile.


class Board:
  """Counts the reports, and holds the newest weights and the phase of the run.

  No call blocks. Ray neither restarts a board nor repeats a call of it, so that each
  report is counted at most once. A run ends if its board dies.
  """

  def __init__(
    self,
    roles: Sequence[str],
    config: config_lib.RunConfig,
    counts: messages.Counts,
  ):
    """Counts on from `counts`.

    Args:
      roles: of all processes.
      config: whose limits end acting.
      counts: of a checkpoint, or zeros.
    """
    self._config = config
    self._counts = counts
    self._clock = clock_lib.Clock()
    self._clock.resume(counts.seconds)
    self._phase = messages.ACTING
    self._version: messages.Version | None = None
    self._events: list[messages.Event] = [messages.Started(messages.BOARD, os.getpid())]
    self._at_work = set(roles)
    now = time.monotonic()
    self._heard = dict.fromkeys(roles, now)
    self._doing = dict.fromkeys(roles, (NOT_STARTED, now))
    self._remembered: dict[str, Any] = {}

  # --- Called by the processes of the run ---

  async def start(self, role: str, pid: int) -> int:
    """A process has started; returns how many have had its role before."""
    before = self._counts.starts.get(role, 0)
    self._counts.starts[role] = before + 1
    self._events.append(messages.Started(role, pid))
    self._heard[role] = time.monotonic()
    self._doing[role] = "", self._heard[role]
    return before

  async def remember(self, role: str, value: Any) -> None:
    """Stores a value for later processes of a role."""
    self._remembered[role] = value

  async def recall(self, role: str) -> Any:
    """The value that a process of the role has stored; None if there is none."""
    return self._remembered.get(role)

  async def exchange(self, role: str, report: messages.Report) -> messages.BoardUpdate:
    """Counts a report; returns the run's current state."""
    self._heard[role] = time.monotonic()
    self._doing[role] = report.doing, self._heard[role] - report.seconds
    counts = self._counts
    counts.env_steps += report.steps
    if report.version is not None:
      self._version = report.version
      counts.updates, counts.metrics = report.version.updates, report.version.metrics
      if counts.updates >= _WARM_UP_UPDATES:
        self._clock.mark_warm(counts.env_steps)
    for event in report.events:
      if isinstance(event, messages.EndedEpisode):
        self._end_episode(role, event)
        continue
      self._events.append(event)
      if isinstance(event, messages.EvaluationDone):
        counts.evaluated_at = event.evaluation.env_steps
    if self._config.is_reached(counts.env_steps, counts.episodes):
      self._phase = max(self._phase, messages.LEARNING)
    return messages.BoardUpdate(
      self._phase,
      counts.env_steps,
      self._num_acting(),
      self._version,
      counts.evaluated_at,
    )

  # --- Called by the driver ---

  async def enter(self, phase: int) -> None:
    """Starts a later phase of the run."""
    self._phase = max(self._phase, phase)

  async def end(self, role: str) -> None:
    """The work of a process is done, and its last report has been received."""
    self._at_work.discard(role)
    if not self._num_acting():  # Even if lost steps keep the run below its limit.
      self._phase = max(self._phase, messages.LEARNING)

  async def poll(self) -> messages.Poll:
    """The news for the driver."""
    events, self._events = self._events, []
    counts = dataclasses.replace(self._counts, seconds=self._clock.seconds)
    return messages.Poll(
      events,
      counts,
      self._version,
      self._blocked(),
      self._clock.steps_per_second(counts.env_steps),
    )

  def _num_acting(self) -> int:
    return sum(role.startswith("actor") for role in self._at_work)

  def _blocked(self) -> dict[str, tuple[str, float]]:
    """What each process does, or for how long it has not responded."""
    now, blocked = time.monotonic(), {}
    for role in self._at_work:
      (doing, since), silence = self._doing[role], now - self._heard[role]
      if doing == NOT_STARTED or (doing and silence < _LATE):
        blocked[role] = doing, now - since
      elif not role.startswith("replay"):  # It only answers calls.
        blocked[role] = NOT_RESPONDING, silence
    return blocked

  def _end_episode(self, role: str, ended: messages.EndedEpisode) -> None:
    counts, limit = self._counts, self._config.episodes
    for name, value in ended.totals.items():
      counts.totals[name] = counts.totals.get(name, 0.0) + value
    if limit is not None and counts.episodes >= limit:
      return
    counts.episodes += 1
    steps = counts.env_steps - ended.steps_after
    totals = {name: counts.totals[name] for name in ended.totals}
    actor = float(role.split()[1])
    self._events.append(
      core.Episode(
        episode=counts.episodes,
        env_steps=steps,
        episode_return=ended.episode_return,
        episode_length=ended.episode_length,
        policy=ended.policy,
        learner_updates=counts.updates,
        steps_per_second=self._clock.steps_per_second(steps),
        wall_seconds=self._clock.seconds,
        metrics={**counts.metrics, **ended.metrics, **totals, "actor": actor},
      )
    )
