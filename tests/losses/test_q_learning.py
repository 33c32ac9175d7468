"""Losses of single transitions, against loops in float64."""

import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest

from explorax import losses

pytestmark = pytest.mark.core


q_learning = jax.jit(jax.vmap(losses.q_learning))
double_q = jax.jit(jax.vmap(losses.double_q))


def _transitions(seed: int, batch: int = 5, num_actions: int = 4):
  rng = np.random.default_rng(seed)
  return (
    rng.normal(size=(batch, num_actions)).astype(np.float32),
    rng.integers(0, num_actions, size=batch).astype(np.int32),
    rng.normal(size=batch).astype(np.float32),
    rng.choice([0.0, 0.9, 1.0], size=batch).astype(np.float32),
    rng.normal(size=(batch, num_actions)).astype(np.float32),
    rng.normal(size=(batch, num_actions)).astype(np.float32),
  )


def test_q_learning():
  q_tm1, a_tm1, r_t, discount_t, q_t, _ = _transitions(0)
  expected = [
    float(r) + float(d) * max(map(float, q_next)) - float(q[a])
    for q, a, r, d, q_next in zip(q_tm1, a_tm1, r_t, discount_t, q_t, strict=True)
  ]
  actual = q_learning(q_tm1, a_tm1, r_t, discount_t, q_t)
  np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)
  alone = losses.q_learning(q_tm1[0], 1, 1, 0, q_t[0])
  np.testing.assert_allclose(alone, 1 - q_tm1[0, 1], rtol=1e-6)


def test_double_q():
  arguments = _transitions(1)
  expected = [
    float(r) + float(d) * float(value[np.argmax(selector)]) - float(q[a])
    for q, a, r, d, value, selector in zip(*arguments, strict=True)
  ]
  actual = double_q(*arguments)
  np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)


def test_double_q_selected_by_its_own_values_is_q_learning():
  arguments = _transitions(2)[:5]
  np.testing.assert_array_equal(
    double_q(*arguments, arguments[4]), q_learning(*arguments)
  )


def _categorical(seed: int, batch: int = 4, num_actions: int = 3):
  rng = np.random.default_rng(seed)
  float32 = lambda *shape: rng.normal(size=shape).astype(np.float32)  # noqa: E731
  atoms = np.linspace(-2, 2, 7, dtype=np.float32)
  target_atoms = np.linspace(-3, 1, 5, dtype=np.float32)
  return (
    np.stack([atoms] * batch),
    float32(batch, num_actions, 7),
    rng.integers(0, num_actions, size=batch).astype(np.int32),
    float32(batch),
    rng.choice([0.0, 0.9], size=batch).astype(np.float32),
    np.stack([target_atoms] * batch),
    float32(batch, num_actions, 5),
    float32(batch, num_actions),
  )


def test_categorical_double_q_is_the_cross_entropy_of_the_projection():
  arguments = _categorical(0)
  expected = []
  for z, logits, a, r, d, z_t, logits_t, selector in zip(*arguments, strict=True):
    probs = oracles.softmax(logits_t[np.argmax(selector)])
    target = oracles.project(z, float(r) + float(d) * z_t, probs)
    expected.append(-np.sum(target * np.log(oracles.softmax(logits[a]))))
  actual = jax.jit(jax.vmap(losses.categorical_double_q))(*arguments)
  np.testing.assert_allclose(actual, expected, rtol=1e-5)


def test_the_divergence_is_the_cross_entropy_less_the_targets_entropy():
  arguments = _categorical(4)
  expected = []
  for z, logits, a, r, d, z_t, logits_t, selector in zip(*arguments, strict=True):
    probs = oracles.softmax(logits_t[np.argmax(selector)])
    target = oracles.project(z, float(r) + float(d) * z_t, probs)
    terms = [
      m * (np.log(m) - np.log(p))
      for m, p in zip(target, oracles.softmax(logits[a]), strict=True)
      if m > 0
    ]
    expected.append(sum(terms))
  actual = jax.jit(jax.vmap(losses.categorical_double_q_kl))(*arguments)
  np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-6)


def test_the_divergence_has_the_gradient_of_the_cross_entropy():
  arguments = [jnp.asarray(array[0]) for array in _categorical(2)]
  arguments[4] = jnp.zeros(())  # A terminal transition: most atoms have no mass.
  gradient, cross_entropy = (
    jax.grad(f, argnums=1)(*arguments)
    for f in (losses.categorical_double_q_kl, losses.categorical_double_q)
  )
  np.testing.assert_array_equal(gradient, cross_entropy)
  assert np.any(gradient != 0)
