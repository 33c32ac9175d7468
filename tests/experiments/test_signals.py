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


def test_the_first_signal_is_a_request_and_the_second_an_interrupt():
  announced = []
  with signals.stop_on_signals(announced.append) as stop:
    assert not stop() and stop.exit_code == 0
    send(signal.SIGTERM)
    assert stop() and stop.exit_code == 143
    assert announced == [signal.SIGTERM]
    with pytest.raises(KeyboardInterrupt):
      send()
  assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_handler_of_the_caller_is_left_alone():
  received = []
  signal.signal(signal.SIGINT, lambda number, frame: received.append(number))
  with signals.stop_on_signals(lambda number: None) as stop:
    send()
    assert received == [signal.SIGINT] and not stop()


PROGRAM = """
import os, signal, sys, threading
from explorax.experiments import signals

signal.signal(signal.SIGINT, signal.default_int_handler)

def say(text):
  return lambda number: os.write(1, f"{text} {int(number)}\\n".encode())

def send(number):
  os.kill(os.getpid(), number)

def wait():
  threading.Event().wait(60)

def fork():
  if os.fork() == 0:
    try:
      send(signal.SIGINT)
      wait()
    except KeyboardInterrupt:
      os._exit(7)
  return os.waitstatus_to_exitcode(os.wait()[1])

with signals.ending_the_process(say("ended by")):
  BODY
print("after")
"""


@pytest.mark.parametrize(
  ("body", "code", "printed"),
  [
    # Without a run there is nothing to wait for.
    ("send(signal.SIGTERM); wait()", 143, ["ended by 15"]),
    (
      "with signals.stop_on_signals(say('asked by')) as stop:\n"
      "    send(signal.SIGINT); print(stop(), stop.exit_code, flush=True)\n",
      0,
      ["asked by 2", "True 130", "after"],
    ),
    (
      "with signals.stop_on_signals(say('asked by')) as stop:\n"
      "    send(signal.SIGINT); send(signal.SIGINT); wait()",
      130,
      ["asked by 2", "ended by 2"],
    ),
    # The request of the run that is over counts no more.
    (
      "with signals.stop_on_signals(say('asked by')) as stop:\n    pass\n"
      "  send(signal.SIGHUP); wait()",
      129,
      ["ended by 1"],
    ),
    # A run within a pool's task stops both.
    (
      "with signals.stop_on_signals(say('the pool by')) as pool:\n"
      "    with signals.stop_on_signals(say('the run by')) as run:\n"
      "      send(signal.SIGINT); print(run(), pool(), flush=True)\n"
      "    print(pool(), flush=True); send(signal.SIGINT); wait()",
      130,
      ["the run by 2", "True False", "the pool by 2", "True", "ended by 2"],
    ),
    # A timer's signal is none of these, and a fork has its own.
    (
      "with signals.stop_on_signals(say('asked by')) as stop:\n"
      "    with signals.time_limit(60): pass\n"
      "    print(fork(), stop(), flush=True)",
      0,
      ["7 False", "after"],
    ),
  ],
)
def test_a_program_ends_by_signals_without_an_exception(body, code, printed):
  program = PROGRAM.replace("BODY", body)
  done = subprocess.run(
    [sys.executable, "-P", "-c", program], capture_output=True, text=True, timeout=120
  )
  assert (done.returncode, done.stdout.splitlines()) == (code, printed), done.stderr
  assert "Traceback" not in done.stderr


def test_a_program_ends_while_its_main_thread_is_in_c():
  """A matrix product runs no handler of Python."""
  program = PROGRAM.replace(
    "BODY",
    "with signals.stop_on_signals(say('asked by')):\n"
    "    import numpy\n"
    "    big = numpy.ones((3000, 3000))\n"
    "    print('computing', flush=True)\n"
    "    while True: big @ big @ big @ big",
  )
  process = subprocess.Popen(
    [sys.executable, "-P", "-c", program],
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
    text=True,
  )
  with process:
    assert process.stdout.readline() == "computing\n"
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == "asked by 2\n"
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == "ended by 2\n"
  assert process.returncode == 130
