"""A progress bar on a terminal, and plain lines in a pipe."""

import io
import os
import re

import pytest

from explorax.experiments import config as config_lib
from explorax.experiments.recording import console, progress
from explorax.experiments.runners import common

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


def config(**limits) -> config_lib.RunConfig:
  return config_lib.RunConfig(agent="dqn", env="jax:catch", **limits)


@pytest.fixture
def report(make_episode, clock):
  """Runs episodes of given seconds; returns the lines that were written."""

  def run(stream: io.StringIO, seconds, **limits) -> list[str]:
    shown = progress.Progress(console.Console(stream), config(**limits), clock)
    for number, duration in enumerate(seconds, start=1):
      shown.on_activity(common.Activity(common.ACTING, number - 1))
      clock.now += duration
      shown.on_episode(make_episode(number))
    shown.on_activity(common.Activity(common.ACTING, len(seconds)))
    return drawn(stream.getvalue())

  return run


def drawn(text: str) -> list[str]:
  """The lines without control codes."""
  plain = text.replace("\x1b[K", "")
  return [line for line in re.split(r"[\r\n]+", plain) if line.strip()]


def test_a_terminal_has_one_line_with_the_time_left(report):
  line = report(stream := Terminal(), [1.0] * 4, episodes=8)[-1]
  assert all(part in line for part in ("episode 4/8", "return 4", "mean 2.5", "50%"))
  assert line.endswith("0:04 left") and "\n" not in stream.getvalue()


def test_other_lines_are_above_the_status_line():
  terminal = console.Console(stream := Terminal())
  terminal.status("working " * 50)
  terminal.line("a message")
  (cut,) = {text for text in drawn(stream.getvalue()) if text.startswith("working")}
  assert len(cut) == 159  # Of 160 columns.
  assert stream.getvalue().endswith(f"a message\n{cut}")


def test_a_pipe_gets_a_line_every_ten_seconds(report):
  lines = report(io.StringIO(), [2.0] * 20, episodes=20)
  assert len(lines) == 4 and lines[-1].startswith("100%")
  assert lines[1].startswith(" 50%") and "0:20 left" in lines[1]
  assert report(io.StringIO(), [0.001] * 100, episodes=100) == []


def test_a_closed_pipe_does_not_end_the_run():
  reading, writing = os.pipe()
  with os.fdopen(writing, "w") as stream:
    os.close(reading)
    quiet = console.Console(stream)
    for _ in range(3):
      quiet.line("without a reader")
    stream.write("and Python's own flush at the end does not fail")


def test_a_pipe_is_told_at_once_what_is_compiled(clock):
  shown = progress.Progress(
    console.Console(stream := io.StringIO()), config(steps=100), clock
  )
  for name in ("compiling acting", "filling replay", "compiling learning", "acting"):
    shown.on_activity(common.Activity(name, 25))
  first, second = drawn(stream.getvalue())
  assert first.startswith(" 25% | compiling acting | ")
  assert second.startswith(" 25% | compiling learning | ")
