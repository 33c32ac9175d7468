"""Messages of a program; closing its output does not stop the program."""

import contextlib
import os
import shutil
import sys
from typing import TextIO

_CLEAR = "\r\x1b[K"  # The line of the cursor.


class Console:
  """Writes to a stream, silently once its reader is gone (`run | head`).

  A terminal also has a status line below all others, which each `status` replaces.

  Attributes:
    is_terminal: whether the stream can show a status line.
  """

  def __init__(self, stream: TextIO | None):
    """Prepares the output; a stream of None discards it."""
    is_dumb = os.environ.get("TERM") in ("dumb", "unknown")
    self.is_terminal = stream is not None and stream.isatty() and not is_dumb
    self._stream = stream
    self._status = ""

  def line(self, text: str) -> None:
    """Writes `text` and ends the line; the status line stays below it."""
    clear = _CLEAR if self._status else ""
    self._write(f"{clear}{text}\n{self._status}")

  def status(self, text: str) -> None:
    """Replaces the status line of a terminal, cut to its width; '' removes it."""
    if self.is_terminal:
      self._status = text[: shutil.get_terminal_size().columns - 1]
      self._write(_CLEAR + self._status)

  def _write(self, text: str) -> None:
    """Writes `text` and flushes."""
    if self._stream is None:
      return
    try:
      self._stream.write(text)
      self._stream.flush()
    except OSError:
      # Otherwise Python would retry at its exit and print an error.
      with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())
      self._stream = None


def print_error(problem: Exception | str) -> None:
  """Prints an error on stderr, in place of the status line of a terminal."""
  clear = _CLEAR if sys.stderr.isatty() else ""
  print(f"{clear}explorax: {problem}", file=sys.stderr, flush=True)
