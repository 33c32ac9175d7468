"""Convolutions against a plain loop and Haiku's."""

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax.networks import convolution

# (N, H, W, C, size, stride, filters); the last has more than MAX_PATCH_ELEMENTS.
CASES = [(2, 5, 7, 3, 3, 1, 4), (3, 9, 8, 1, 4, 2, 2), (1, 8, 8, 2, 3, 3, 1)]
CASES += [(10, 40, 40, 10, 3, 1, 1)]


def _draw(n, height, width, channels, size, stride, filters):
  rng = np.random.default_rng(n)
  images = rng.normal(size=(n, height, width, channels)).astype(np.float32)
  w = rng.normal(size=(size, size, channels, filters)).astype(np.float32)
  return images, w, stride


def _loop(images, w, stride):
  """In float64."""
  size = w.shape[0]
  rows, columns = ((side - size) // stride + 1 for side in images.shape[1:3])
  out = np.zeros((len(images), rows, columns, w.shape[3]))
  for n, i, j, f in np.ndindex(*out.shape):
    top, left = i * stride, j * stride
    patch = images[n, top : top + size, left : left + size].astype(np.float64)
    out[n, i, j, f] = np.sum(patch * w[..., f])
  return out


@pytest.mark.parametrize("case", CASES)
def test_values_and_gradients_are_those_of_a_plain_loop(case):
  """The output is linear in each argument: the loop's derivative along a direction."""
  images, w, stride = _draw(*case)
  expected = _loop(images, w, stride)
  weights = np.random.default_rng(9).normal(size=expected.shape).astype(np.float32)

  @jax.jit
  def run(images, w):
    values, pull = jax.vjp(lambda *x: convolution.convolve(*x, stride), images, w)
    return values, convolution.by_patches(images, w, stride), pull(weights)

  values, patched, (by_images, by_w) = run(images, w)
  np.testing.assert_allclose(values, expected, rtol=1e-5, atol=1e-5)
  np.testing.assert_allclose(patched, expected, rtol=1e-5, atol=1e-5)
  others, v = images[::-1] + 1, w[::-1] + 1
  assert np.sum(by_images * others) == pytest.approx(
    np.sum(weights * _loop(others, w, stride)), rel=1e-4
  )
  assert np.sum(by_w * v) == pytest.approx(
    np.sum(weights * _loop(images, v, stride)), rel=1e-4
  )


def test_has_the_weights_of_haikus():
  x = jnp.ones((2, 6, 6, 3))
  ours = hk.transform(lambda x: convolution.Convolution2D(4, 3, 2)(x))
  theirs = hk.transform(lambda x: hk.Conv2D(4, 3, 2, padding="VALID")(x))
  params = ours.init(jax.random.PRNGKey(0), x)
  expected = theirs.init(jax.random.PRNGKey(0), x)
  assert jax.tree.structure(params) == jax.tree.structure(expected)
  for a, b in zip(jax.tree.leaves(params), jax.tree.leaves(expected), strict=True):
    np.testing.assert_array_equal(a, b)
  params = jax.tree.map(lambda x: x + 0.5, params)  # The bias counts.
  np.testing.assert_allclose(
    ours.apply(params, None, x), theirs.apply(params, None, x), rtol=1e-5
  )
