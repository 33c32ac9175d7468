"""Losses of single transitions, against loops in float64."""

import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest
import rlax

from explorax import losses

pytestmark = pytest.mark.ops


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
  actual = jax.vmap(losses.q_learning)(q_tm1, a_tm1, r_t, discount_t, q_t)
  np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)
  alone = losses.q_learning(q_tm1[0], 1, 1, 0, q_t[0])
  np.testing.assert_allclose(alone, 1 - q_tm1[0, 1], rtol=1e-6)


def test_double_q():
  arguments = _transitions(1)
  expected = [
    float(r) + float(d) * float(value[np.argmax(selector)]) - float(q[a])
    for q, a, r, d, value, selector in zip(*arguments, strict=True)
  ]
  actual = jax.vmap(losses.double_q)(*arguments)
  np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)


def test_double_q_selected_by_its_own_values_is_q_learning():
  arguments = _transitions(2)[:5]
  np.testing.assert_array_equal(
    jax.vmap(losses.double_q)(*arguments, arguments[4]),
    jax.vmap(losses.q_learning)(*arguments),
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
  actual = jax.vmap(losses.categorical_double_q)(*arguments)
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
  actual = jax.vmap(losses.categorical_double_q_kl)(*arguments)
  np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-6)


def test_the_divergence_is_zero_where_the_prediction_is_right():
  """A terminal reward between two atoms, and a prediction with just these two."""
  z, logits, a, _, _, z_t, logits_t, selector = (x[0] for x in _categorical(0))
  target = oracles.project(z, [0.4 * z[2] + 0.6 * z[3]], [1.0])
  logits = np.full_like(logits, -3.0)
  logits[a] = np.log(np.maximum(target, 1e-30))
  right = (z, logits, a, 0.4 * z[2] + 0.6 * z[3], 0.0, z_t, logits_t, selector)
  np.testing.assert_allclose(losses.categorical_double_q_kl(*right), 0.0, atol=1e-6)
  assert losses.categorical_double_q(*right) > 0.5  # The target's entropy.


def test_the_divergence_has_the_gradient_of_the_cross_entropy():
  arguments = [jnp.asarray(array[0]) for array in _categorical(2)]
  arguments[4] = jnp.zeros(())  # A terminal transition: most atoms have no mass.
  gradient, cross_entropy = (
    jax.grad(f, argnums=1)(*arguments)
    for f in (losses.categorical_double_q_kl, losses.categorical_double_q)
  )
  np.testing.assert_array_equal(gradient, cross_entropy)
  assert np.any(gradient != 0)


@pytest.mark.filterwarnings("ignore:Rlax categorical_cross_entropy")
def test_categorical_double_q_is_rlaxs():
  arguments = _categorical(1)
  np.testing.assert_allclose(
    jax.vmap(losses.categorical_double_q)(*arguments),
    jax.vmap(rlax.categorical_double_q_learning)(*arguments),
    rtol=1e-5,
  )


def test_categorical_double_q_pulls_the_prediction_to_its_target():
  arguments = [jnp.asarray(array[0]) for array in _categorical(2)]
  gradient = jax.grad(losses.categorical_double_q, argnums=1)(*arguments)
  z, logits, a, r, d, z_t, logits_t, selector = map(np.asarray, arguments)
  probs = oracles.softmax(logits_t[np.argmax(selector)])
  expected = np.zeros_like(logits)
  expected[a] = oracles.softmax(logits[a]) - oracles.project(z, r + d * z_t, probs)
  np.testing.assert_allclose(gradient, expected, atol=1e-6)


@pytest.mark.parametrize("action", [-1, 4])
def test_an_action_that_does_not_exist_gives_nan_or_an_error(action):
  q, r, discount = jnp.arange(4.0), jnp.float32(1.0), jnp.float32(0.9)
  logits, atoms = jnp.ones((4, 3)), jnp.arange(3.0)
  psi, phi, pi = jnp.ones((4, 3)), jnp.ones(3), jnp.full(4, 0.25)
  calls = {
    losses.q_learning: (q, action, r, discount, q),
    losses.double_q: (q, action, r, discount, q, q),
    losses.categorical_double_q: (
      *(atoms, logits, action, r, discount, atoms, logits, q),
    ),
    losses.categorical_double_q_kl: (
      *(atoms, logits, action, r, discount, atoms, logits, q),
    ),
    losses.successor_features: (psi, action, phi, discount, psi, pi),
  }
  for loss, arguments in calls.items():
    assert np.isnan(jax.jit(loss)(*arguments)).all()
    with pytest.raises(ValueError, match=f"{loss.__name__}: a_tm1 is {action};"):
      loss(*arguments)
