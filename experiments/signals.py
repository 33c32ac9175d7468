"""Ctrl-C, SIGTERM and SIGHUP as a request to stop between two steps."""

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

Announce = Callable[[signal.Signals], None]

_NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StopRequest:
  """Called between two steps: whether a signal has requested to stop.

  Attributes:
    signal: the number of the first one; None before it.
  """

  signal: int | None = None

  def __call__(self) -> bool:
    return self.signal is not None

  @property
  def exit_code(self) -> int:
    """128 plus the signal's number, as in a shell; 0 without a signal."""
    return 0 if self.signal is None else 128 + self.signal


_requests: list[StopRequest] = []  # Of the open blocks, the outer ones first.


def end_at_once() -> None:
  """Lets Ctrl-C end this process without a traceback; for a program's first line.

  Elsewhere, as in a notebook, it raises a KeyboardInterrupt.
  """
  if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, _end)


def _end(number: int, frame: FrameType | None) -> None:
  del frame
  os._exit(128 + number)


@contextlib.contextmanager
def stop_on_signals(
  announce: Callable[[signal.Signals], None],
) -> Iterator[StopRequest]:
  """Turns the first signal in the block into a `StopRequest`, and that of outer blocks.

  The second one ends a program at once, also while XLA computes. A signal that is
  ignored (SIGHUP under `nohup`) or has a handler of the caller's is left alone. Outside
  the main thread, where Python handles no signals, no request is made.

  Args:
    announce: called with the signal by the handler of the outermost block.
  """
  request = StopRequest()
  if threading.current_thread() is not threading.main_thread():
    yield request
    return
  if _requests:
    request.signal = _requests[-1].signal
  before: dict[signal.Signals, Any] = {}

  def handle(number: int, frame: FrameType | None) -> None:
    del frame
    for each, handler in before.items():
      is_programs = handler in (signal.SIG_DFL, _end)
      signal.signal(each, signal.SIG_DFL if is_programs else handler)
    for opened in _requests:
      opened.signal = number
    announce(signal.Signals(number))

  _requests.append(request)
  for number in _NUMBERS:
    handler = signal.getsignal(number)
    if handler in (signal.SIG_DFL, signal.default_int_handler, _end):
      before[number] = handler
      signal.signal(number, handle)
  try:
    yield request
  finally:
    _requests.remove(request)
    for number, handler in before.items():
      signal.signal(number, handler)
