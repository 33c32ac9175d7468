"""The directory of a run; `docs/guides/runs.md` lists its files.

One process at a time has the directory of a run.
"""

import contextlib
import fcntl
import json
import os
import pathlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, BinaryIO

from explorax.experiments import errors

_SETTINGS, _LOCK = "config.json", ".lock"
_OF_A_RUN = ("metrics.csv", "summary.json", "checkpoints", "bsuite")
_ADVICE = "choose another --output, or delete the directory if you do not need the run."


class RunDirectory:
  """The directory of one run, or of figures.

  Attributes:
    path: its absolute path, since the environment may change the current directory.
  """

  def __init__(self, path: str | os.PathLike[str]):
    self.path = pathlib.Path(path).expanduser().absolute()
    self._lock: BinaryIO | None = None

  @classmethod
  def create(cls, path: str | os.PathLike[str]) -> "RunDirectory":
    """Creates the directory; no other process can do so until `unlock` or our end.

    Raises:
      OutputError: if it cannot be created, is in use, or holds the files of a run
        without its config.json.
    """
    if not os.fspath(path):
      raise errors.OutputError("--output is empty; give it a directory.")
    try:
      directory = cls(path)
      directory.path.mkdir(parents=True, exist_ok=True)
      directory._lock = _lock(directory.path / _LOCK)
    except (OSError, RuntimeError) as error:  # RuntimeError: the home of no user.
      reason: Any = error
      if isinstance(error, BlockingIOError):
        reason = "it is in use by another process"
      raise errors.OutputError(
        f"--output={path} cannot be written to ({reason}); choose another --output."
      ) from error
    present = [name for name in _OF_A_RUN if (directory.path / name).exists()]
    if present and not directory.holds_run:
      directory.unlock()
      raise errors.OutputError(
        f"--output={path} already holds a run ({present[0]}); {_ADVICE}"
      )
    return directory

  @property
  def holds_run(self) -> bool:
    """Whether it holds a run, which may be resumed."""
    return (self.path / _SETTINGS).exists()

  def unlock(self) -> None:
    """Releases the lock; a directory that holds nothing else is removed."""
    if self._lock is None:
      return
    with contextlib.suppress(OSError):
      if [path.name for path in self.path.iterdir()] == [_LOCK]:
        (self.path / _LOCK).unlink()
        self.path.rmdir()
    self._lock.close()

  def write_json(self, name: str, content: Mapping[str, Any]) -> None:
    """Writes a JSON file; what JSON lacks, NaN and infinities, becomes null."""
    finite = json.loads(json.dumps(content), parse_constant=lambda constant: None)
    text = json.dumps(finite, indent=2) + "\n"
    self.write(name, lambda file: file.write(text.encode()))

  def write(self, name: str, write: Callable[[BinaryIO], Any]) -> None:
    """As `write_whole`, by the file's name in the directory."""
    write_whole(self.path / name, write)

  def is_finished(self) -> bool:
    """Whether the run in the directory is finished."""
    try:
      text = (self.path / "summary.json").read_text(encoding="utf-8")
      return json.loads(text)["status"] == "finished"
    except (OSError, ValueError, KeyError, TypeError):
      return False

  def read_settings(self) -> dict[str, Any]:
    """The `config.json` of the run in the directory; an OutputError without one."""
    path = self.path / _SETTINGS
    with contextlib.suppress(OSError, ValueError, RecursionError):
      return dict(json.loads(path.read_text(encoding="utf-8")))
    raise errors.OutputError(
      f"{path} cannot be read, so this run cannot be resumed; {_ADVICE}"
    )


def _lock(path: pathlib.Path) -> BinaryIO:
  """Locks a file until it is closed."""
  with contextlib.ExitStack() as stack:
    file = stack.enter_context(open(path, "ab"))
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    stack.pop_all()
  return file


def write_whole(path: pathlib.Path, write: Callable[[BinaryIO], Any]) -> None:
  """Writes a file and its folders, or leaves the old file as it is.

  `write` gets the open file; if it cannot be written, an OutputError names `path`.
  """
  temporary = path.with_name(f".{path.name}.tmp")
  with write_errors(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
      with open(temporary, "wb") as file:
        write(file)
        file.flush()
        os.fsync(file.fileno())
      os.replace(temporary, path)
    finally:
      temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def write_errors(path: pathlib.Path) -> Iterator[None]:
  """Raises an `OutputError` that names `path` for each OSError in the block."""
  try:
    yield
  except OSError as error:
    raise errors.OutputError(
      f"{path} could not be written ({error.strerror}); what was written before it is "
      "intact."
    ) from error
