"""The board: one small asynchronous Ray actor that receives all reports."""

import asyncio
import os
import time
from collections.abc import Mapping
from typing import Any

from explorax.experiments.runners import clock as clock_lib
from explorax.experiments.runners import core
from explorax.experiments.runners.distributed import messages

_WARM_UP_UPDATES = 2  # The first updates compile.


class _Member:
  """The process that has a role.

  Attributes:
    incarnation: number of earlier processes with the role; -1 before the first.
    last: the number of its last report.
    updates_at_start: the learner's updates when the process started.
    has_ended: whether it has finished its work.
    has_worked: whether it has reported any work.
    heard_at: time of its last message.
    reason: why it ended itself.
    blocked: what it is blocked on, and for how many seconds.
  """

  def __init__(self) -> None:
    self.incarnation, self.last, self.updates_at_start = -1, 0, 0
    self.has_ended = self.has_worked = False
    self.heard_at = time.monotonic()
    self.reason = ""
    self.blocked = ("", 0.0)


class Board:
  """Counts the reports, and holds the newest weights and the phase of the run.

  No call blocks, except that a starting process waits for the driver's answer about
  what it starts from. Ray restarts a board that died; the new one serves processes
  after the driver has sent it the state of the last poll (`resume`).
  """

  def __init__(self, roles: list[str], num_episodes: int | None, num_steps: int | None):
    """Prepares to count.

    Args:
      roles: of all processes.
      num_episodes: at which acting ends; None: no such limit.
      num_steps: environment steps at which acting ends; None: no such limit.
    """
    self._limits = (num_episodes, num_steps)
    self._members = {role: _Member() for role in roles}
    self._phase = messages.ACTING
    self._env_steps = self._episodes = self._updates = self._evaluated_at = 0
    self._totals: dict[str, float] = {}  # Counts of all actors' environments.
    self._metrics: dict[str, float] = {}  # The learner's.
    self._clock = clock_lib.Clock()
    self._version: messages.Version | None = None
    self._wants_state = 0
    self._learner: messages.LearnerState | None = None
    self._events: list[messages.Event] = []
    self._starting: dict[tuple[str, int], asyncio.Future[Any]] = {}
    self._remembered: dict[str, Any] = {}
    self._resumed = asyncio.Event()

  # --- Called by the processes of the run ---

  async def start(self, role: str, pid: int) -> tuple[int, Any]:
    """A process has started; returns its incarnation and what it starts from."""
    await self._resumed.wait()
    member = self._members[role]
    # Only of processes that report; replay processes do not.
    reported = member.incarnation >= 0 and not role.startswith("replay")
    silence = time.monotonic() - member.heard_at if reported else 0.0
    had_worked, reason = member.has_worked, member.reason
    has_ended = member.has_ended  # Then Ray does not rerun its task.
    if role.startswith("replay"):  # Replay has worked if the learner could learn.
      had_worked = self._updates > member.updates_at_start
    incarnation = member.incarnation + 1
    self._members[role] = member = _Member()
    member.incarnation, member.updates_at_start = incarnation, self._updates
    member.has_ended = has_ended
    self._events.append(
      messages.Started(role, incarnation, pid, silence, had_worked, reason)
    )
    future = asyncio.get_running_loop().create_future()
    self._starting[role, incarnation] = future
    return incarnation, await future

  async def remember(self, role: str, value: Any) -> None:
    """Stores a value for later processes of a role."""
    await self._resumed.wait()
    self._remembered[role] = value

  async def recall(self, role: str) -> Any:
    """The value that a process of the role has stored; None if there is none."""
    await self._resumed.wait()
    return self._remembered.get(role)

  async def explain(self, role: str, incarnation: int, reason: str) -> None:
    """A process is about to end itself for this reason."""
    member = self._members[role]
    if incarnation == member.incarnation:
      member.reason = reason

  async def exchange(
    self, role: str, incarnation: int, report: messages.Report
  ) -> messages.BoardUpdate:
    """Takes a report, unless it is a duplicate; returns the run's current state."""
    await self._resumed.wait()
    member = self._members[role]
    if incarnation < member.incarnation:  # A newer process has its role.
      return messages.BoardUpdate(phase=messages.STOPPED)
    member.heard_at = time.monotonic()
    member.blocked = (report.doing, report.seconds)
    if report.number > member.last:
      member.last = report.number
      self._take(role, member, report)
    return messages.BoardUpdate(
      self._phase,
      self._env_steps,
      self._num_acting(),
      self._version,
      self._wants_state,
      self._evaluated_at,
    )

  # --- Called by the driver ---

  async def resume(self, state: messages.State) -> None:
    """Continues from this state; calls of processes wait for it."""
    counts = state.counts
    self._env_steps, self._episodes = counts["env_steps"], counts["episodes"]
    self._updates, self._evaluated_at = counts["updates"], counts["evaluated_at"]
    self._totals, self._metrics = dict(counts["totals"]), dict(counts["metrics"])
    self._clock.resume(counts["seconds"])
    for role, (incarnation, last, has_ended) in state.members.items():
      if role not in self._members:  # A run may be resumed with fewer actors.
        continue
      member = self._members[role]
      member.incarnation, member.last = incarnation, last
      member.has_ended, member.has_worked = has_ended, last > 0
    self._version, self._phase = state.version, state.phase
    self._remembered = dict(state.remembered)
    self._resumed.set()

  async def give(self, role: str, incarnation: int, start: Any) -> None:
    """What a process starts from."""
    future = self._starting.pop((role, incarnation), None)
    if future is not None:
      future.set_result(start)

  async def enter(self, phase: int) -> None:
    """Starts a later phase of the run."""
    self._phase = max(self._phase, phase)

  async def end(self, role: str) -> None:
    """The task of a process is done, even if its last report was lost."""
    await self._resumed.wait()
    self._members[role].has_ended = True
    if not self._num_acting():  # Even if lost steps keep the run below its limit.
      self._phase = max(self._phase, messages.LEARNING)

  async def ask_for_state(self, request: int) -> None:
    """Requests the learner's state; the driver numbers its requests from 1."""
    self._wants_state = max(self._wants_state, request)

  async def needs_driver(self) -> bool:
    """Whether the driver must send the state of replay, or of this process."""
    starts = any(role.startswith("replay") for role, _ in self._starting)
    return starts or not self._resumed.is_set()

  async def poll(self) -> messages.Poll | int:
    """The news for the driver; before `resume`, the id of this process."""
    if not self._resumed.is_set():
      return os.getpid()
    events, self._events = self._events, []
    learner, self._learner = self._learner, None
    return messages.Poll(
      events=events,
      state=self._state(),
      learner=learner,
      starting=list(self._starting),
      blocked=self._blocked(),
      steps_per_second=self._clock.steps_per_second(self._env_steps),
    )

  def _num_acting(self) -> int:
    return sum(
      role.startswith("actor") and not member.has_ended
      for role, member in self._members.items()
    )

  def _state(self) -> messages.State:
    return messages.State(
      counts={
        "env_steps": self._env_steps,
        "episodes": self._episodes,
        "updates": self._updates,
        "evaluated_at": self._evaluated_at,
        "totals": dict(self._totals),
        "metrics": dict(self._metrics),
        "seconds": self._clock.seconds,
        "incarnations": {
          role: member.incarnation for role, member in self._members.items()
        },
      },
      members={
        role: (member.incarnation, member.last, member.has_ended)
        for role, member in self._members.items()
      },
      version=self._version,
      phase=self._phase,
      remembered=dict(self._remembered),
    )

  def _blocked(self) -> dict[str, tuple[str, float]]:
    now, blocked = time.monotonic(), {}
    for role, member in self._members.items():
      silence = now - member.heard_at
      if member.has_ended:
        continue
      if member.incarnation < 0:
        blocked[role] = "has not started: Ray has no free CPU or GPU for it", silence
      elif role.startswith("replay"):
        continue  # It only answers calls.
      elif member.blocked[0] and silence < member.blocked[1]:
        blocked[role] = member.blocked
      else:
        blocked[role] = "has not responded", silence
    return blocked

  def _take(self, role: str, member: _Member, report: messages.Report) -> None:
    member.has_ended = member.has_ended or report.is_last
    if report.version is not None:
      self._version = report.version
    if report.updates is not None:
      member.has_worked = member.has_worked or report.updates > self._updates
      self._updates, self._metrics = report.updates, report.metrics or {}
      if self._updates >= _WARM_UP_UPDATES:
        self._clock.mark_warm(self._env_steps)
    if report.state is not None:
      self._learner = report.state
    self._env_steps += report.steps
    for event in report.events:
      if isinstance(event, messages.EndedEpisode):
        self._end_episode(role, event)
      else:
        self._events.append(event)
      if isinstance(event, messages.EvaluationDone):
        self._evaluated_at = event.evaluation.env_steps
    member.has_worked = member.has_worked or bool(report.steps or report.events)
    if any(
      limit is not None and done >= limit
      for limit, done in zip(
        self._limits, (self._episodes, self._env_steps), strict=True
      )
    ):
      self._phase = max(self._phase, messages.LEARNING)

  def _end_episode(self, role: str, ended: messages.EndedEpisode) -> None:
    for name, value in ended.totals.items():
      self._totals[name] = self._totals.get(name, 0.0) + value
    limit, _ = self._limits
    if limit is not None and self._episodes >= limit:
      return
    self._episodes += 1
    steps = self._env_steps - ended.steps_after
    totals = {name: self._totals[name] for name in ended.totals}
    self._events.append(
      core.Episode(
        episode=self._episodes,
        env_steps=steps,
        episode_return=ended.episode_return,
        episode_length=ended.episode_length,
        policy=ended.policy,
        learner_updates=self._updates,
        steps_per_second=self._clock.steps_per_second(steps),
        wall_seconds=self._clock.seconds,
        metrics={
          **self._metrics,
          **ended.metrics,
          **totals,
          "actor": float(role.split()[1]),
        },
      )
    )


def beginning(saved: Mapping[str, Any] | None) -> messages.State:
  """The initial state of a run, or the state from a checkpoint's counts."""
  counts: dict[str, Any] = {"totals": {}, "metrics": {}, "seconds": 0.0}
  counts["incarnations"] = {}
  for name in ("env_steps", "episodes", "updates", "evaluated_at"):
    counts[name] = 0
  if saved is not None:
    counts = {name: saved[name] for name in counts}
  # New processes use other random numbers than earlier ones.
  members = {role: (last, 0, False) for role, last in counts["incarnations"].items()}
  return messages.State(counts, members, None, messages.ACTING, {})
