"""The rule for windows against brute force over small specs and episodes."""

import dataclasses
import itertools

import jax.numpy as jnp
import numpy as np
import pytest

from explorax.agents import types
from explorax.agents.wiring import windows

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
EPISODES = range(1, 14)


def trained(spec: types.ReplaySpec, start: int, num_transitions: int) -> set[int]:
  """Which transitions a window's loss holds, row by row."""
  rows = set()
  for i in range(spec.window_rows - spec.bootstrap):
    burning_in = i < spec.burn_in and start > 0
    if not burning_in and start + i < num_transitions:
      rows.add(start + i)
  return rows


def test_every_transition_is_trained_on():
  for spec, num_transitions in itertools.product(SPECS, EPISODES):
    seen = set()
    for start in windows.start_rows(spec, num_transitions):
      seen |= trained(spec, start, num_transitions)
    assert seen == set(range(num_transitions)), (spec, num_transitions)


def test_windows_start_at_every_period_from_the_first_row_on():
  for spec, num_transitions in itertools.product(SPECS, EPISODES):
    starts = list(windows.start_rows(spec, num_transitions))
    assert starts == [i * spec.period for i in range(len(starts))]


def test_the_last_window_is_needed():
  for spec, num_transitions in itertools.product(SPECS, EPISODES):
    *before, last = windows.start_rows(spec, num_transitions)
    seen = set()
    for start in before:
      seen |= trained(spec, start, num_transitions)
    assert trained(spec, last, num_transitions) - seen, (spec, num_transitions)


def test_windows_are_complete_exactly_at_their_last_row():
  """Whatever is appended, row by row: the windows made are the windows needed."""
  for spec, num_transitions in itertools.product(SPECS, EPISODES):
    padding = windows.num_padding_rows(spec, num_transitions)
    num_rows = num_transitions + 1 + padding
    made = [
      row - spec.window_rows
      for row in range(1, num_rows + 1)
      if windows.is_complete(spec, row)
    ]
    assert made == list(windows.start_rows(spec, num_transitions)), (
      spec,
      num_transitions,
    )


def test_no_padding_is_superfluous():
  for spec, num_transitions in itertools.product(SPECS, EPISODES):
    padding = windows.num_padding_rows(spec, num_transitions)
    *_, last = windows.start_rows(spec, num_transitions)
    last_row = last + spec.window_rows - 1  # The last one that the window holds.
    real_until = num_transitions  # The row of the last observation.
    assert padding == max(0, last_row - real_until)


@pytest.mark.parametrize("n", [1, 3, 5])
def test_a_transition_is_a_window(n):
  spec = types.ReplaySpec(
    capacity=100, min_size=1, batch_size=1, updates_per_step=1.0, bootstrap=n
  )
  for num_transitions in EPISODES:
    starts = list(windows.start_rows(spec, num_transitions))
    np.testing.assert_array_equal(starts, np.arange(num_transitions))
    assert windows.num_padding_rows(spec, num_transitions) == n - 1


@pytest.mark.parametrize("jax_arrays", [False, True])
def test_initial_priority_is_the_mixture_of_what_is_trained_on(jax_arrays):
  """Against a loop; rows beyond an episode's end and the burn-in do not count."""
  rng = np.random.default_rng(0)
  for spec in SPECS[::7]:
    spec = dataclasses.replace(spec, priority_eta=0.7)
    size, num_rows = 6, spec.window_rows
    num_real = rng.integers(0, num_rows + 1, size)
    mask = (np.arange(num_rows) < num_real[:, None]).astype(np.float32)
    td_error = rng.normal(size=(size, num_rows)).astype(np.float32)
    starts = np.arange(size) % 2 == 0
    given = (td_error, mask, starts)
    if jax_arrays:
      given = tuple(map(jnp.asarray, given))
    found = windows.initial_priority(spec, *given)
    for b in range(size):
      sizes = [
        abs(float(td_error[b, t + 1]))
        for t in range(spec.burn_in + spec.length)
        if t < num_real[b] and t + 1 < num_rows and (starts[b] or t >= spec.burn_in)
      ]
      expected = 0.7 * max(sizes) + 0.3 * np.mean(sizes) if sizes else 0.0
      np.testing.assert_allclose(found[b], expected, rtol=1e-5, atol=1e-7)
