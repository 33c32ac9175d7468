"""A process's connection to the board: a thread that reports and fetches weights."""

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
  """This process has the role; returns its incarnation and what it starts from."""
  import ray

  incarnation, start = ray.get(
    messages.handle(run, messages.BOARD).start.remote(role, os.getpid())
  )
  return incarnation, None if start is None else ray.get(start[0])


class BoardClient:
  """Reports ten times a second from a thread of its own; acting never waits for it.

  A variable client as well: the thread fetches newer weights, and `get_variables` gives
  those that it has. The main thread only appends to a queue and adds to a counter.

  Attributes:
    incarnation: how many processes the role had before this one.
    start: what the driver has this process start from.
    steps: environment steps taken by this process; the main thread adds to it.
    latest: the board's last answer.
    weights: (which version, the weights); None before the first.
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
    """Registers the process, waits for what it starts from, and begins to report.

    Args:
      run: its name.
      role: as `actor 0`.
      variable_update_period: environment steps of this process between two fetches of
        weights; None: it fetches none.
      num_steps: environment steps of the run; near them it reports more often.
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
    self._counted = (0, 0)  # Steps of the run at the last answer; of these, our own.
    self._fetched_at: int | None = None
    self._number = 0
    self._closing = threading.Event()
    self._thread = threading.Thread(target=self._run, daemon=True)
    self._thread.start()

  @property
  def env_steps(self) -> int:
    """Of the run: those that the board has counted, and our own since."""
    of_run, own = self._counted
    return of_run + self.steps - own

  @property
  def phase(self) -> int:
    """Of the run; acting is over as soon as the steps known here reach the limit."""
    phase = self.latest.phase
    if self._num_steps is not None and self.env_steps >= self._num_steps:
      return max(phase, messages.LEARNING)
    return phase

  def add(self, event: Any) -> None:
    """Reports an `EndedEpisode`, a failure or an evaluation."""
    self._events.append((self.steps, event))

  @contextlib.contextmanager
  def blocked(self, doing: str) -> Iterator[None]:
    """The block may wait for others; `doing` says for what."""
    self._blocked = (doing, time.monotonic())
    try:
      yield
    finally:
      self._blocked = None

  def explain(self, reason: str) -> None:
    """Tells the board why this process is about to end itself."""
    told = self._board.explain.remote(self._role, self.incarnation, reason)
    self._ray.wait([told], timeout=2.0)

  def get_variables(self, names: Sequence[str]) -> list[types.Params]:
    """The newest weights that were fetched; `params` is all there is."""
    if list(names) != ["params"]:
      raise ValueError(f"there are the variables ['params'], not {list(names)}.")
    return [None if self.weights is None else self.weights[1]]

  def fetch(self) -> bool:
    """Fetches the newest weights; returns whether there are any.

    Weights are lost with the learner that published them: then those held are kept.
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
        os._exit(1)  # A process that cannot report is of no use; Ray restarts it.
      pause = self._next_pause(
        self._reported - before, pause + time.monotonic() - began
      )

  def _is_fetch_due(self) -> bool:
    if self._period is None:
      return False
    return self._fetched_at is None or self.steps - self._fetched_at >= self._period

  def _next_pause(self, steps: int, seconds: float) -> float:
    """Half of the time that is left to the end of acting, within bounds."""
    if self._num_steps is None or not steps:
      return _SECONDS_BETWEEN_REPORTS
    left = (self._num_steps - self.latest.env_steps) / max(1, self.latest.num_acting)
    return min(_SECONDS_BETWEEN_REPORTS, max(0.005, 0.5 * left * seconds / steps))

  def _exchange(self, is_last: bool) -> None:
    events = [self._events.popleft() for _ in range(len(self._events))]
    steps = self.steps  # Read after the events, which it therefore includes.
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
