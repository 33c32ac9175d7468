"""Ctrl-C and SIGTERM, really sent to this process."""

import os
import signal

import pytest

from explorax.experiments import signals

pytestmark = pytest.mark.usefixtures("ctrl_c")

ORDINARY = signal.default_int_handler


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
  assert signal.getsignal(signal.SIGINT) is ORDINARY


def test_an_interrupt_is_a_request_unless_it_is_handled():
  with signals.stop_on_interrupt() as stop:
    send()
    assert stop() and stop.exit_code == 130
    with pytest.raises(KeyboardInterrupt):
      send()
  assert signal.getsignal(signal.SIGINT) is ORDINARY
  with (
    signals.stop_on_signals(lambda number: None) as outer,
    signals.stop_on_interrupt() as inner,
  ):
    send()
    assert outer() and not inner()


def test_deferred_signals_are_handled_at_the_end():
  done = []
  with pytest.raises(KeyboardInterrupt), signals.deferred():
    with signals.deferred():
      send()
      done.append("inner")
    done.append("outer")
  assert done == ["inner", "outer"]
  assert signal.getsignal(signal.SIGINT) is ORDINARY
  with signals.stop_on_signals(lambda number: None) as stop:
    with signals.deferred():
      send(signal.SIGTERM)
      assert not stop()
    assert stop.exit_code == 143


def test_an_error_in_a_deferring_block_is_the_one_that_is_raised():
  with pytest.raises(ValueError, match="first"), signals.deferred():
    send()
    raise ValueError("first")
  assert signal.getsignal(signal.SIGINT) is ORDINARY
