"""One process at a time in a directory."""

import contextlib
import fcntl
import os
import pathlib
import socket
import time
from collections.abc import Iterator
from typing import IO

from explorax.experiments import errors

_POLL = 0.1  # Seconds between two tries.


@contextlib.contextmanager
def hold(directory: pathlib.Path, *, patience: float = 0.0) -> Iterator[None]:
  """Holds the directory while the block lasts; the system lets go of it at a crash.

  Args:
    directory: that exists.
    patience: seconds for which another process that holds it is waited for.

  Raises:
    SetUpError: if another process holds it, with that one's id.
    OutputError: if the lock cannot be written.
  """
  path = directory / "sweep.lock"
  try:
    file = open(path, "a+")  # noqa: SIM115 (closed below)
  except OSError as error:
    raise errors.OutputError(
      f"{path} could not be written ({error.strerror})."
    ) from error
  with file:
    try:
      _lock(file, patience)
    except OSError as error:
      file.seek(0)
      owner = file.read().strip() or "another process"
      raise errors.SetUpError(
        f"another sweep runs in {directory} ({owner}); wait for it, end it, or choose "
        "another --output."
      ) from error
    # The owner is for people; that nobody else has the lock, only flock says.
    with contextlib.suppress(OSError):
      file.truncate(0)
      file.write(f"process {os.getpid()} on {socket.gethostname()}\n")
      file.flush()
    yield


def _lock(file: IO[str], patience: float) -> None:
  """Raises an OSError if another process holds it for too long."""
  end = time.monotonic() + patience
  while True:
    try:
      return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
      if time.monotonic() >= end:
        raise
    time.sleep(_POLL)
