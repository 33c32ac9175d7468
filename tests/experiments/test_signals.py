"""Ctrl-C and SIGTERM, really sent to this process."""

import os
import signal
import subprocess
import sys

import pytest

from explorax.experiments import signals

pytestmark = pytest.mark.usefixtures("ctrl_c")


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
import os, signal, time
from explorax.experiments import signals

def send():
  os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
signals.end_at_once()
BODY
print("after")
"""
IN_BLOCK = """
with signals.stop_on_signals():
  send()
"""


@pytest.mark.parametrize(
  ("body", "code", "printed"),
  [
    ("send()", 130, ""),
    (IN_BLOCK, 0, "after\n"),
    (IN_BLOCK + "  send()", -signal.SIGINT, ""),  # In a shell it is 130.
    (IN_BLOCK + "send()", 130, ""),
  ],
)
def test_a_program_ends_at_once_without_a_traceback(body, code, printed):
  done = subprocess.run(
    [sys.executable, "-P", "-c", PROGRAM.replace("BODY", body)],
    capture_output=True,
    text=True,
    timeout=120,
  )
  assert (done.returncode, done.stdout) == (code, printed)
  assert ("SIGINT: stopping" in done.stderr) == ("with" in body)
  assert "Traceback" not in done.stderr
