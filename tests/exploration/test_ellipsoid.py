"""Elliptical bonuses, against inverses in float64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax import exploration

pytestmark = pytest.mark.core


def bonuses(features, ridge):
  """Of one state after the other, and the last S."""
  start = exploration.init_ellipsoid(features.shape[1], ridge)
  scan = jax.jit(
    lambda xs: jax.lax.scan(
      lambda root, x: exploration.elliptical_bonus(root, x)[::-1], start, xs
    )
  )
  root, values = scan(jnp.asarray(features, jnp.float32))
  return np.asarray(values, np.float64), np.asarray(root)


def exact(features, ridge):
  """The same in float64, with an inverse for each state."""
  covariance, values = ridge * np.eye(features.shape[1]), []
  for x in np.asarray(features, np.float32).astype(np.float64):
    values.append(x @ np.linalg.solve(covariance, x))
    covariance += np.outer(x, x)
  return np.array(values), covariance


@pytest.mark.parametrize("ridge", [0.1, 2.0])
def test_bonuses_are_those_of_the_inverse_before_the_state(ridge):
  features = np.random.default_rng(0).normal(size=(40, 5))
  values, root = bonuses(features, ridge)
  expected, covariance = exact(features, ridge)
  np.testing.assert_allclose(values, expected, rtol=1e-4)
  inverse = np.linalg.inv(covariance)
  np.testing.assert_allclose(root @ root.T, inverse, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(("ridge", "bound"), [(0.1, 1e-4), (1e-3, 1e-3)])
def test_rounding_does_not_add_up_in_an_episode(ridge, bound):
  """Features of three sizes, in 2,000 states; ‖φ‖² / λ is up to 10⁵ and 10⁷."""
  rng = np.random.default_rng(0)
  features = rng.normal(size=(2000, 32)) * rng.choice([0.1, 1.0, 10.0], (2000, 1))
  values, _ = bonuses(features, ridge)
  np.testing.assert_allclose(values, exact(features, ridge)[0], rtol=bound)
