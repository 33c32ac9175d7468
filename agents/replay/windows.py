"""Which windows an episode has, when they are complete, and how they are padded.

Window k begins at row k × period. Arguments are Python's numbers, or arrays of numpy or
JAX, so that the adder, replay on the device and learners share one rule.
"""

from typing import Any

from explorax.agents import types


def num_windows(spec: types.ReplaySpec, num_transitions: Any) -> Any:
  """The number of windows of an episode with T ≥ 1 transitions.

  The first window trains on burn_in + length transitions, and each further one adds
  `period`; there are as many as it takes to train on every transition.
  """
  beyond = num_transitions - spec.burn_in - spec.length
  return 1 + (beyond > 0) * -(-beyond // spec.period)


def num_complete(spec: types.ReplaySpec, num_rows: Any) -> Any:
  """The number of windows that the first rows of an episode complete."""
  last_start = num_rows - spec.window_rows
  return (last_start >= 0) * (last_start // spec.period + 1)


def is_complete(spec: types.ReplaySpec, num_rows: Any) -> Any:
  """Whether the newest of `num_rows` rows of an episode completes a window."""
  last_start = num_rows - spec.window_rows
  return (last_start >= 0) & (last_start % spec.period == 0)


def num_padding_rows(spec: types.ReplaySpec, num_transitions: int) -> int:
  """The number of zero rows after the last row that complete the last window."""
  last_start = (num_windows(spec, num_transitions) - 1) * spec.period
  return max(0, last_start + spec.window_rows - (num_transitions + 1))
