"""Messages of a program; closing its output does not stop the program."""

import contextlib
import functools
import os
import sys
from typing import TYPE_CHECKING, Any, TextIO, cast

if TYPE_CHECKING:
  from rich import console as rich_console


class Console:
  """Writes to a stream, silently once its reader is gone (`run | head`).

  Attributes:
    is_terminal: whether the stream can show a live line.
  """

  def __init__(self, stream: TextIO | None):
    """Args: stream: None writes nothing."""
    is_dumb = os.environ.get("TERM") in ("dumb", "unknown")
    self.is_terminal = stream is not None and stream.isatty() and not is_dumb
    self.encoding = getattr(stream, "encoding", None) or "utf-8"
    self._stream = stream

  @functools.cached_property
  def rich(self) -> "rich_console.Console":
    """rich's console for a terminal: printed lines appear above a live line."""
    from rich import console as rich_console

    file: Any = self
    return rich_console.Console(file=cast(TextIO, file), force_terminal=True)

  def line(self, text: str) -> None:
    """Writes `text` and ends the line; a live line stays below it."""
    if self.is_terminal:
      self.rich.print(text, markup=False, highlight=False, emoji=False, soft_wrap=True)
    else:
      self.write(text + "\n")

  def write(self, text: str) -> None:
    """Writes `text` unchanged and flushes."""
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

  def importing(self) -> contextlib.AbstractContextManager[object]:
    """Shows on a terminal that the program is importing."""
    if not self.is_terminal:
      return contextlib.nullcontext()
    return self.rich.status("importing")

  def flush(self) -> None:
    """Does nothing, since `write` flushes; rich calls it."""


def print_error(problem: Exception | str) -> None:
  """Prints an error on stderr."""
  print(f"explorax: {problem}", file=sys.stderr, flush=True)


def alert(text: str) -> None:
  """Writes to stderr from a signal handler.

  It bypasses Python's buffers, which the signal may have interrupted in a write.
  """
  with contextlib.suppress(OSError):
    os.write(sys.stderr.fileno(), f"\nexplorax: {text}.\n".encode())
