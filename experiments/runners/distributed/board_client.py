"""A process's connection to the board: its thread reports and fetches weights."""

import collections
import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax

from explorax.agents import types
from explorax.experiments.runners.distributed import messages

_SECONDS_BETWEEN_REPORTS = 0.1
_SECONDS_TO_CLOSE = 10.0


def register(run: str, role: str) -> tuple[int, Any]:
  """Registers a process; returns its incarnation and what it starts from."""
  import ray

  incarnation, start = ray.get(
    messages.handle(run, messages.BOARD).start.remote(role, os.getpid())
  )
  return incarnation, None if start is None else ray.get(start[0])


class BoardClient:
  """Reports ten times a second from a separate thread, which never blocks acting.

  It is also a variable client: the thread fetches newer weights, and `get_variables`
  returns the last fetched ones. The main thread only appends to a queue and increments
  a counter.

  Attributes:
    incarnation: number of earlier processes with this role.
    start: what the process starts from, given by the driver.
    steps: environment steps of this process; incremented by the main thread.
    latest: the board's last answer.
    weights: (version, the weights); None before the first.
  """

  def __init__(
    self,
    run: str,
    role: str,
    *,
    variable_update_period: int | None = None,
    num_steps: int | None = None,
    more: Callable[[], dict[str, Any]] = dict,
  ):
    """Registers the process, waits for what it starts from, and starts to report.

    Args:
      run: its name.
      role: for example `actor 0`.
      variable_update_period: environment steps of this process between two fetches of
        weights; None: it fetches none.
      num_steps: environment steps of the run; reports are more frequent near the end.
      more: called in the thread for further fields of a report.
    """
    import ray

    self._ray = ray
    self._board = messages.handle(run, messages.BOARD)
    self._role = role
    self._period = variable_update_period
    self._num_steps = num_steps
    self._more = more
    self.incarnation, self.start = register(run, role)
    self.steps = 0
    self.latest = messages.BoardUpdate()
    self.weights: tuple[messages.Version, types.Params] | None = None
    self._events: collections.deque[tuple[int, Any]] = collections.deque()
    self._blocked: tuple[str, float] | None = None
    self._reported = 0  # Steps.
    self._counted = (0, 0)  # At the last answer: steps of the run, and of this process.
    self._fetched_at: int | None = None
    self._number = 0
    self._closing = threading.Event()
    self._thread = threading.Thread(target=self._run, daemon=True)
    self._thread.start()

  @property
  def env_steps(self) -> int:
    """Steps of the run: those counted by the board, plus this process's newer ones."""
    of_run, own = self._counted
    return of_run + self.steps - own

  @property
  def phase(self) -> int:
    """Phase of the run; acting is over once the known steps reach the limit."""
    phase = self.latest.phase
    if self._num_steps is not None and self.env_steps >= self._num_steps:
      return max(phase, messages.LEARNING)
    return phase

  def add(self, event: Any) -> None:
    """Reports an `EndedEpisode`, a failure or an evaluation."""
    self._events.append((self.steps, event))

  @contextlib.contextmanager
  def blocked(self, doing: str) -> Iterator[None]:
    """Marks a block that may wait; `doing` says for what."""
    self._blocked = (doing, time.monotonic())
    try:
      yield
    finally:
      self._blocked = None

  def explain(self, reason: str) -> None:
    """Sends the reason for which this process is about to end itself."""
    told = self._board.explain.remote(self._role, self.incarnation, reason)
    self._ray.wait([told], timeout=2.0)

  def get_variables(self, names: Sequence[str]) -> list[types.Params]:
    """The newest fetched weights; `params` is the only variable."""
    if list(names) != ["params"]:
      raise ValueError(f"the only variable is 'params', not {list(names)}.")
    return [None if self.weights is None else self.weights[1]]

  def fetch(self) -> bool:
    """Fetches the newest weights; returns whether there are any.

    If the learner that published them has died, the current weights are kept.
    """
    version = self.latest.version
    if version is not None and (
      self.weights is None or self.weights[0][:2] != version[:2]
    ):
      with contextlib.suppress(self._ray.exceptions.ObjectLostError):
        weights = jax.device_put(self._ray.get(version.reference[0]))
        self.weights = (version, weights)
    return self.weights is not None

  def close(self) -> None:
    """Sends the last report."""
    self._closing.set()
    self._thread.join(_SECONDS_TO_CLOSE)

  def _run(self) -> None:
    pause = _SECONDS_BETWEEN_REPORTS
    while True:
      is_last = self._closing.wait(pause)
      began, before = time.monotonic(), self._reported
      try:
        self._exchange(is_last)
        if is_last:
          return
        if self._is_fetch_due() and self.fetch():
          self._fetched_at = self.steps
      except self._ray.exceptions.RayError:
        os._exit(1)  # A process that cannot report is useless; Ray restarts it.
      pause = self._next_pause(
        self._reported - before, pause + time.monotonic() - began
      )

  def _is_fetch_due(self) -> bool:
    if self._period is None:
      return False
    return self._fetched_at is None or self.steps - self._fetched_at >= self._period

  def _next_pause(self, steps: int, seconds: float) -> float:
    """Half of the time until acting ends, within bounds."""
    if self._num_steps is None or not steps:
      return _SECONDS_BETWEEN_REPORTS
    left = (self._num_steps - self.latest.env_steps) / max(1, self.latest.num_acting)
    return min(_SECONDS_BETWEEN_REPORTS, max(0.005, 0.5 * left * seconds / steps))

  def _exchange(self, is_last: bool) -> None:
    events = [self._events.popleft() for _ in range(len(self._events))]
    steps = self.steps  # Read after the events, so that it includes their steps.
    self._number += 1
    doing, since = self._blocked or ("", time.monotonic())
    report = messages.Report(
      number=self._number,
      doing=doing,
      seconds=time.monotonic() - since,
      steps=steps - self._reported,
      events=tuple(
        event._replace(steps_after=steps - at)
        if isinstance(event, messages.EndedEpisode)
        else event
        for at, event in events
      ),
      is_last=is_last,
      **self._more(),
    )
    self._reported = steps
    latest = self._ray.get(
      self._board.exchange.remote(self._role, self.incarnation, report)
    )
    self._counted = (latest.env_steps, steps)
    self.latest = latest
