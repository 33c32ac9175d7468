"""Ctrl-C and SIGTERM, really sent to this process."""

import os
import signal
import subprocess
import sys

import pytest

from explorax.experiments import signals


@pytest.fixture(autouse=True)
def _ctrl_c():
  """SIGINT as in a terminal; what a shell has put into the background ignores it."""
  before = signal.signal(signal.SIGINT, signal.default_int_handler)
  yield
  signal.signal(signal.SIGINT, before)


def send(number=signal.SIGINT):
  os.kill(os.getpid(), number)


def test_the_first_signal_is_a_request_and_the_second_has_its_usual_effect():
  with signals.stop_on_signals() as stop:
    assert not stop() and stop.exit_code == 0
    with signals.stop_on_signals() as inner:
      send(signal.SIGTERM)
      assert stop() and stop.exit_code == inner.exit_code == 143
    with pytest.raises(KeyboardInterrupt):
      send()
  assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
  with signals.stop_on_signals() as stop:
    assert not stop()


def test_a_handler_of_the_caller_is_left_alone():
  received = []
  signal.signal(signal.SIGINT, lambda number, frame: received.append(number))
  with signals.stop_on_signals() as stop:
    send()
    assert received == [signal.SIGINT] and not stop()


PROGRAM = """
import os, signal, sys

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.argv = ["-m"]  # As in `python -m explorax.experiments.run`, before its imports.
sys.orig_argv = ["python", "-m", "explorax.experiments.run"]
from explorax.experiments import signals

def send():
  os.kill(os.getpid(), signal.SIGINT)
"""
IN_BLOCK = """
with signals.stop_on_signals():
  send()
  print("once", flush=True)
  send()
"""


@pytest.mark.parametrize(
  ("body", "code", "printed"),
  [
    ("send()", -signal.SIGINT, ""),
    (IN_BLOCK, -signal.SIGINT, "once\n"),  # In a shell it is 130.
  ],
)
def test_a_program_ends_at_once_without_a_traceback(body, code, printed):
  command = [sys.executable, "-P", "-c", PROGRAM + body]
  done = subprocess.run(command, capture_output=True, text=True, check=False)
  assert (done.returncode, done.stdout) == (code, printed)
  assert "Traceback" not in done.stderr


def test_other_programs_keep_their_handler(tmp_path):
  """A package that imports explorax while Python looks for its `__main__`."""
  (tmp_path / "own").mkdir()
  (tmp_path / "own/__init__.py").write_text("import explorax")
  program = "import signal\nassert signal.getsignal(2) is signal.default_int_handler"
  (tmp_path / "own/__main__.py").write_text(program)
  subprocess.run([sys.executable, "-m", "own"], cwd=tmp_path, check=True)
