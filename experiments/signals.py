"""SIGINT, SIGTERM and SIGHUP as a wish to stop, granted between two steps."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Any

# What each one does where nothing else was said.
_ORDINARY: dict[signal.Signals, Any] = {
  signal.SIGINT: signal.default_int_handler,
  signal.SIGTERM: signal.SIG_DFL,
  signal.SIGHUP: signal.SIG_DFL,
}


class StopRequest:
  """Whether a signal has asked the run to stop, and which."""

  def __init__(self):
    self.signal: signal.Signals | None = None

  def __call__(self) -> bool:
    return self.signal is not None

  @property
  def exit_code(self) -> int:
    """128 and the signal's number, as shells report it; 0 for none."""
    return 0 if self.signal is None else 128 + self.signal


@contextlib.contextmanager
def stop_on_signals(
  announce: Callable[[signal.Signals], None],
) -> Iterator[StopRequest]:
  """Turns the first SIGINT, SIGTERM or SIGHUP into a `StopRequest`.

  A second signal has its ordinary effect, for those who cannot wait. A SIGHUP that is
  ignored (`nohup`) stays so. Outside the main thread, where Python handles no signals,
  the request is never made.

  Args:
    announce: called with the signal, from its handler.
  """
  with _stop_on(tuple(_ORDINARY), announce) as request:
    yield request


@contextlib.contextmanager
def stop_on_interrupt() -> Iterator[StopRequest]:
  """Turns the first SIGINT into a `StopRequest`, if it would be a KeyboardInterrupt.

  Where the process has a handler of its own, that is left alone.
  """
  if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
    yield StopRequest()
    return
  with _stop_on((signal.SIGINT,), lambda number: None) as request:
    yield request


@contextlib.contextmanager
def deferred() -> Iterator[None]:
  """Has these signals handled at the block's end, if Python handles them.

  For what must be done as a whole: a KeyboardInterrupt between a call that consumes
  its argument and the assignment of its result would lose both. If the block raises,
  the signals that came in it are dropped.
  """
  if not _is_main_thread():
    yield
    return
  came: list[int] = []
  before: dict[signal.Signals, Any] = {}

  def hold(number: int, frame: FrameType | None) -> None:
    del frame
    came.append(number)

  try:
    for number in _ORDINARY:
      if callable(signal.getsignal(number)):
        before[number] = signal.signal(number, hold)
    yield
  finally:
    # SIGINT last: its handler may raise.
    for number, handler in reversed(before.items()):
      signal.signal(number, handler)
  for each in came:
    signal.raise_signal(each)


@contextlib.contextmanager
def _stop_on(
  numbers: Sequence[signal.Signals], announce: Callable[[signal.Signals], None]
) -> Iterator[StopRequest]:
  """`stop_on_signals`, of these signals alone."""
  request = StopRequest()
  if not _is_main_thread():
    yield request
    return
  before = {number: signal.getsignal(number) for number in numbers}
  if before.get(signal.SIGHUP) is signal.SIG_IGN:
    del before[signal.SIGHUP]

  def handle(number: int, frame: FrameType | None) -> None:
    del frame
    request.signal = signal.Signals(number)
    for each in before:
      signal.signal(each, _ORDINARY[each])
    announce(request.signal)

  for number in before:
    signal.signal(number, handle)
  try:
    yield request
  finally:
    for number, handler in before.items():
      signal.signal(number, handler)


def _is_main_thread() -> bool:
  """Where alone Python handles signals."""
  return threading.current_thread() is threading.main_thread()
