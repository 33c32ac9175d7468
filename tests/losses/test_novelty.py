"""Losses of novelty's networks, against loops in float64."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax import losses

pytestmark = pytest.mark.core


def test_rnd_error_is_the_squared_distance():
  rng = np.random.default_rng(0)
  prediction, target = rng.normal(size=(2, 4, 5)).astype(np.float32)
  expected = [
    sum((float(p) - float(t)) ** 2 for p, t in zip(row, other, strict=True))
    for row, other in zip(prediction, target, strict=True)
  ]
  np.testing.assert_allclose(losses.rnd_error(prediction, target), expected, rtol=1e-5)


def test_inverse_dynamics_is_the_negative_log_probability():
  rng = np.random.default_rng(1)
  logits = rng.normal(size=(6, 3)).astype(np.float32)
  action = rng.integers(0, 3, size=6).astype(np.int32)
  expected = [
    math.log(sum(math.exp(z) for z in row)) - row[a]
    for row, a in zip(logits.astype(float), action, strict=True)
  ]
  np.testing.assert_allclose(
    losses.inverse_dynamics(logits, action), expected, rtol=1e-5
  )


def test_inverse_dynamics_stays_finite_and_its_gradient_is_that_of_softmax():
  logits = jnp.array([1e4, -1e4, 0.0])
  np.testing.assert_allclose(losses.inverse_dynamics(logits, 1), 2e4)
  gradient = jax.grad(losses.inverse_dynamics)(logits, 1)
  np.testing.assert_allclose(gradient, [1, -1, 0])


def test_forward_dynamics_is_half_the_squared_distance_and_trains_both():
  prediction, target = jnp.array([1.0, 2.0]), jnp.array([0.5, 4.0])
  np.testing.assert_allclose(losses.forward_dynamics(prediction, target), 2.125)
  both = jax.grad(losses.forward_dynamics, (0, 1))(prediction, target)
  np.testing.assert_allclose(both, [[0.5, -2.0], [-0.5, 2.0]])
  rng = np.random.default_rng(0)
  a, b = rng.normal(size=(2, 4, 5)).astype(np.float32)
  expected = [0.5 * np.sum((x - y) ** 2) for x, y in zip(a, b, strict=True)]
  np.testing.assert_allclose(losses.forward_dynamics(a, b), expected, rtol=1e-5)


def test_disagreement_is_the_mean_variance_of_the_models():
  rng = np.random.default_rng(0)
  predictions = rng.normal(size=(4, 3)).astype(np.float32)
  expected = 0.0
  for column in predictions.T.astype(np.float64):
    expected += sum((x - column.mean()) ** 2 for x in column) / 4 / 3
  actual = losses.disagreement(predictions)
  np.testing.assert_allclose(actual, expected, rtol=1e-5)
  np.testing.assert_array_equal(losses.disagreement(predictions[[1, 1]]), 0.0)
  constant = jnp.array([[2.0], [5.0]])
  np.testing.assert_allclose(losses.disagreement(constant), (2.0 - 5.0) ** 2 / 4)


def test_novel_d_with_inverse_counts_is_bebold():
  n_tm1, n_t = np.array([1.0, 4.0, 2.0, 2.0]), np.array([4.0, 1.0, 1.0, 2.0])
  actual = losses.novel_d(1 / n_tm1, 1 / n_t, 1.0)
  np.testing.assert_allclose(actual, [0.0, 0.75, 0.5, 0.0])
  np.testing.assert_allclose(losses.novel_d(1 / n_tm1, 1 / n_t, 0.5)[3], 0.25)
