"""Ends a process whose environment hangs; Ray restarts it."""

import faulthandler
import os
import threading
import time
from collections.abc import Callable


class Watchdog:
  """A thread that ends the process when a call of the environment takes too long.

  An environment that hangs in C code and holds Python's lock stops this thread, too.
  For this case, a C timer of `faulthandler` ends the process unless the thread restarts
  it in time.
  """

  def __init__(self, explain: Callable[[str], None], timeout: float):
    """Watches blocks that call environments; use the watchdog as their context.

    Args:
      explain: called with the reason before the process is ended.
      timeout: seconds that a call may take.
    """
    self._explain = explain
    self._timeout = timeout
    self._pause = min(1.0, timeout / 4)
    self._since: float | None = None
    self._nowhere = open(os.devnull, "w")  # noqa: SIM115 - kept for the timer.
    threading.Thread(target=self._run, daemon=True).start()

  def __enter__(self) -> None:
    self._since = time.monotonic()

  def __exit__(self, *error: object) -> None:
    self._since = None

  def _run(self) -> None:
    while True:
      faulthandler.dump_traceback_later(
        self._timeout + 10 * self._pause, exit=True, file=self._nowhere
      )
      since = self._since
      seconds = 0.0 if since is None else time.monotonic() - since
      if seconds >= self._timeout:
        self._explain(
          f"its environment did not answer for {seconds:.0f} s (--environment_timeout)"
        )
        os._exit(1)
      time.sleep(self._pause)
