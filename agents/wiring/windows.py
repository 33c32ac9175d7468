"""When a window of rows is complete, and with how much padding: one rule for all."""

from collections.abc import Iterator

from explorax.agents import types


def start_rows(spec: types.ReplaySpec, num_transitions: int) -> Iterator[int]:
  """The first rows of the windows of an episode with T transitions.

  Windows start every `period` rows until each transition after the first burn-in is
  trained on in at least one of them: the start s > 0 is needed while the window
  before it, whose trained rows end at s − period + burn_in + length, leaves some out.
  """
  start = 0
  trained_until = 0
  while trained_until < num_transitions:
    yield start
    trained_until = start + spec.burn_in + spec.length
    start += spec.period


def is_complete(spec: types.ReplaySpec, num_rows: int) -> bool:
  """Whether the newest of `num_rows` rows of an episode completes a window."""
  start = num_rows - spec.window_rows
  return start >= 0 and start % spec.period == 0


def num_padding_rows(spec: types.ReplaySpec, num_transitions: int) -> int:
  """How many zero rows follow the last one, so that the last window is complete."""
  last_start = max(start_rows(spec, num_transitions), default=0)
  return max(0, last_start + spec.window_rows - (num_transitions + 1))
