"""Running moments, against numpy on everything that was seen."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax import exploration

pytestmark = pytest.mark.core

_SHAPES = [(3,), (4, 2), (), (3,)]


def _batches(offset: float = 0.0) -> list[np.ndarray]:
  rng = np.random.default_rng(0)
  return [rng.normal(offset + i, 1.0 + i, shape) for i, shape in enumerate(_SHAPES)]


def test_running_moments_are_those_of_all_values():
  update = jax.jit(exploration.update_moments)
  moments = exploration.init_moments()
  seen = np.zeros(0)
  for batch in _batches():
    moments = update(moments, jnp.asarray(batch, jnp.float32))
    seen = np.append(seen, batch.ravel())
    np.testing.assert_allclose(moments.mean, seen.mean(), rtol=1e-5)
    np.testing.assert_allclose(moments.variance, seen.var(), rtol=1e-4, atol=1e-6)
    assert moments.weight == seen.size


def test_running_variance_survives_a_great_mean():
  moments, update = exploration.init_moments(), jax.jit(exploration.update_moments)
  values = np.arange(1000, dtype=np.float32) % 10 + 10_000
  for batch in values.reshape(50, 20):
    moments = update(moments, batch)
  np.testing.assert_allclose(moments.variance, 8.25, rtol=1e-3)


@pytest.mark.parametrize("decay", [0.0, 0.9])
def test_decayed_moments_are_those_of_weighted_batches(decay):
  update = jax.jit(exploration.update_ema_moments)
  moments = exploration.init_moments()
  batches = _batches(offset=3.0)
  for t, batch in enumerate(batches):
    moments = update(moments, jnp.asarray(batch, jnp.float32), decay)
    ages = [t - i for i in range(t + 1)]
    weights = np.array([decay**age for age in ages])
    weights /= weights.sum()
    mean = sum(w * b.mean() for w, b in zip(weights, batches, strict=False))
    square = sum(w * (b**2).mean() for w, b in zip(weights, batches, strict=False))
    np.testing.assert_allclose(moments.mean, mean, rtol=1e-5)
    np.testing.assert_allclose(moments.variance, square - mean**2, rtol=1e-3, atol=1e-4)


def test_normalise():
  values = jnp.array([2.0, 4.0, 9.0])
  moments = exploration.update_moments(exploration.init_moments(), values)
  expected = (np.array([2.0, 4.0, 9.0]) - 5.0) / np.sqrt(26.0 / 3.0)
  np.testing.assert_allclose(
    exploration.normalise(moments, values), expected, rtol=1e-5
  )
  np.testing.assert_allclose(
    exploration.normalise(moments, values, centre=False),
    np.array([2.0, 4.0, 9.0]) / np.sqrt(26.0 / 3.0),
    rtol=1e-5,
  )
  # Where nothing was seen they stay finite.
  assert np.isfinite(exploration.normalise(exploration.init_moments(), values)).all()


def _update(decay):
  """Of all values, or with a decay; compiled."""
  if decay is None:
    return jax.jit(exploration.update_moments)
  return jax.jit(
    lambda moments, values, mask=None: exploration.update_ema_moments(
      moments, values, decay, mask
    )
  )


@pytest.mark.parametrize("decay", [None, 0.9])
def test_equal_values_are_0_however_their_mean_is_rounded(decay):
  update, normalise = _update(decay), jax.jit(exploration.normalise)
  for value in (1.7, 0.3, 1e-3, 1e6, 0.0, -2.3):
    moments, batch = exploration.init_moments(), np.full(3, value, np.float32)
    for _ in range(30):
      moments = update(moments, batch)
      np.testing.assert_array_equal(normalise(moments, batch), 0.0)


@pytest.mark.parametrize("decay", [None, 0.9])
def test_masked_values_are_ignored(decay):
  update = _update(decay)
  moments = update(exploration.init_moments(), np.array([2.0, 4.0], np.float32))
  values = np.array([[1.0, 5.0], [100.0, np.nan]], np.float32)
  masked = update(moments, values, np.array([[1.0, 1.0], [0.0, 0.0]]))
  np.testing.assert_allclose(masked, update(moments, values[0]), rtol=1e-6)
  nothing = update(moments, values, np.zeros((2, 2)))
  np.testing.assert_array_equal(nothing, moments)


@pytest.mark.parametrize("power", [1, 2])
def test_over_deviation(power):
  """A single value, and equal ones, have no deviation, and give 0."""
  moments = exploration.init_moments()
  for batch in ([3.0], [3.0, 3.0]):
    moments = exploration.update_moments(moments, jnp.array(batch))
    np.testing.assert_array_equal(
      exploration.over_deviation(moments, jnp.array(batch), power), 0.0
    )
  moments = exploration.update_moments(moments, jnp.array([1.0, 8.0]))
  scale = np.std([3.0, 3.0, 3.0, 1.0, 8.0]) ** power
  found = exploration.over_deviation(moments, jnp.array([1.0, 8.0]), power)
  np.testing.assert_allclose(found, np.array([1.0, 8.0]) / scale, rtol=1e-5)
