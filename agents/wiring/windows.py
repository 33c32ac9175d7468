"""When a window of rows is complete and how it is padded, for all backends."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from explorax.agents import types


def start_rows(spec: types.ReplaySpec, num_transitions: int) -> Iterator[int]:
  """The first rows of the windows of an episode with T transitions.

  Windows start every `period` rows until each transition after the first burn-in is
  trained on in at least one of them: the start s > 0 is needed if the window before it,
  whose trained rows end at s − period + burn_in + length, leaves some out.
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
  """The number of zero rows after the last row that complete the last window."""
  last_start = max(start_rows(spec, num_transitions), default=0)
  return max(0, last_start + spec.window_rows - (num_transitions + 1))


def initial_priority(
  spec: types.ReplaySpec, td_error: Any, mask: Any, starts_episode: Any
) -> Any:
  """η max_t |δ_t| + (1 − η) mean_t |δ_t| of new windows, over the trained transitions.

  Like `losses.sequence_priority`, which the learner uses, but with the actor's TD
  errors, as in Ape-X and R2D2 (Horgan et al., 2018; Kapturowski et al., 2019).

  Args:
    spec: with a `priority_eta`.
    td_error: float `[..., R]`, where entry t is |δ| of the transition into row t;
      numpy's or jax's.
    mask: float `[..., R]`, 1 where a transition starts at the row.
    starts_episode: bool `[...]`, whether the first row is the first of an episode.

  Returns:
    `[...]`, before the exponent.
  """
  eta = spec.priority_eta
  assert eta is not None
  source = np.broadcast_to(np.arange(spec.window_rows - 1), mask[..., 1:].shape)
  after_burn_in = (source >= spec.burn_in) | starts_episode[..., None]
  trained = mask[..., :-1] * (after_burn_in & (source < spec.burn_in + spec.length))
  size = abs(td_error[..., 1:]) * trained
  mean = size.sum(-1) / trained.sum(-1).clip(1)
  return eta * size.max(-1) + (1 - eta) * mean
