import io
import os
import re
import sys

import pytest

from explorax.experiments.recording import console, progress
from explorax.experiments.recording import returns as returns_lib
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
  """Runs episodes of given seconds; returns all that was written."""

  def run(stream: io.StringIO, seconds, num_episodes=None, num_steps=None) -> str:
    shown = progress.RunProgress(
      console.Console(stream),
      num_episodes=num_episodes,
      num_steps=num_steps,
      clock=clock,
    )
    returns = returns_lib.Returns()
    for number, duration in enumerate(seconds, start=1):
      clock.now += duration
      returns.add(make_episode(number))
      shown.update(make_episode(number), returns)
    shown.close()
    return stream.getvalue()

  return run


def drawn(text: str) -> list[str]:
  """What a terminal has been shown, without its control codes."""
  plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
  return [line.strip(" ━╸╺") for line in re.split(r"[\r\n]+", plain) if line.strip()]


def test_a_terminal_gets_one_live_line(report):
  text = report(Terminal(), [1.0] * 4, num_episodes=8)
  assert drawn(text)[-1] == (
    "50% | acting | 0:04 left | episode 4/8 | step 40 | 10 steps/s | return 4 | "
    "mean 2.5"
  )


def test_a_live_line_fits_the_terminal(report, monkeypatch):
  monkeypatch.setenv("COLUMNS", "40")
  assert max(map(len, drawn(report(Terminal(), [1.0] * 4, num_episodes=8)))) <= 40


def test_a_live_line_is_drawn_ten_times_a_second_at_most(report):
  assert 5 <= len(drawn(report(Terminal(), [0.01] * 100, num_episodes=1000))) <= 11


def test_messages_stay_above_the_live_line(make_episode, clock, monkeypatch):
  stream = Terminal()
  monkeypatch.setattr(sys, "stdout", stream)
  terminal = console.Console(stream)
  shown = progress.RunProgress(terminal, num_episodes=9, num_steps=None, clock=clock)
  returns = returns_lib.Returns()
  for number in (1, 2):
    clock.now += 1
    shown.update(make_episode(number), returns)
    terminal.line(f"message [{number}] " + "long " * 40)
    print("printed", number)
  shown.close()
  lines = drawn(stream.getvalue())
  for number in (1, 2):
    assert f"message [{number}] " + "long " * 39 + "long" in lines
    assert f"printed {number}" in lines
  assert sys.stdout is stream


def test_a_pipe_gets_plain_lines_now_and_then(report):
  lines = report(io.StringIO(), [1.0] * 65).splitlines()
  assert len(lines) == 3  # Every twenty seconds.
  assert (
    lines[0] == "acting | episode 20 | step 200 | 10 steps/s | return 20 | mean 10.5"
  )
  lines = report(io.StringIO(), [2.0] * 20, num_episodes=20).splitlines()
  assert len(lines) == 10 and lines[-1].startswith(
    "100% | acting | 0:00 left | episode 20/20"
  )
  assert report(io.StringIO(), [0.001] * 100, num_episodes=100) == ""


def test_a_resumed_run_counts_the_episodes_before(clock):
  stream = io.StringIO()
  shown = progress.RunProgress(
    console.Console(stream),
    num_episodes=10,
    num_steps=None,
    episodes_before=4,
    clock=clock,
  )
  clock.now += 25
  shown.doing(core.Activity("acting", env_steps=40))
  assert stream.getvalue().startswith(" 40% | acting | episode 4/10 | step 40")


def test_what_the_program_does_is_shown_within_an_episode_too(clock):
  stream = Terminal()
  terminal = console.Console(stream)
  shown = progress.RunProgress(terminal, num_episodes=None, num_steps=1000, clock=clock)
  shown.doing(core.Activity(core.COMPILING, 0))
  assert drawn(stream.getvalue())[-1] == "compiling | episode 0 | step 0/1,000"
  for step in range(1, 501):
    clock.now += 0.01 if step <= 100 else 0.1
    shown.doing(core.acting(step, step, 100))
  shown.close()
  lines = drawn(stream.getvalue())
  filling = [line for line in lines if "filling" in line]
  pattern = r"filling replay \((\d+) of 100 steps\) \| episode 0 \| step \1/1,000"
  assert len(filling) >= 8 and all(re.search(pattern, line) for line in filling)
  assert not any(" left" in line for line in filling)
  # The speed of filling is no part of the estimate, which waits for two seconds.
  acting = [line for line in lines if "acting" in line]
  assert " left" not in acting[5]
  assert (
    acting[-1] == "50% | acting | 0:50 left | episode 0 | step 500/1,000 | 10 steps/s"
  )


def test_whichever_end_comes_first_counts(report):
  text = report(io.StringIO(), [2.0] * 4, num_episodes=100, num_steps=80)
  assert text.splitlines()[-1].startswith(
    " 50% | acting | 0:08 left | episode 4/100 | step 40/80"
  )


def test_the_first_episodes_compilation_does_not_slow_the_estimate(report):
  text = report(io.StringIO(), [60.0, 1.0, 1.0], num_episodes=13)
  assert text.splitlines()[-1].startswith(" 23% | acting | 0:10 left | episode 3/13 | ")


def test_evaluations_are_shown_and_slow_nothing_down(
  make_episode, make_evaluation, clock
):
  stream = io.StringIO()
  shown = progress.RunProgress(
    console.Console(stream), num_episodes=4, num_steps=None, clock=clock
  )
  returns = returns_lib.Returns()
  for number in (1, 2, 3):
    clock.now += 1.0
    returns.add(make_episode(number))
    found = {"intrinsic_return": 12.3456, "coverage": 0.25, "loss": 1.0}
    shown.update(make_episode(number)._replace(metrics=found), returns)
    evaluation = make_evaluation(10 * number, [4.0, 5.0], seconds=20.0)
    clock.now += evaluation.seconds
    shown.evaluated(evaluation)
  assert stream.getvalue().splitlines()[-1] == (
    " 75% | acting | 0:01 left | episode 3/4 | step 30 | 10 steps/s | return 3 | "
    "mean 2 | evaluation 4.5 | intrinsic 12.3 | coverage 0.25"
  )


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
  shown.update(dict.fromkeys(weights, 0.0))
  clock.now += 20
  shown.update({0: 0.25, 1: 0.2})
  assert shown.left() is None  # Too little to tell.
  clock.now += 20
  shown.finish(0)
  shown.finish(1)
  shown.update({2: 0.5, 0: 0.1})  # What is finished stays so.
  assert shown.left() == pytest.approx(40 * 60 / 40)
  assert stream.getvalue().splitlines()[-1] == " 12% | 1 of 4 tasks | 4:53 left"
  shown.update({2: 0.0})  # It is tried again.
  assert shown.left() == pytest.approx(40 * 80 / 20)


def test_what_earlier_processes_did_says_nothing_of_the_pace(clock):
  weights = dict.fromkeys(range(10), 1.0)
  shown = progress.TaskProgress(console.Console(io.StringIO()), weights, clock)
  clock.now += 5
  shown.update(dict.fromkeys(weights, 0.9))
  assert shown.left() is None
  clock.now += 5
  shown.update(dict.fromkeys(weights, 0.96))
  assert shown.left() == pytest.approx(10 * 0.04 / 0.06)
