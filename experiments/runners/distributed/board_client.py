"""A process's connection to the board: its thread reports and fetches weights."""

import collections
import contextlib
import os
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import ray

from explorax.agents import types
from explorax.experiments.runners.distributed import messages

_SECONDS_BETWEEN_REPORTS = 0.1
_SECONDS_TO_CLOSE = 10.0


def register(run: messages.Run, role: str) -> int:
  """Registers a process; returns how many have had its role before."""
  return ray.get(run.handle(messages.BOARD).start.remote(role, os.getpid()))


class BoardClient:
  """Reports ten times a second from a separate thread, which never blocks acting.

  It is also a variable client: the thread fetches newer weights, and `get_variables`
  returns the last fetched ones. The main thread only appends to a queue and increments
  a counter. The reports are the process's heartbeat.

  Attributes:
    number: how many processes have had the role before.
    steps: environment steps of this process; incremented by the main thread.
    latest: the board's last answer.
    outbox: weights to publish with the next report, or nothing.
    fetched: reference to the weights that `get_variables` returns; None before the
      first.
  """

  def __init__(
    self, run: messages.Run, role: str, *, variable_update_period: int | None = None
  ):
    """Registers the process, and starts to report.

    Args:
      run: of the process.
      role: for example `actor 0`.
      variable_update_period: environment steps of this process between two fetches of
        weights; None: it fetches none.
    """
    self._board = run.handle(messages.BOARD)
    self._role = role
    self._period = variable_update_period
    self._num_steps = run.config.steps
    self.number = register(run, role)
    self.steps = 0
    self.latest = messages.BoardUpdate()
    self.outbox: collections.deque[messages.Version] = collections.deque(maxlen=1)
    self.fetched: list[Any] | None = None
    self._weights: types.Params = None
    self._fetched_at = 0  # Steps of this process.
    self._events: collections.deque[tuple[int, Any]] = collections.deque()
    self._doing: tuple[str, float] | None = None
    self._reported = 0  # Steps.
    self._counted = (0, 0)  # At the last answer: steps of the run, and of this process.
    self._closing = threading.Event()
    self._thread = threading.Thread(target=self._run, daemon=True)
    self._thread.start()

  @property
  def env_steps(self) -> int:
    """Steps of the run: those counted by the board, plus this process's newer ones."""
    of_run, of_process = self._counted
    return of_run + self.steps - of_process

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
  def doing(self, what: str) -> Iterator[None]:
    """Marks a block that may take long, and reports what the process does in it."""
    self._doing = (what, time.monotonic())
    try:
      yield
    finally:
      self._doing = None

  def get_variables(self, names: Sequence[str]) -> list[types.Params]:
    """The newest fetched weights; `params` is the only variable."""
    if list(names) != ["params"]:
      raise ValueError(f"the only variable is 'params', not {list(names)}.")
    return [self._weights]

  def fetch(self) -> bool:
    """Fetches the newest weights; returns whether there are any.

    If the learner that published them has died, the current weights are kept.
    """
    version = self.latest.version
    if version is not None and version.reference != self.fetched:
      with contextlib.suppress(ray.exceptions.ObjectLostError):
        self._weights = jax.device_put(ray.get(version.reference[0]))
        self.fetched, self._fetched_at = version.reference, self.steps
    return self.fetched is not None

  def close(self) -> None:
    """Sends the last report."""
    self._closing.set()
    self._thread.join(_SECONDS_TO_CLOSE)

  def _run(self) -> None:
    is_last = False
    try:
      while not is_last:
        is_last = self._closing.wait(_SECONDS_BETWEEN_REPORTS)
        self._exchange()
        if not is_last and self._is_fetch_due():
          self.fetch()
    except ray.exceptions.RayError:
      os._exit(1)  # The board has died, and the run with it.

  def _is_fetch_due(self) -> bool:
    if self._period is None:
      return False
    return self.fetched is None or self.steps - self._fetched_at >= self._period

  def _exchange(self) -> None:
    events = [self._events.popleft() for _ in range(len(self._events))]
    steps = self.steps  # Read after the events, so that it includes their steps.
    version = self.outbox.pop() if self.outbox else None
    doing, since = self._doing or ("", time.monotonic())
    report = messages.Report(
      steps - self._reported,
      tuple(
        event._replace(steps_after=steps - at)
        if isinstance(event, messages.EndedEpisode)
        else event
        for at, event in events
      ),
      version,
      doing,
      time.monotonic() - since,
    )
    self._reported = steps
    self.latest = ray.get(self._board.exchange.remote(self._role, report))
    self._counted = (self.latest.env_steps, steps)
