"""Which windows an episode has, when they are complete, and how they are padded.

Window k begins at row k × period. Arguments are Python's numbers, or arrays of numpy or
JAX, so that the adder, replay on the device and learners share one rule.
"""

from typing import Any

import numpy as np

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


def trained(spec: types.ReplaySpec, mask: Any, starts_episode: Any) -> Any:
  """Marks the transitions of windows that are in the loss.

  They start at the `length` rows after the burn-in; where a window starts an episode,
  at those of the burn-in too.

  Args:
    spec: of the windows, with R rows.
    mask: float `[..., R]`, 1 where a transition starts at the row.
    starts_episode: bool `[...]`, whether the first row is the first of an episode.

  Returns:
    Float `[..., R − 1]`, 1 for a transition that is trained on.
  """
  source = np.broadcast_to(np.arange(spec.window_rows - 1), mask[..., 1:].shape)
  after_burn_in = (source >= spec.burn_in) | starts_episode[..., None]
  return mask[..., :-1] * (after_burn_in & (source < spec.burn_in + spec.length))


def initial_priority(
  spec: types.ReplaySpec, td_error: Any, mask: Any, starts_episode: Any
) -> Any:
  """η max_t |δ_t| + (1 − η) mean_t |δ_t| of new windows, over the trained transitions.

  Like `losses.sequence_priority`, which the learner uses, but with the actor's TD
  errors, as in Ape-X and R2D2 (Horgan et al., 2018; Kapturowski et al., 2019).

  Args:
    spec: with a `priority_eta`.
    td_error: float `[..., R]`, where entry t is |δ| of the transition into row t.
    mask, starts_episode: as in `trained`.

  Returns:
    `[...]`, before the exponent.
  """
  eta = spec.priority_eta
  assert eta is not None
  is_trained = trained(spec, mask, starts_episode)
  size = abs(td_error[..., 1:]) * is_trained
  mean = size.sum(-1) / is_trained.sum(-1).clip(1)
  return eta * size.max(-1) + (1 - eta) * mean
