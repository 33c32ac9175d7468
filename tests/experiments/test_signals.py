"""Ctrl-C and SIGTERM, really sent to this process."""

import os
import signal

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
  with (
    signals.stop_on_signals(lambda number: None) as outer,
    signals.stop_on_signals(lambda number: None) as inner,
  ):
    send()
    assert outer() and not inner()
