"""Priorities of sequences, against a loop in float64."""

import jax
import numpy as np
import pytest

from explorax import losses

pytestmark = pytest.mark.core


def _priority(td, mask, eta) -> float:
  sizes = [abs(float(error)) for error, real in zip(td, mask, strict=True) if real]
  return eta * max(sizes) + (1 - eta) * sum(sizes) / len(sizes) if sizes else 0.0


@pytest.mark.parametrize("eta", [0, 0.9, 1])
def test_priorities_mix_the_largest_and_the_mean_of_real_steps(eta):
  rng = np.random.default_rng(0)
  td = rng.normal(size=(8, 6)).astype(np.float32)
  mask = rng.integers(0, 2, size=(8, 6)).astype(np.float32)
  mask[0], mask[1] = 0, 1
  expected = [_priority(*pair, eta) for pair in zip(td, mask, strict=True)]
  batched = jax.vmap(losses.sequence_priority, (0, 0, None))
  np.testing.assert_allclose(batched(td, mask, eta), expected, rtol=1e-5)
  np.testing.assert_allclose(batched(td, mask > 0, eta), expected, rtol=1e-5)


def test_masked_steps_do_not_matter_even_if_they_are_nan():
  td = np.array([-1.0, 3.0, np.nan, np.inf], np.float32)
  mask = np.array([1, 1, 0, 0], np.float32)
  np.testing.assert_allclose(losses.sequence_priority(td, mask, 0.5), 2.5)
  assert losses.sequence_priority(td, np.zeros(4, np.float32), 0.9) == 0
