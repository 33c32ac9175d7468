"""Ctrl-C and SIGTERM as a wish to stop, which a run grants between two steps."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType

_HANDLED = (signal.SIGINT, signal.SIGTERM)


class StopRequest:
  """Whether a signal has asked the run to stop, and which."""

  def __init__(self):
    self.signal: signal.Signals | None = None

  def __call__(self) -> bool:
    return self.signal is not None

  @property
  def exit_code(self) -> int:
    """130 for SIGINT, 143 for SIGTERM, as shells report them; 0 for none."""
    return 0 if self.signal is None else 128 + self.signal


@contextlib.contextmanager
def stop_on_signals(
  announce: Callable[[signal.Signals], None],
) -> Iterator[StopRequest]:
  """Turns the first SIGINT or SIGTERM into a `StopRequest`.

  A second signal has its ordinary effect, for those who cannot wait. Outside the
  main thread, where Python handles no signals, the request is never made.

  Args:
    announce: called with the signal, from its handler.
  """
  request = StopRequest()
  if threading.current_thread() is not threading.main_thread():
    yield request
    return
  before = {number: signal.getsignal(number) for number in _HANDLED}

  def handle(number: int, frame: FrameType | None) -> None:
    del frame
    request.signal = signal.Signals(number)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    announce(request.signal)

  for number in _HANDLED:
    signal.signal(number, handle)
  try:
    yield request
  finally:
    for number, handler in before.items():
      signal.signal(number, handler)
