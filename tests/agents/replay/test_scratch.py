"""Temporary folders of processes that live, and of those that were killed."""

import os
import pathlib
import subprocess
import sys

import pytest

from explorax.agents.replay import scratch

_KILLED = """
import os, signal, sys
from explorax.agents.replay import scratch
with scratch.folder(sys.argv[1]) as folder:
  open(folder + "/file", "w").close()
  print(folder, flush=True)
  os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_process_has_left_is_removed(tmp_path):
  command = [sys.executable, "-c", _KILLED, str(tmp_path)]
  done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
  left = pathlib.Path(done.stdout.strip())
  assert (left / "file").exists()
  with scratch.folder(str(tmp_path)) as first:
    assert not left.exists()
    with scratch.folder(str(tmp_path)) as second:
      assert os.path.isdir(first) and os.path.isdir(second)
    assert os.listdir(left.parent) == [os.path.basename(first)]
  assert not os.listdir(left.parent)
  assert left.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("make", [lambda p: p.mkdir(mode=0o755), lambda p: p.touch()])
def test_a_folder_that_others_can_enter_is_refused(tmp_path, make):
  make(tmp_path / f"explorax_{os.getuid()}")
  with pytest.raises(
    PermissionError, match="accessible to other users or not a folder"
  ):
    scratch.folder(str(tmp_path)).__enter__()
