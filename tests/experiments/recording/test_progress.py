import io
import os
import shutil

import pytest

from explorax.experiments.recording import console, progress
from explorax.experiments.recording import returns as returns_lib

pytestmark = pytest.mark.ops


class Terminal(io.StringIO):
  def isatty(self) -> bool:
    return True


@pytest.fixture
def report(make_episode):
  """Runs episodes of given seconds; returns all that was written."""

  def run(stream: io.StringIO, seconds, num_episodes=None, num_steps=None) -> str:
    now = 0.0
    shown = progress.Progress(
      console.Console(stream),
      num_episodes=num_episodes,
      num_steps=num_steps,
      clock=lambda: now,
    )
    returns = returns_lib.Returns()
    for number, duration in enumerate(seconds, start=1):
      now += duration
      episode = make_episode(number)
      returns.add(episode)
      shown.update(episode, returns)
    shown.close()
    return stream.getvalue()

  return run


def test_a_terminal_gets_one_live_line(report):
  text = report(Terminal(), [1.0] * 4, num_episodes=8)
  lines = text.split("\r")
  assert lines[0] == "" and text.count("\n") == 1 and text.endswith("\n")
  assert lines[-1] == (
    " 50% | episode 4/8 | step 40 | 10 steps/s | return 4 | mean 2.5 | 0:04 left\n"
  )


def test_a_shorter_line_wipes_out_a_longer_one(report, monkeypatch):
  text = report(Terminal(), [1.0, 0.5, 1e-9, 1.0], num_steps=40)
  first, second = text.split("\r")[1:3]
  assert len(second) >= len(first.rstrip("\n"))


def test_a_live_line_fits_the_terminal(report, monkeypatch):
  size = os.terminal_size((30, 20))
  monkeypatch.setattr(shutil, "get_terminal_size", lambda *_, **__: size)
  text = report(Terminal(), [1.0] * 4, num_episodes=8)
  assert {len(line.rstrip("\n")) for line in text.split("\r")[1:]} == {29}


def test_a_live_line_is_drawn_ten_times_a_second_at_most(report):
  text = report(Terminal(), [0.01] * 100, num_episodes=1000)
  assert 5 <= text.count("\r") <= 11


def test_a_pipe_gets_plain_lines_now_and_then(report):
  lines = report(io.StringIO(), [1.0] * 35).splitlines()
  assert len(lines) == 3  # Every ten seconds.
  assert lines[0] == "episode 10 | step 100 | 10 steps/s | return 10 | mean 5.5"
  lines = report(io.StringIO(), [2.0] * 20, num_episodes=20).splitlines()
  assert len(lines) == 10 and lines[-1].startswith("100% | episode 20/20")
  assert report(io.StringIO(), [0.001] * 100, num_episodes=100) == ""


def test_whichever_end_comes_first_counts(report):
  text = report(Terminal(), [1.0] * 4, num_episodes=100, num_steps=80)
  assert text.split("\r")[-1].startswith(" 50% | episode 4/100 | step 40/80")


def test_the_first_episodes_compilation_does_not_slow_the_estimate(report):
  text = report(Terminal(), [60.0, 1.0, 1.0], num_episodes=13)
  assert "| 10 steps/s |" in text and text.rstrip().endswith("0:10 left")


def test_what_an_exploring_agent_found_is_shown(make_episode):
  stream = Terminal()
  shown = progress.Progress(console.Console(stream), num_episodes=1, num_steps=None)
  found = {"intrinsic_return": 12.3456, "coverage": 0.25, "loss": 1.0}
  episode = make_episode(1)._replace(metrics=found)
  returns = returns_lib.Returns()
  returns.add(episode)
  shown.update(episode, returns)
  shown.close()
  assert "| mean 1 | intrinsic 12.3 | coverage 0" in stream.getvalue()


def test_evaluations_are_shown_and_slow_nothing_down(make_episode, make_evaluation):
  now, stream = 0.0, io.StringIO()
  shown = progress.Progress(
    console.Console(stream), num_episodes=4, num_steps=None, clock=lambda: now
  )
  returns = returns_lib.Returns()
  for number in (1, 2, 3):
    now += 1.0
    returns.add(make_episode(number))
    shown.update(make_episode(number), returns)
    evaluation = make_evaluation(10 * number, [4.0, 5.0], seconds=20.0)
    now += evaluation.seconds
    shown.evaluated(evaluation)
  line = stream.getvalue().splitlines()[-1]
  assert line == (
    " 75% | episode 3/4 | step 30 | 10 steps/s | return 3 | mean 2 | 0:01 left | "
    "evaluation 4.5"
  )


def test_a_reader_that_has_gone_does_not_end_the_run():
  reading, writing = os.pipe()
  with os.fdopen(writing, "w") as stream:
    os.close(reading)
    quiet = console.Console(stream)
    for _ in range(3):
      quiet.line("nobody reads this")
    stream.write("and Python's own flush at the end does not fail")
