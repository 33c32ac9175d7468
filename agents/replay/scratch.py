"""Temporary folders that killed processes do not leave behind for long."""

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator


@contextlib.contextmanager
def folder(parent: str | None = None) -> Iterator[str]:
  """A new folder that no other user can enter, removed after the block.

  Folders left there by killed processes are removed too: nothing holds their locks.

  Args:
    parent: the folder to use; None: the system's temporary one.

  Raises:
    PermissionError: if another user could enter it.
  """
  home = f"{parent or tempfile.gettempdir()}/explorax_{os.getuid()}"
  with contextlib.suppress(FileExistsError):
    os.mkdir(home, 0o700)
  status = os.lstat(home)
  if (status.st_uid, stat.S_IFMT(status.st_mode)) != (os.getuid(), stat.S_IFDIR) or (
    status.st_mode & 0o077
  ):
    raise PermissionError(
      f"{home}, the folder for temporary files, is accessible to other users or not a "
      "folder; remove it."
    )
  with contextlib.ExitStack() as stack:
    with _locked(home):  # No other process makes one in the meantime.
      for name in os.listdir(home):
        with contextlib.suppress(OSError), _locked(f"{home}/{name}", fcntl.LOCK_NB):
          shutil.rmtree(f"{home}/{name}", ignore_errors=True)
      new = tempfile.mkdtemp(dir=home)
      stack.callback(shutil.rmtree, new, ignore_errors=True)
      stack.enter_context(_locked(new))
    yield new


@contextlib.contextmanager
def _locked(path: str, flags: int = 0) -> Iterator[None]:
  """Holds a folder's lock; it ends with the process at the latest."""
  descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
  try:
    fcntl.flock(descriptor, fcntl.LOCK_EX | flags)
    yield
  finally:
    os.close(descriptor)
