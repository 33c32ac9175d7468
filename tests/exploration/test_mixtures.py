"""The mixture of policies of Never Give Up, by hand."""

import jax.numpy as jnp
import numpy as np
import pytest

from explorax import exploration

pytestmark = pytest.mark.core


BETAS = [
  [0.3],
  [0.0, 0.3],
  # 2i − (n − 2) = 1 and n − 2 = 1: sigmoid(10).
  [0.0, 0.3 * 0.9999546021312976, 0.3],
  # sigmoid(0) and sigmoid(10).
  [0.0, 0.15, 0.3 * 0.9999546021312976, 0.3],
  # sigmoid(−10/3), sigmoid(10/3) and sigmoid(10).
  [0.0, 0.3 * 0.03444519566, 0.3 * 0.96555480434, 0.3 * 0.99995460213, 0.3],
]
DISCOUNTS = [
  [0.9],
  [0.999, 0.9],
  [0.999, 0.99, 0.9],  # The gaps 1 − γ are 0.001, 0.01 and 0.1.
  [0.999, 1 - 10**-2.5, 0.99, 1 - 10**-1.5, 0.9],
]


@pytest.mark.parametrize(
  ("mixture", "arguments", "expected"),
  [(exploration.mixture_betas, (0.3,), betas) for betas in BETAS]
  + [(exploration.mixture_discounts, (0.999, 0.9), gammas) for gammas in DISCOUNTS],
)
def test_mixtures(mixture, arguments, expected):
  found = mixture(len(expected), *arguments)
  assert found.dtype == jnp.float32
  np.testing.assert_allclose(found, expected, rtol=1e-6)
