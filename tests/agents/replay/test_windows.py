"""The rule for windows against brute force, over small specs and episodes."""

import itertools

import pytest

from explorax.agents import types
from explorax.agents.replay import windows

pytestmark = pytest.mark.core

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
