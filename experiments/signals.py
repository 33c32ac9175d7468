"""Ctrl-C, SIGTERM and SIGHUP as a request to stop between two steps."""

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

_NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StopRequest:
  """Called between two steps: whether a signal has requested to stop."""

  signal: int | None = None

  def __call__(self) -> bool:
    return self.signal is not None

  @property
  def exit_code(self) -> int:
    """128 plus the signal's number, as in a shell; 0 without a signal."""
    return 0 if self.signal is None else 128 + self.signal


_outermost: list[StopRequest] = []  # Of the open block, if there is one.


@contextlib.contextmanager
def stop_on_signals() -> Iterator[StopRequest]:
  """Turns the first signal in the block into a request; blocks within share it.

  The second one has its usual effect: it ends a program at once, also while XLA
  computes. A signal that is ignored (SIGHUP under `nohup`) or has a handler of the
  caller's is left alone. Only the main thread gets a request.
  """
  if threading.current_thread() is not threading.main_thread() or _outermost:
    yield _outermost[0] if _outermost else StopRequest()
    return
  request, before = StopRequest(), dict[signal.Signals, Any]()

  def handle(number: int, frame: FrameType | None) -> None:
    del frame
    request.signal = number
    for each, handler in before.items():
      signal.signal(each, handler)
    text = f"{signal.Signals(number).name}: stopping and saving (again: quit at once)"
    with contextlib.suppress(OSError):  # Unbuffered: a print may be under way.
      os.write(2, f"\nexplorax: {text}.\n".encode())

  for number in _NUMBERS:
    if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
      before[number] = signal.signal(number, handle)
  _outermost.append(request)
  try:
    yield request
  finally:
    _outermost.clear()
    for number, handler in before.items():
      signal.signal(number, handler)
