"""A status line on a terminal, and plain lines in a pipe."""

import io
import os
import re

import pytest

from explorax.experiments import config as config_lib
from explorax.experiments.recording import console, progress
from explorax.experiments.runners import common


class Terminal(io.StringIO):
  def isatty(self) -> bool:
    return True


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch):
  monkeypatch.setenv("COLUMNS", "160")
  monkeypatch.setenv("TERM", "xterm")


def drawn(text: str) -> list[str]:
  """The lines without control codes."""
  plain = text.replace("\x1b[K", "")
  return [line for line in re.split(r"[\r\n]+", plain) if line.strip()]


@pytest.fixture
def report(make_episode):
  """Runs so many of 20 episodes, one in two seconds; returns what was written."""

  def run(stream: io.StringIO, episodes: int) -> list[str]:
    now = 100.0
    config = config_lib.RunConfig(agent="dqn", env="jax:catch", episodes=20)
    shown = progress.Progress(console.Console(stream), config, lambda: now)
    shown.on_activity(common.COMPILING + common.ACTING, 0)
    for number in range(1, episodes + 1):
      now += 2.0
      shown.on_episodes([make_episode(number)])
      shown.on_activity(common.ACTING, 10 * number)
    return drawn(stream.getvalue())

  return run


def test_a_terminal_has_one_line_with_the_time_left(report):
  line = report(stream := Terminal(), 10)[-1]
  parts = (" 50%", "episode 10/20", "step 100", "100 steps/s", "return 10", "mean 5.5")
  assert all(part in line for part in parts)
  assert line.endswith("0:20 left") and "\n" not in stream.getvalue()


def test_a_pipe_gets_a_line_every_ten_seconds_and_what_is_compiled_at_once(report):
  first, *lines = report(io.StringIO(), 20)
  assert first.startswith("  0% | compiling: acting and learning | ")
  assert len(lines) == 4 and lines[-1].startswith("100%")
  assert lines[1].startswith(" 50%") and "0:20 left" in lines[1]


def test_other_lines_are_above_the_status_line():
  terminal = console.Console(stream := Terminal())
  terminal.status("working " * 50)
  terminal.line("a message")
  (cut,) = {text for text in drawn(stream.getvalue()) if text.startswith("working")}
  assert len(cut) == 159  # Of 160 columns.
  assert stream.getvalue().endswith(f"a message\n{cut}")


def test_a_closed_pipe_does_not_end_the_run():
  reading, writing = os.pipe()
  with os.fdopen(writing, "w") as stream:
    os.close(reading)
    quiet = console.Console(stream)
    for _ in range(3):
      quiet.line("without a reader")
    stream.write("and Python's own flush at the end does not fail")
