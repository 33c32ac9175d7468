"""Word of a process that is at work in an environment, which may never come back."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator


class Pulse:
  """Tells again and again for how long the environment has been asked something.

  A thread of its own does. Where not even that is heard, the environment holds Python's
  lock, or the process is stopped.
  """

  def __init__(self, tell: Callable[[float], object], timeout: float):
    """Begins to tell.

    Args:
      tell: called with seconds, 0 where it is not asked anything; from the thread.
      timeout: seconds after which whoever is told loses patience.
    """
    self._tell = tell
    self._pause = seconds_between(timeout)
    self._since: float | None = None
    threading.Thread(target=self._run, daemon=True).start()

  @contextlib.contextmanager
  def watched(self) -> Iterator[None]:
    """While the environment is asked something."""
    self._since = time.monotonic()
    try:
      yield
    finally:
      self._since = None

  def _run(self) -> None:
    while True:
      since = self._since
      self._tell(0.0 if since is None else time.monotonic() - since)
      time.sleep(self._pause)


def seconds_between(timeout: float) -> float:
  """Two words of a process, of which one may be lost."""
  return min(1.0, timeout / 4)


def is_silent(seconds: float, timeout: float) -> bool:
  """Whether a process has not been heard of for too long."""
  return seconds >= timeout + 10 * seconds_between(timeout)
