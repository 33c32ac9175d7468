"""The bar on a terminal and the lines in a pipe."""

import io
import os
import re

import pytest

from explorax.experiments.recording import console, progress
from explorax.experiments.runners import core

pytestmark = pytest.mark.ops


class Terminal(io.StringIO):
  def isatty(self) -> bool:
    return True


class Clock:
  """Seconds that a test sets."""

  now = 100.0

  def __call__(self) -> float:
    return self.now


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch):
  monkeypatch.setenv("COLUMNS", "160")
  monkeypatch.setenv("TERM", "xterm")


@pytest.fixture
def clock():
  return Clock()


@pytest.fixture
def report(make_episode, clock):
  """Runs episodes of given seconds; returns the lines that were written."""

  def run(stream: io.StringIO, seconds, num_steps=None, **kwargs) -> list[str]:
    shown = progress.RunProgress(
      console.Console(stream), num_steps=num_steps, clock=clock, **kwargs
    )
    for number, duration in enumerate(seconds, start=1):
      clock.now += duration
      shown.on_episode(make_episode(number))
    shown.close()
    return drawn(stream.getvalue())

  return run


def drawn(text: str) -> list[str]:
  """The lines without control codes."""
  plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
  return [line for line in re.split(r"[\r\n]+", plain) if line.strip()]


def test_a_terminal_shows_a_bar_with_the_time_left(report):
  line = report(Terminal(), [1.0] * 4, num_episodes=8)[-1]
  assert all(part in line for part in ("episode 4/8", "return 4", "mean 2.5", "50%"))
  assert "━" in line and line.rstrip().endswith("00:04")


def test_a_bar_is_drawn_ten_times_a_second_at_most(report):
  assert 5 <= len(report(Terminal(), [0.01] * 100, num_episodes=1000)) <= 13


def test_messages_stay_above_the_bar(make_episode, clock):
  stream = Terminal()
  terminal = console.Console(stream)
  shown = progress.RunProgress(terminal, num_episodes=9, num_steps=None, clock=clock)
  clock.now += 1
  shown.on_episode(make_episode(1))
  terminal.line("message [1] " + "long " * 40)
  shown.close()
  assert "message [1] " + "long " * 40 in drawn(stream.getvalue())


def test_a_pipe_gets_a_line_every_ten_seconds(report):
  lines = report(io.StringIO(), [2.0] * 20, num_episodes=20)
  assert len(lines) == 4 and lines[-1].startswith("100%")
  assert lines[1].startswith(" 50%") and "0:20 left" in lines[1]
  assert report(io.StringIO(), [0.001] * 100, num_episodes=100) == []


def test_the_earlier_of_two_limits_counts(report):
  line = report(io.StringIO(), [5.0] * 4, num_episodes=100, num_steps=80)[-1]
  assert line.startswith(" 50%") and "step 40/80" in line


def test_episodes_of_several_seeds_are_counted_for_each(report):
  line = report(io.StringIO(), [5.0] * 4, num_episodes=4, num_seeds=2)[-1]
  assert line.startswith(" 50%") and "episode 2/4" in line


def test_a_resumed_run_counts_the_episodes_before(report):
  line = report(io.StringIO(), [25.0], num_episodes=10, episodes_before=4)[-1]
  assert line.startswith(" 50%") and "episode 5/10" in line


def test_activities_and_evaluations_are_shown(make_episode, make_evaluation, clock):
  stream = io.StringIO()
  shown = progress.RunProgress(
    console.Console(stream), num_episodes=None, num_steps=1000, clock=clock
  )
  clock.now += 30
  shown.on_activity(core.acting(50, 50, 100))
  clock.now += 30
  shown.on_evaluation(make_evaluation(60, [4.0, 5.0]))
  metrics = {"intrinsic_return": 12.3456, "coverage": 0.25, "loss": 1.0}
  shown.on_episode(make_episode(6, metrics=metrics))
  filling, acting = drawn(stream.getvalue())
  assert "(50 of 100 steps)" in filling and "step 50/1,000" in filling
  for part in ("evaluation 4.5", "intrinsic 12.3", "coverage 0.25"):
    assert part in acting
  assert "loss" not in acting


def test_a_reader_that_has_gone_does_not_end_the_run():
  reading, writing = os.pipe()
  with os.fdopen(writing, "w") as stream:
    os.close(reading)
    quiet = console.Console(stream)
    for _ in range(3):
      quiet.line("without a reader")
    stream.write("and Python's own flush at the end does not fail")


def test_tasks_take_as_long_as_they_weigh(clock):
  stream = io.StringIO()
  weights = dict(enumerate([10, 10, 40, 40]))
  shown = progress.TaskProgress(console.Console(stream), weights, clock)
  for share in (0.0, 0.5, 1.0):
    clock.now += 20
    shown.update({0: share, 1: share})
  shown.finish(0)
  clock.now += 20
  shown.update({2: 0.5, 0: 0.1})  # A finished task stays finished.
  line = drawn(stream.getvalue())[-1]
  assert line.startswith(" 40%") and "1 of 4 tasks" in line
