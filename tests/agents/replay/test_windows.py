"""The rule for windows against brute force, over small specs and episodes."""

import dataclasses
import itertools

import jax.numpy as jnp
import numpy as np
import pytest

from explorax.agents import types
from explorax.agents.replay import windows

pytestmark = pytest.mark.ops

SPECS = [
  types.ReplaySpec(
    capacity=100,
    min_size=1,
    batch_size=1,
    updates_per_step=1.0,
    burn_in=burn_in,
    length=length,
    bootstrap=bootstrap,
    period=period,
  )
  for burn_in, length, bootstrap, period in itertools.product(
    (0, 1, 2, 5), (1, 2, 3, 4), (1, 2, 3), (1, 2, 3, 4)
  )
  if period <= length
]
CASES = list(itertools.product(SPECS, range(1, 14)))


def trained(spec: types.ReplaySpec, window: int, num_transitions: int) -> set[int]:
  """The transitions in the loss of a window, row by row."""
  start, rows = window * spec.period, set()
  for i in range(spec.window_rows - spec.bootstrap):
    burning_in = i < spec.burn_in and start > 0
    if not burning_in and start + i < num_transitions:
      rows.add(start + i)
  return rows


def test_every_transition_is_trained_on_and_every_window_is_needed():
  for spec, num_transitions in CASES:
    seen: set[int] = set()
    for window in range(windows.num_windows(spec, num_transitions)):
      new = trained(spec, window, num_transitions)
      assert new - seen, (spec, num_transitions)
      seen |= new
    assert seen == set(range(num_transitions)), (spec, num_transitions)


def test_windows_are_complete_at_their_last_row_and_padding_completes_the_last():
  for spec, num_transitions in CASES:
    padding = windows.num_padding_rows(spec, num_transitions)
    num_rows = num_transitions + 1 + padding
    complete = 0
    for row in range(1, num_rows + 1):
      complete += windows.is_complete(spec, row)
      assert windows.num_complete(spec, row) == complete
    assert complete == windows.num_windows(spec, num_transitions)
    # No row of padding is superfluous.
    assert padding == 0 or windows.is_complete(spec, num_rows)


def test_arrays_follow_the_same_rule():
  numbers = jnp.arange(1, 14)
  for spec in SPECS[::7]:
    for rule in (windows.num_windows, windows.num_complete, windows.is_complete):
      expected = [rule(spec, number) for number in range(1, 14)]
      np.testing.assert_array_equal(rule(spec, numbers), expected)


@pytest.mark.parametrize("array", [np.asarray, jnp.asarray])
def test_initial_priority_is_the_mixture_over_the_trained_transitions(array):
  """Against a loop; rows beyond an episode's end and the burn-in do not count."""
  rng = np.random.default_rng(0)
  for spec in SPECS[::7]:
    spec = dataclasses.replace(spec, priority_eta=0.7)
    size, num_rows = 6, spec.window_rows
    num_real = rng.integers(0, num_rows + 1, size)
    mask = (np.arange(num_rows) < num_real[:, None]).astype(np.float32)
    td_error = rng.normal(size=(size, num_rows)).astype(np.float32)
    starts = np.arange(size) % 2 == 0
    arguments = map(array, (td_error, mask, starts))
    priority = windows.initial_priority(spec, *arguments)
    marks = windows.trained(spec, array(mask), array(starts))
    for b in range(size):
      rows = [
        t
        for t in range(spec.burn_in + spec.length)
        if t < num_real[b] and t + 1 < num_rows and (starts[b] or t >= spec.burn_in)
      ]
      np.testing.assert_array_equal(np.flatnonzero(marks[b]), rows)
      sizes = [abs(float(td_error[b, t + 1])) for t in rows]
      expected = 0.7 * max(sizes) + 0.3 * np.mean(sizes) if sizes else 0.0
      np.testing.assert_allclose(priority[b], expected, rtol=1e-5, atol=1e-7)
