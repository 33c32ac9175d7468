"""Text for whoever watches; a run goes on when nobody does."""

import contextlib
import os
import sys
from typing import TextIO


class Console:
  """Writes to a stream, and falls silent once it has gone (`run | head`)."""

  def __init__(self, stream: TextIO | None):
    """Args: stream: None to write nothing at all."""
    self.is_terminal = stream is not None and stream.isatty()
    self._stream = stream

  def write(self, text: str) -> None:
    """Writes `text` as it is, at once."""
    if self._stream is None:
      return
    try:
      self._stream.write(text)
      self._stream.flush()
    except OSError:
      # Python would try again at its exit, and complain.
      with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())
      self._stream = None

  def line(self, text: str) -> None:
    """Writes `text` and ends the line."""
    self.write(text + "\n")


def complain(problem: Exception | str) -> None:
  """Says on stderr what is wrong."""
  print(f"explorax: {problem}", file=sys.stderr, flush=True)


def alert(text: str) -> None:
  """Says something on stderr from a signal's handler.

  It goes past Python's buffers, which the signal may have caught in mid-write.
  """
  with contextlib.suppress(OSError):
    os.write(2, f"\nexplorax: {text}.\n".encode())
