"""Text for whoever watches; a run goes on when nobody does."""

import contextlib
import os
from typing import TextIO


class Console:
  """Writes to a stream, and falls silent once it has gone (`run | head`)."""

  def __init__(self, stream: TextIO):
    self.is_terminal = stream.isatty()
    self._stream: TextIO | None = stream

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
