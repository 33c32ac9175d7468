"""Turns SIGINT, SIGTERM and SIGHUP into a request to stop between two steps."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Any

# The default handler of each signal.
_ORDINARY: dict[signal.Signals, Any] = {
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

  A second signal has its default effect, so that a user can end the run at once. An
  ignored SIGHUP (`nohup`) stays ignored. Outside the main thread, where Python handles
  no signals, no request is made.

  Args:
    announce: called with the signal, from its handler.
  """
  with _stop_on(tuple(_ORDINARY), announce) as request:
    yield request


@contextlib.contextmanager
def stop_on_interrupt() -> Iterator[StopRequest]:
  """Turns the first SIGINT into a `StopRequest`, if it would be a KeyboardInterrupt.

  A handler that the process has set itself stays in place.
  """
  if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
    yield StopRequest()
    return
  with _stop_on((signal.SIGINT,), lambda number: None) as request:
    yield request


@contextlib.contextmanager
def deferred() -> Iterator[None]:
  """Delays the handling of these signals until the end of the block.

  This is for work that must not be split: a KeyboardInterrupt between a call that
  consumes its argument and the assignment of its result would lose both. If the block
  raises, the signals received in it are dropped.
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
  """`stop_on_signals`, for these signals only."""
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
  """Python handles signals in the main thread only."""
  return threading.current_thread() is threading.main_thread()
