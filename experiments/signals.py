"""Turns SIGINT, SIGTERM and SIGHUP into a request to stop between two steps."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

# Signal → its default handler.
_DEFAULTS: dict[signal.Signals, Any] = {
  signal.SIGINT: signal.default_int_handler,
  signal.SIGTERM: signal.SIG_DFL,
  signal.SIGHUP: signal.SIG_DFL,
}


class StopRequest:
  """Whether a signal has requested the run to stop, and which one."""

  def __init__(self) -> None:
    self.signal: signal.Signals | None = None

  def __call__(self) -> bool:
    return self.signal is not None

  @property
  def exit_code(self) -> int:
    """128 plus the signal's number, as in a shell; 0 without a signal."""
    return 0 if self.signal is None else 128 + self.signal


@contextlib.contextmanager
def stop_on_signals(
  announce: Callable[[signal.Signals], None],
) -> Iterator[StopRequest]:
  """Turns the first SIGINT, SIGTERM or SIGHUP into a `StopRequest`.

  The second signal has its default effect and ends the process at once. A signal that
  is ignored (SIGHUP under `nohup`) or has a handler of the caller's is left alone.
  Outside the main thread, where Python handles no signals, no request is made.

  Args:
    announce: called with the signal, from its handler.
  """
  request = StopRequest()
  if threading.current_thread() is not threading.main_thread():
    yield request
    return
  handled = [n for n, default in _DEFAULTS.items() if signal.getsignal(n) == default]

  def restore() -> None:
    for number in handled:
      signal.signal(number, _DEFAULTS[number])

  def handle(number: int, frame: FrameType | None) -> None:
    del frame
    request.signal = signal.Signals(number)
    restore()
    announce(request.signal)

  for number in handled:
    signal.signal(number, handle)
  try:
    yield request
  finally:
    restore()


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
  """Raises a TimeoutError in the block after so long, if this is the main thread."""
  if threading.current_thread() is not threading.main_thread():
    yield
    return

  def stop(number: int, frame: Any) -> None:
    raise TimeoutError(f"it has not ended after {seconds:g} s")

  before = signal.signal(signal.SIGALRM, stop)
  signal.setitimer(signal.ITIMER_REAL, seconds)
  try:
    yield
  finally:
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    signal.signal(signal.SIGALRM, before)
