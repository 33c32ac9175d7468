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
  announced = []
  with signals.stop_on_signals(announced.append) as stop:
    assert not stop() and stop.exit_code == 0
    send(signal.SIGTERM)
    assert stop() and stop.exit_code == 143
    assert announced == [signal.SIGTERM]
    with pytest.raises(KeyboardInterrupt):
      send()
  assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
  with signals.stop_on_signals(announced.append) as stop:
    assert not stop()


def test_a_signal_is_a_request_of_all_open_blocks():
  with (
    signals.stop_on_signals(lambda number: None) as outer,
    signals.stop_on_signals(lambda number: None) as inner,
  ):
    send()
    assert outer() and inner.exit_code == 130
    with signals.stop_on_signals(lambda number: None) as later:
      assert later()


def test_a_handler_of_the_caller_is_left_alone():
  received = []
  signal.signal(signal.SIGINT, lambda number, frame: received.append(number))
  with signals.stop_on_signals(lambda number: None) as stop:
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
with signals.stop_on_signals(lambda number: print("asked", flush=True)) as stop:
  send()
"""


@pytest.mark.parametrize(
  ("body", "code", "printed"),
  [
    ("send(); time.sleep(60)", 130, []),
    (IN_BLOCK, 0, ["asked", "after"]),
    (IN_BLOCK + "  send(); time.sleep(60)", -signal.SIGINT, ["asked"]),
    (IN_BLOCK + "send(); time.sleep(60)", 130, ["asked"]),
  ],
)
def test_a_program_ends_at_once_without_a_traceback(body, code, printed):
  done = subprocess.run(
    [sys.executable, "-P", "-c", PROGRAM.replace("BODY", body)],
    capture_output=True,
    text=True,
    timeout=120,
  )
  assert done.returncode == code  # That of a signal is 130 in a shell.
  assert done.stdout.splitlines() == printed and not done.stderr
