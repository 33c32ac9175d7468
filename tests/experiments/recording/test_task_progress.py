"""What a bar over many tasks says of the time left."""

import io

import pytest

from explorax.experiments.recording import console, task_progress


class Clock:
  """Seconds that a test sets."""

  now = 100.0

  def __call__(self) -> float:
    return self.now


@pytest.fixture
def clock():
  return Clock()


def begin(clock, weights, workers=1):
  stream = io.StringIO()
  return task_progress.Progress(
    console.Console(stream), weights, workers, clock
  ), stream


def test_what_every_task_needs_to_begin_counts_once_for_each(clock):
  """20 s before its share grows and 0.1 s for each unit: 20 s, of 30 s, are no pace."""
  shown, _ = begin(clock, [100, 100, 1000])
  for index in range(2):
    clock.now += 20
    for share in (0.1, 0.5, 0.9):
      shown.update({index: share})
      clock.now += 4
    clock.now -= 3
    shown.finish(index)
  # It is seen at 0.1 of a task for the first time.
  assert shown.left() == pytest.approx(20 + 100 / 0.9 * 0.9, abs=2)


def test_a_short_task_says_nothing_of_long_ones(clock):
  shown, _ = begin(clock, [1, 1000], workers=2)
  clock.now += 20
  shown.finish(0)
  assert shown.left() is None  # 20 s for a thousandth would mean hours.
  clock.now += 20
  shown.update({1: 0.01})
  clock.now += 9
  shown.update({1: 0.02})
  assert shown.left() is None  # Too little was seen.
  clock.now += 9
  shown.update({1: 0.03})
  assert shown.left() == pytest.approx(900 * 0.97, rel=0.01)


def test_tasks_side_by_side_end_together(clock):
  shown, stream = begin(clock, [10] * 8, workers=2)
  for first in (0, 2):
    for share in (0.01, 0.5):
      shown.update({first: share, first + 1: share})
      clock.now += 10
    shown.finish(first)
    shown.finish(first + 1)
  assert shown.left() == pytest.approx(40, rel=0.05)
  assert stream.getvalue().splitlines()[-1].endswith("44% | 3 of 8 tasks | 0:41 left")


def test_the_longest_of_the_rest_is_waited_for(clock):
  shown, _ = begin(clock, [10, 10, 100], workers=2)
  for index in (0, 1):
    shown.update({index: 0.001})
  clock.now += 10
  shown.finish(0)
  shown.finish(1)
  assert shown.left() == pytest.approx(100, rel=0.01)


def test_a_task_under_way_goes_on_between_two_looks(clock):
  shown, _ = begin(clock, [10])
  shown.update({0: 0.25})
  clock.now += 10
  shown.update({0: 0.5})
  assert shown.left() == pytest.approx(20)
  clock.now += 15
  assert shown.left() == pytest.approx(5)


def test_one_look_at_a_task_says_nothing_of_its_pace(clock):
  shown, _ = begin(clock, [10])
  shown.update({0: 0.5})  # It may have begun in an earlier call.
  clock.now += 30
  assert shown.left() is None


def test_a_task_that_is_tried_again_begins_anew(clock):
  shown, _ = begin(clock, [10, 10])
  shown.update({0: 0.1})
  clock.now += 40
  shown.update({0: 0.9})
  clock.now += 5
  shown.update({0: 0.1})
  assert shown.left() == pytest.approx(45 + 5 + 50, rel=0.06)


def test_tasks_that_tell_nothing_take_as_long_as_they_weigh(clock):
  shown, _ = begin(clock, [10, 10, 40])
  assert shown.left() is None
  clock.now += 15
  shown.finish(0)
  assert shown.left() == pytest.approx(15 + 60)
  clock.now += 15
  shown.finish(1)
  assert shown.left() == pytest.approx(60)
