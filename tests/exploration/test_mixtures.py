"""The mixture of policies of Never Give Up, by hand."""

import jax.numpy as jnp
import numpy as np
import pytest

from explorax import exploration

pytestmark = pytest.mark.ops


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


def test_betas_of_the_paper_are_ascending_and_centred():
  betas = np.asarray(exploration.mixture_betas(32, 0.3))
  assert betas.shape == (32,)
  assert (np.diff(betas) >= 0).all()
  np.testing.assert_allclose(betas[15], 0.15, rtol=1e-6)


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


def test_equal_discounts_stay_equal():
  np.testing.assert_allclose(exploration.mixture_discounts(4, 0.97, 0.97), [0.97] * 4)
  np.testing.assert_array_equal(exploration.mixture_discounts(2, 0.0, 0.0), [0.0, 0.0])


@pytest.mark.parametrize(
  ("call", "message"),
  [
    (lambda: exploration.mixture_betas(0, 0.3), "mixture of 0 policies"),
    (lambda: exploration.mixture_betas(2, -0.1), "beta is -0.1"),
    (lambda: exploration.mixture_discounts(2, 1.0, 0.9), "gamma_max is 1.0"),
    (lambda: exploration.mixture_discounts(2, 0.9, 0.99), "gamma_min 0.99"),
  ],
)
def test_bad_parameters_are_refused(call, message):
  with pytest.raises(ValueError, match=message):
    call()
