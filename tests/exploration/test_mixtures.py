"""The mixture of policies of Never Give Up, by hand."""

import jax.numpy as jnp
import numpy as np
import pytest

from explorax import exploration

pytestmark = pytest.mark.core


@pytest.mark.parametrize(
  ("n", "expected"),
  [
    (1, [0.3]),
    (2, [0.0, 0.3]),
    # 2i − (n − 2) = 1 and n − 2 = 1: sigmoid(10).
    (3, [0.0, 0.3 * 0.9999546021312976, 0.3]),
    # sigmoid(0) and sigmoid(10).
    (4, [0.0, 0.15, 0.3 * 0.9999546021312976, 0.3]),
    # sigmoid(−10/3), sigmoid(10/3) and sigmoid(10).
    (5, [0.0, 0.3 * 0.03444519566, 0.3 * 0.96555480434, 0.3 * 0.99995460213, 0.3]),
  ],
)
def test_betas(n, expected):
  betas = exploration.mixture_betas(n, 0.3)
  assert betas.dtype == jnp.float32
  np.testing.assert_allclose(betas, expected, rtol=1e-6)


@pytest.mark.parametrize(
  ("n", "expected"),
  [
    (1, [0.9]),
    (2, [0.999, 0.9]),
    (3, [0.999, 0.99, 0.9]),  # The gaps 1 − γ are 0.001, 0.01 and 0.1.
    (5, [0.999, 1 - 10**-2.5, 0.99, 1 - 10**-1.5, 0.9]),
  ],
)
def test_discounts(n, expected):
  discounts = exploration.mixture_discounts(n, 0.999, 0.9)
  assert discounts.dtype == jnp.float32
  np.testing.assert_allclose(discounts, expected, rtol=1e-6)
