"""Bayesian linear regression, against its closed form in float64."""

import jax
import numpy as np
import pytest

from explorax import exploration

pytestmark = pytest.mark.core

D = 3


def _data(num_rows: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
  rng = np.random.default_rng(seed)
  features = rng.normal(size=(num_rows, D)).astype(np.float32)
  targets = features @ np.array([1.0, -2.0, 0.5]) + 0.1 * rng.normal(size=num_rows)
  return features, targets.astype(np.float32)


def _closed_form(features, targets, prior_variance, likelihood_variance):
  """Bishop (2006), equations 3.53 and 3.54, one observation at a time."""
  precision = np.eye(D) / prior_variance
  product = np.zeros(D)
  for phi, y in zip(features.astype(float), targets.astype(float), strict=True):
    precision += np.outer(phi, phi) / likelihood_variance
    product += phi * y / likelihood_variance
  covariance = np.linalg.inv(precision)
  return covariance @ product, covariance


@pytest.mark.parametrize("num_rows", [2, 40])
@pytest.mark.parametrize(("theta", "beta"), [(1.0, 0.01), (10.0, 1.0), (0.1, 10.0)])
def test_the_posterior_of_a_batch_is_the_closed_form(num_rows, theta, beta):
  features, targets = _data(num_rows)
  regression = exploration.update_regression(
    exploration.init_regression(D), features, targets, 0.9
  )
  posterior = exploration.weight_posterior(regression, num_rows, theta, beta)
  mean, covariance = _closed_form(features, targets, theta, beta)
  # The millionth on the diagonal matters where two rows leave a direction unseen.
  np.testing.assert_allclose(posterior.mean, mean, rtol=2e-3, atol=2e-3)
  np.testing.assert_allclose(
    posterior.scale @ posterior.scale.T, covariance, rtol=2e-3, atol=2e-3 * theta
  )


@pytest.mark.parametrize("decay", [0.0, 0.9])
def test_old_batches_weigh_less_and_the_first_is_taken_as_it_is(decay):
  regression = exploration.init_regression(D)
  seen = []
  for seed in range(3):
    features, targets = _data(5, seed)
    regression = exploration.update_regression(regression, features, targets, decay)
    seen.append((features.astype(float), targets.astype(float)))
    weights = np.array([decay**age for age in range(len(seen))][::-1])
    weights /= weights.sum()
    squares = sum(w * f.T @ f / 5 for w, (f, _) in zip(weights, seen, strict=True))
    products = sum(w * y @ f / 5 for w, (f, y) in zip(weights, seen, strict=True))
    np.testing.assert_allclose(regression.features, squares, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(regression.products, products, rtol=1e-4, atol=1e-5)


def test_draws_have_the_posteriors_moments():
  features, targets = _data(4)
  regression = exploration.update_regression(
    exploration.init_regression(D), features, targets, 0.0
  )
  posterior = exploration.weight_posterior(regression, 4, 1.0, 1.0)
  mean, covariance = _closed_form(features, targets, 1.0, 1.0)
  draw = jax.jit(exploration.sample_weights, static_argnums=2)
  drawn = draw(jax.random.PRNGKey(0), posterior, (40_000,))
  np.testing.assert_allclose(np.mean(drawn, axis=0), mean, atol=0.02)
  np.testing.assert_allclose(np.cov(drawn.T), covariance, atol=0.02)
  assert exploration.sample_weights(jax.random.PRNGKey(0), posterior).shape == (D,)


def test_much_evidence_of_little_noise_stays_finite_in_float32():
  """Ten million times the prior's, of features that leave most directions unseen."""
  size = 64
  rng = np.random.default_rng(0)
  features = rng.uniform(size=(128, 5)) @ rng.uniform(size=(5, size))
  features = features.astype(np.float32)
  targets = features[:, 0]
  regression = exploration.update_regression(
    exploration.init_regression(size), features, targets, 0.99
  )
  posterior = jax.jit(exploration.weight_posterior)(regression, 10_000, 1000.0, 0.001)
  assert np.all(np.isfinite(posterior.mean)) and np.all(np.isfinite(posterior.scale))
  np.testing.assert_allclose(features @ posterior.mean, targets, rtol=0.05)
  # What was seen is known, and what was not is not.
  seen = np.linalg.norm(posterior.scale.T @ features[0]) / np.linalg.norm(features[0])
  unseen = np.linalg.svd(features)[2][-1]
  assert seen < 1e-2 * np.linalg.norm(posterior.scale.T @ unseen)
