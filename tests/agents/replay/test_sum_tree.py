"""The sum tree against numpy's cumulative sums."""

import numpy as np
import pytest

from explorax.agents.replay import sum_tree

pytestmark = pytest.mark.core


def draw(values: np.ndarray, uniforms: np.ndarray) -> np.ndarray:
  """Inverts the cumulative distribution, one draw after another."""
  ends = np.cumsum(values) / np.sum(values)
  return np.array([int(np.sum(ends <= u)) for u in uniforms])


@pytest.mark.parametrize("capacity", [1, 2, 3, 7, 8, 9, 40])
def test_draws_in_proportion(capacity):
  rng = np.random.default_rng(capacity)
  # Sixty-fourths, so that all sums are exact and no draw is a matter of rounding.
  values = rng.integers(0, 64, capacity) / 64
  values[rng.integers(capacity)] += 1 / 64
  tree = sum_tree.SumTree(capacity)
  tree.set(np.arange(capacity), values)
  uniforms = rng.random(50)
  indices, probabilities = tree.sample(uniforms)
  np.testing.assert_array_equal(indices, draw(values, uniforms))
  expected = (values / values.sum()).astype(np.float32)
  np.testing.assert_allclose(probabilities, expected[indices], rtol=1e-6)
  assert indices.dtype == np.int64 and probabilities.dtype == np.float32


@pytest.mark.parametrize("capacity", [1, 2, 5, 20])
def test_many_changes_leave_the_sums_right(capacity):
  rng = np.random.default_rng(capacity)
  values = np.zeros(capacity)
  tree = sum_tree.SumTree(capacity)
  for _ in range(20):
    indices = rng.integers(0, capacity, rng.integers(1, 6))
    new = rng.integers(0, 64, len(indices)) / 64
    tree.set(indices, new)
    for index, value in zip(indices, new, strict=True):
      values[index] = value  # Of a repeated one, the last.
  tree.set(np.array([0]), np.array([1.0]))  # So that there is something to draw.
  values[0] = 1.0
  uniforms = np.linspace(0, 1, 100, endpoint=False)
  np.testing.assert_array_equal(tree.sample(uniforms)[0], draw(values, uniforms))


def test_leaves_without_mass_are_never_drawn():
  values = np.zeros(7)
  values[[1, 4]] = 1e-9, 3.0
  tree = sum_tree.SumTree(7)
  tree.set(np.arange(7), values)
  almost_one = np.nextafter(1.0, 0.0)
  uniforms = np.concatenate([np.linspace(0, 1, 999, endpoint=False), [almost_one]])
  assert set(tree.sample(uniforms)[0].tolist()) <= {1, 4}


@pytest.mark.parametrize("worst", [np.nan, np.inf, -1.0])
def test_refuses_invalid_priorities(worst):
  tree = sum_tree.SumTree(4)
  tree.set(np.array([0]), np.array([1.0]))
  with pytest.raises(ValueError, match=f"the worst is {worst}"):
    tree.set(np.array([1, 2]), np.array([1.0, worst]))
  np.testing.assert_array_equal(tree.sample(np.array([0.9]))[0], [0])
