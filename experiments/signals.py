"""Turns SIGINT, SIGTERM and SIGHUP into a request to stop between two steps.

A command reacts to them from its first line on (`ending_the_process`) without raising
an exception: code in C from which Python is called (XLA while it compiles, for example)
would swallow it or crash. A thread receives the signals, so that it also reacts while
the main thread computes.
"""

import contextlib
import os
import signal
import sys
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
_SECONDS_TO_READ = 5.0
_SHOW_CURSOR = b"\x1b[?25h"  # Progress bars hide it.

Announce = Callable[[signal.Signals], None]


class StopRequest:
  """Whether a signal has requested the run to stop, and which one.

  Attributes:
    signal: the first one.
    seen: set when the thread of `ending_the_process` has read it.
  """

  def __init__(self, announce: Announce = lambda number: None) -> None:
    self.signal: signal.Signals | None = None
    self.seen = threading.Event()
    self._announce = announce
    self._lock = threading.Lock()

  def __call__(self) -> bool:
    return self.signal is not None

  def make(self, number: int) -> None:
    """Makes the request, once."""
    with self._lock:
      if self.signal is not None:
        return
      self.signal = signal.Signals(number)
    self._announce(self.signal)

  @property
  def exit_code(self) -> int:
    """128 plus the signal's number, as in a shell; 0 without a signal."""
    return 0 if self.signal is None else 128 + self.signal


class _Process:
  """What this process does with signals.

  Attributes:
    is_watched: whether `ending_the_process` is active.
    request: of the active `stop_on_signals` of the main thread.
  """

  def __init__(self) -> None:
    self.is_watched = False
    self.request: StopRequest | None = None

  def handle(self, number: int, frame: FrameType | None) -> None:
    """Python's handler; the thread does the rest."""
    del frame
    if self.request is not None:
      self.request.make(number)

  def leave_to_parent(self) -> None:
    """In a fork, whose signals the thread of its parent must not get."""
    if self.is_watched:
      self.is_watched, self.request = False, None
      signal.set_wakeup_fd(-1)
      for number, default in _DEFAULTS.items():
        if signal.getsignal(number) == self.handle:
          signal.signal(number, default)


_process = _Process()
os.register_at_fork(after_in_child=_process.leave_to_parent)


def end_while_importing() -> None:
  """Ends the process at SIGINT from now on, without a traceback of imports.

  A program calls it before its other imports, until `ending_the_process`.
  """
  if signal.getsignal(signal.SIGINT) == signal.default_int_handler:
    signal.signal(signal.SIGINT, _end)


def _end(number: int, frame: FrameType | None) -> None:
  del frame
  os.write(2, b"\nexplorax: stopped before the start.\n")
  os._exit(128 + number)


@contextlib.contextmanager
def ending_the_process(announce: Announce) -> Iterator[None]:
  """Ends the process at SIGINT, SIGTERM or SIGHUP; for the body of a program.

  Within `stop_on_signals`, the first signal is a request and the second ends the
  process. The exit code is 128 plus the signal's number. A signal that is ignored
  (SIGHUP under `nohup`) or has a handler of the caller's is left alone.

  Args:
    announce: called before the end, in another thread.
  """
  handled = _handled()
  if not handled:
    yield
    return
  reader, writer = os.pipe()
  os.set_blocking(writer, False)
  before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
  for number in handled:
    signal.signal(number, _process.handle)
  watcher = threading.Thread(
    target=_watch, args=(reader, handled, announce), daemon=True
  )
  watcher.start()
  _process.is_watched = True
  try:
    yield
  finally:
    _process.is_watched = False
    _restore(handled)
    signal.set_wakeup_fd(before)
    os.close(writer)
    watcher.join()
    os.close(reader)


@contextlib.contextmanager
def stop_on_signals(announce: Announce) -> Iterator[StopRequest]:
  """Turns the first SIGINT, SIGTERM or SIGHUP into a `StopRequest`.

  The second signal ends the process within `ending_the_process`; elsewhere, as in a
  notebook, it has its default effect. A signal that is ignored or has a handler of the
  caller's is left alone. Outside the main thread, where Python handles no signals, no
  request is made. If such blocks are nested within `ending_the_process`, the inner one
  gets the request, and the outer one when the inner one ends.

  Args:
    announce: called with the signal, from its handler or from another thread.
  """
  request = StopRequest(announce)
  if _process.is_watched and _is_main_thread():
    outer, _process.request = _process.request, request
    try:
      yield request
    finally:
      if request.signal is not None:
        # Otherwise the thread would take it for a second one.
        request.seen.wait(_SECONDS_TO_READ)
        if outer is not None:
          outer.make(request.signal)
          outer.seen.set()
      _process.request = outer
    return
  handled = _handled()

  def handle(number: int, frame: FrameType | None) -> None:
    del frame
    _restore(handled)
    request.make(number)

  for number in handled:
    signal.signal(number, handle)
  try:
    yield request
  finally:
    _restore(handled)


def _is_main_thread() -> bool:
  return threading.current_thread() is threading.main_thread()


def _handled() -> list[signal.Signals]:
  """The signals that have their default handlers."""
  if not _is_main_thread():
    return []
  return [
    n for n, default in _DEFAULTS.items() if signal.getsignal(n) in (default, _end)
  ]


def _restore(handled: list[signal.Signals]) -> None:
  for number in handled:
    signal.signal(number, _DEFAULTS[number])


def _watch(reader: int, handled: list[signal.Signals], announce: Announce) -> None:
  """Reads the numbers of signals, as they arrive, until the pipe is closed."""
  while byte := os.read(reader, 1):
    number = byte[0]
    if number not in handled:
      continue  # A timer's.
    request = _process.request
    if request is None or request.seen.is_set():
      announce(signal.Signals(number))
      if sys.stderr.isatty():
        os.write(sys.stderr.fileno(), _SHOW_CURSOR)
      os._exit(128 + number)
    request.make(number)
    request.seen.set()


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
  """Raises a TimeoutError in the block after so long, if this is the main thread."""
  if not _is_main_thread():
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
