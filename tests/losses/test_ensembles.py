"""Ensembles' losses and bonuses, against loops in float64."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax import losses

pytestmark = pytest.mark.core


@pytest.mark.parametrize("num_members", [1, 6])
def test_bootstrapped_td_is_a_masked_mean_of_squares(num_members):
  rng = np.random.default_rng(num_members)
  td = rng.normal(size=num_members).astype(np.float32)
  mask = rng.integers(0, 2, size=num_members).astype(np.float32)
  expected = 0.0
  for error, kept in zip(td, mask, strict=True):
    expected += float(kept) * float(error) ** 2 / (2 * num_members)
  actual = losses.bootstrapped_td(td, mask)
  np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-7)
  boolean = losses.bootstrapped_td(td, mask.astype(bool))
  np.testing.assert_array_equal(boolean, actual)


def test_a_masked_member_may_be_nan():
  td = jnp.array([1.0, jnp.nan, jnp.inf])
  value, gradient = jax.value_and_grad(losses.bootstrapped_td)(td, jnp.array([1, 0, 0]))
  np.testing.assert_allclose(value, 1 / 6, rtol=1e-6)
  np.testing.assert_allclose(gradient, [1 / 3, 0, 0], rtol=1e-6)


def _deviation(values) -> np.ndarray:
  """Member by member, K − 1 in the denominator."""
  num_members = len(values)
  mean = sum(values) / num_members
  return np.sqrt(sum((value - mean) ** 2 for value in values) / (num_members - 1))


DEVIATIONS = pytest.mark.parametrize("name", ["tdu_bonus", "q_uncertainty"])


@DEVIATIONS
@pytest.mark.parametrize("shape", [(2,), (5, 3), (3, 2, 4)])
def test_deviations(name, shape):
  values = np.random.default_rng(0).normal(size=shape).astype(np.float32)
  expected = _deviation(list(values.astype(np.float64)))
  np.testing.assert_allclose(getattr(losses, name)(values), expected, rtol=1e-5)


@DEVIATIONS
def test_equal_members_give_exactly_zero_whatever_their_value(name):
  values = np.full((7, 3), [0.1, 1e7, -3.3], np.float32)
  np.testing.assert_array_equal(getattr(losses, name)(values), np.zeros(3))


@DEVIATIONS
def test_deviations_survive_a_large_common_offset(name):
  values = np.array([4096.0, 4096.5, 4097.0, 4097.5], np.float32)
  np.testing.assert_allclose(
    getattr(losses, name)(values), math.sqrt(1.25 / 3), rtol=1e-6
  )


@DEVIATIONS
def test_a_single_member_is_refused(name):
  with pytest.raises(ValueError, match="1 member"):
    getattr(losses, name)(np.zeros((1, 5), np.float32))


def _infogain(q, temperature) -> float:
  """Algorithm 3, policy by policy."""
  policies = []
  for row in q.astype(np.float64):
    weights = [math.exp((value - max(row)) / temperature) for value in row]
    policies.append([weight / sum(weights) for weight in weights])
  mean = [sum(column) / len(policies) for column in zip(*policies, strict=True)]
  total = 0.0
  for policy in policies:
    for p, average in zip(policy, mean, strict=True):
      total += p * math.log(p / average) if p > 0 else 0.0
  return total / len(policies)


@pytest.mark.parametrize("shape", [(1, 3), (5, 4)])
def test_infogain_is_the_mean_divergence_from_the_mean_policy(shape):
  infogain = jax.jit(losses.infogain_bonus)
  for seed, temperature in enumerate([0.1, 1.0, 30.0]):
    q = np.random.default_rng(seed).normal(size=shape).astype(np.float32)
    expected = _infogain(q, temperature)
    np.testing.assert_allclose(infogain(q, temperature), expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("temperature", [2e-38, 1e-3, 1e38])
def test_infogain_is_finite_and_bounded_at_any_temperature(temperature):
  q = np.array([[1e4, -1e4, 0], [-1e4, 1e4, 0]], np.float32)
  bonus = losses.infogain_bonus(q, temperature)
  assert 0 <= bonus <= math.log(2) + 1e-6
  if temperature <= 1:  # The members' policies do not overlap.
    np.testing.assert_allclose(bonus, math.log(2), rtol=1e-6)


@pytest.mark.parametrize("temperature", [0, -1.0, math.nan])
def test_a_temperature_that_is_not_positive_is_refused(temperature):
  with pytest.raises(ValueError, match=r"temperature is .*must be positive"):
    losses.infogain_bonus(np.zeros((2, 2), np.float32), temperature)


@pytest.mark.parametrize("ratio", [-0.1, 0.1, 2.1, 2.3])
def test_proposition_2_where_td_errors_have_less_bias_than_values(ratio):
  """Flennerhag et al. (2020): where ρ, the ratio of the biases, is in (0, 2/γ)."""
  rng, discount = np.random.default_rng(2), 0.9
  models = rng.normal(size=(2, 50))  # Q(s, a) and Q(s', π(s')) of a belief's models.
  estimates = models + np.array([[1.0], [ratio]]) * rng.normal(1.5, 0.1, size=50)

  def td_error(q_tm1: jax.Array, q_t: jax.Array) -> jax.Array:
    return losses.q_learning(q_tm1[None], 0, 0.0, discount, q_t[None])

  def td_errors(q: np.ndarray) -> np.ndarray:
    return np.asarray(jax.vmap(td_error)(*q.astype(np.float32)))

  of_values = abs(np.mean(estimates[0] - models[0]))
  of_errors = abs(np.mean(td_errors(estimates) - td_errors(models)))
  assert (of_errors < of_values) == (0 < ratio < 2 / discount)
