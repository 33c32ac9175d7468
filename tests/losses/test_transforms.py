"""h and its inverse, against the printed formulas in extended precision."""

import decimal

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax import losses

pytestmark = pytest.mark.core

MAGNITUDES = np.concatenate([[0.0], np.logspace(-12, 8, 81)])
VALUES = np.concatenate([-MAGNITUDES[::-1], MAGNITUDES]).astype(np.float32)


def _decimals(function, values) -> np.ndarray:
  with decimal.localcontext() as context:
    context.prec = 60
    results = []
    for value in values:
      magnitude = function(abs(decimal.Decimal(float(value))))
      results.append(float(magnitude.copy_sign(decimal.Decimal(float(value)))))
    return np.array(results)


def _h(eps):
  return lambda z: (z + 1).sqrt() - 1 + eps * z


def _h_inv(eps):
  return lambda x: (((1 + 4 * eps * (x + 1 + eps)).sqrt() - 1) / (2 * eps)) ** 2 - 1


@pytest.mark.parametrize("eps", [1e-3, 1e-2, 1.0])
def test_both_are_the_printed_formulas_to_rounding(eps):
  pair = losses.signed_hyperbolic_pair(eps)
  exact = decimal.Decimal(float(np.float32(eps)))
  applied, inverse = jax.jit(pair.apply)(VALUES), jax.jit(pair.apply_inv)(VALUES)
  np.testing.assert_allclose(applied, _decimals(_h(exact), VALUES), rtol=1e-6)
  np.testing.assert_allclose(inverse, _decimals(_h_inv(exact), VALUES), rtol=2e-6)


def test_the_inverse_restores_values_to_rounding():
  pair = losses.signed_hyperbolic_pair(1e-3)
  for there, back in (pair, pair[::-1]):
    np.testing.assert_allclose(back(there(VALUES)), VALUES, rtol=2e-6)


def test_without_epsilon_it_is_the_square_root_alone():
  pair = losses.signed_hyperbolic_pair(0)
  np.testing.assert_allclose(pair.apply(np.float32(8.0)), 2.0, rtol=1e-6)
  np.testing.assert_allclose(pair.apply_inv(np.float32(-2.0)), -8.0, rtol=1e-6)


def test_slopes_at_and_around_zero():
  pair = losses.signed_hyperbolic_pair(1e-3)
  for x in (0.0, 1e-6, -1e-6):
    slope = jax.grad(pair.apply)(jnp.float32(x))
    np.testing.assert_allclose(slope, 0.501, rtol=1e-5)
    inverse = jax.grad(pair.apply_inv)(jnp.float32(x))
    np.testing.assert_allclose(inverse, 1 / 0.501, rtol=1e-5)


def test_the_identity_changes_nothing():
  for function in losses.identity_pair:
    np.testing.assert_array_equal(function(VALUES), VALUES)


@pytest.mark.parametrize("eps", [-1e-3, float("nan"), float("inf"), "1e-3", None])
def test_an_epsilon_that_has_no_inverse_is_refused(eps):
  with pytest.raises(ValueError, match=r"eps is .* finite Python number"):
    losses.signed_hyperbolic_pair(eps)


@pytest.mark.parametrize("pair", [losses.signed_hyperbolic_pair, None, 1e-3])
def test_what_is_no_pair_is_refused(pair):
  """A pair's function that was not called, for instance."""
  q, numbers, actions = np.ones((3, 2), np.float32), np.ones(3, np.float32), [0, 1, 0]
  with pytest.raises(TypeError, match=r"tx_pair is .* such as signed_hyperbolic_pair"):
    losses.n_step_q(q, np.array(actions), numbers, numbers, q, 2, tx_pair=pair)
