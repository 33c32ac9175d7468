"""The directory of a run; `docs/guides/run_files.md` lists its files.

A whole file is written to a temporary file and renamed. One process at a time has the
directory of a run.
"""

import contextlib
import errno
import fcntl
import json
import math
import os
import pathlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, BinaryIO

from explorax.experiments import config, errors

_SETTINGS, _LOCK = "config.json", ".lock"
_OF_A_RUN = (_SETTINGS, "metrics.csv", "summary.json", "checkpoints", "bsuite")
_ADVICE = "choose another --output, or delete the directory if you do not need the run."


class RunDirectory:
  """The directory of one run, or of figures; made by `create`.

  Attributes:
    path: its absolute path.
    given: the path as it was given.
    holds_run: whether it already held a run, which may be resumed.
  """

  def __init__(self, path: pathlib.Path):
    self.path = path.absolute()  # The environment may change the current directory.
    self.holds_run = False
    self.given = path
    self._lock: BinaryIO | None = None

  @classmethod
  def create(
    cls,
    path: str | os.PathLike[str],
    *,
    may_hold_run: bool = False,
    is_locked: bool = False,
  ) -> "RunDirectory":
    """Creates the directory and its parents.

    Args:
      path: of the directory.
      may_hold_run: whether it may already hold a run with a config.json.
      is_locked: whether to lock it against other processes, until `unlock` or the end
        of this process.

    Raises:
      OutputError: if it already holds a run, cannot be created or written to, or
        another process has locked it.
    """
    if not os.fspath(path):
      raise errors.OutputError("--output is empty; give it a directory.")
    try:
      directory = cls(pathlib.Path(path).expanduser())
      directory.path.mkdir(parents=True, exist_ok=True)
      if is_locked:
        directory._lock = _lock(directory.path)
    except (OSError, RuntimeError) as error:  # RuntimeError: the home of no user.
      reason = getattr(error, "strerror", None) or error
      raise errors.OutputError(
        f"--output={path} cannot be written to ({reason}); choose another --output or "
        "change its permissions."
      ) from error
    directory.holds_run = may_hold_run and (directory.path / _SETTINGS).exists()
    present = [name for name in _OF_A_RUN if (directory.path / name).exists()]
    if present and not directory.holds_run:
      directory.unlock()
      raise errors.OutputError(
        f"--output={path} already holds a run ({present[0]}); {_ADVICE}"
      )
    return directory

  def unlock(self) -> None:
    """Releases the lock; its file stays, so that all processes lock the same one."""
    if self._lock is not None:
      self._lock.close()

  def discard(self) -> None:
    """Removes the directory if it holds nothing: the run never started."""
    with contextlib.suppress(OSError):
      if self._lock is not None and not self.holds_run:
        (self.path / _LOCK).unlink()
    self.unlock()
    with contextlib.suppress(OSError):
      self.path.rmdir()

  def write_json(self, name: str, content: Mapping[str, Any]) -> None:
    """Writes a JSON file; NaN and infinities, which JSON lacks, become null."""
    text = json.dumps(finite(content), indent=2, allow_nan=False) + "\n"
    self.write(name, lambda file: file.write(text.encode()))

  def write(self, name: str, write: Callable[[BinaryIO], Any]) -> None:
    """Writes the whole file `name`, or leaves the old one as it is.

    Args:
      name: relative to the directory; its folders are created.
      write: writes the content to the open file that it receives.

    Raises:
      OutputError: if it cannot be written.
    """
    target = self.path / name
    temporary = target.with_name(f".{target.name}.tmp")
    with write_errors(target):
      try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with open(temporary, "wb") as file:
          write(file)
          file.flush()
          os.fsync(file.fileno())
        os.replace(temporary, target)
      finally:
        with contextlib.suppress(OSError):
          temporary.unlink()

  def is_finished(self) -> bool:
    """Whether the run in the directory is finished."""
    try:
      text = (self.path / "summary.json").read_text(encoding="utf-8")
      return json.loads(text)["status"] == "finished"
    except (OSError, ValueError, KeyError, TypeError):
      return False

  def read_settings(self) -> dict[str, Any]:
    """The `config.json` of the run in the directory.

    Raises:
      OutputError: if it cannot be read.
    """
    path = self.path / _SETTINGS
    try:
      content = json.loads(path.read_text(encoding="utf-8"))
      if config.is_record(content):
        return content
    except (OSError, ValueError, RecursionError):
      pass
    raise errors.OutputError(
      f"{path} cannot be read, so this run cannot be resumed; {_ADVICE}"
    )


def _lock(path: pathlib.Path) -> BinaryIO:
  """Locks a directory until the returned file is closed."""
  file = open(path / _LOCK, "ab")  # noqa: SIM115 (open as long as the run lasts)
  try:
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
  except BlockingIOError as error:
    file.close()
    raise errors.OutputError(
      f"--output={path} is in use by another process; wait for it, stop it, or choose "
      "another --output."
    ) from error
  return file


@contextlib.contextmanager
def write_errors(path: pathlib.Path) -> Iterator[None]:
  """Raises an `OutputError` that names `path` for each OSError in the block."""
  try:
    yield
  except OSError as error:
    is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    reason = "the disk is full" if is_full else error.strerror
    raise errors.OutputError(
      f"{path} could not be written ({reason}); what was written before it is intact."
    ) from error


def finite(value: Any) -> Any:
  """Replaces the floats that JSON lacks by null."""
  if isinstance(value, float) and not math.isfinite(value):
    return None
  if isinstance(value, Mapping):
    return {key: finite(item) for key, item in value.items()}
  if isinstance(value, (list, tuple)):
    return [finite(item) for item in value]
  return value
