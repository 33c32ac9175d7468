"""Word of a process whose environment may never come back."""

import time

import pytest

from explorax.experiments.distributed import pulse


def test_it_tells_for_how_long_the_environment_has_been_asked():
  told: list[float] = []
  watch = pulse.Pulse(told.append, timeout=0.04)

  def wait_for(condition):
    until = time.monotonic() + 20
    while not condition() and time.monotonic() < until:
      time.sleep(0.005)
    assert condition()

  wait_for(lambda: len(told) >= 2)
  assert not any(told)
  with pytest.raises(RuntimeError), watch.watched():
    wait_for(lambda: told[-1] > 0.02)
    raise RuntimeError("the environment broke")
  number = len(told)
  # One may have been on its way.
  wait_for(lambda: len(told) >= number + 3)
  assert not any(told[number + 1 :])


def test_one_lost_word_is_not_taken_for_silence():
  for timeout in (1.0, 300.0):
    between = pulse.seconds_between(timeout)
    assert not pulse.is_silent(timeout + 2 * between, timeout)
    assert pulse.is_silent(timeout + 11 * between, timeout)
