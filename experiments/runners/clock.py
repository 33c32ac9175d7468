"""Measures the speed of a run."""

import contextlib
import math
import time
from collections.abc import Callable, Iterator


class Clock:
  """Steps per second, measured after compilation and without pauses."""

  def __init__(self, now: Callable[[], float] = time.monotonic):
    self._now = now
    self._start = now()
    self._warm: tuple[float, int] | None = None

  @property
  def seconds(self) -> float:
    """Seconds since the run's start, over all its processes."""
    return self._now() - self._start

  def resume(self, seconds: float) -> None:
    """Resumes a run that has already taken this many seconds."""
    self._start = self._now() - seconds

  def mark_warm(self, env_steps: int) -> None:
    """Starts the measurement, once."""
    if self._warm is None:
      self._warm = (self._now(), env_steps)

  @contextlib.contextmanager
  def paused(self) -> Iterator[None]:
    """A context whose time is not measured."""
    began = self._now()
    try:
      yield
    finally:
      if self._warm is not None:
        since, steps = self._warm
        self._warm = (since + self._now() - began, steps)

  def steps_per_second(self, env_steps: int) -> float:
    """NaN before `mark_warm`, and before the first step after it."""
    if self._warm is None or env_steps <= self._warm[1]:
      return math.nan
    since, steps = self._warm
    seconds = self._now() - since
    return (env_steps - steps) / seconds if seconds > 0 else math.nan
