"""What C++ libraries write to stderr, in a file beside the run."""

import contextlib
import os
import pathlib
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def into(path: pathlib.Path) -> Iterator[None]:
  """Appends to `path` what is written to file descriptor 2, past Python.

  Python's own `sys.stderr` stays where it was. Reverb logs each start and stop of its
  server, which has no setting for it, in the middle of a live line.
  """
  before = sys.stderr
  before.flush()
  kept = os.dup(2)
  encoding = before.encoding or "utf-8"
  with open(kept, "w", buffering=1, encoding=encoding, errors="replace") as own:
    try:
      with open(path, "ab") as file:
        os.dup2(file.fileno(), 2)
      if before is sys.__stderr__:  # Those of tests and notebooks go elsewhere anyway.
        sys.stderr = own
      yield
    finally:
      own.flush()
      sys.stderr = before
      os.dup2(kept, 2)
