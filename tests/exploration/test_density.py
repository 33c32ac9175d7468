"""The density of pictures, against dictionaries and loops."""

import collections
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax import exploration

pytestmark = pytest.mark.core

NEIGHBOURS = ((0, -1), (-1, 0), (-1, -1), (-1, 1))


class Oracle:
  """One pixel, one context at a time; contexts are tuples of levels."""

  def __init__(self, num_levels: int, depth: int):
    self.num_levels, self.depth = num_levels, depth
    self.counts = collections.defaultdict(lambda: np.zeros(num_levels))
    # Log probabilities of all data seen in a context, by either predictor.
    self.log_estimates = collections.defaultdict(float)
    self.log_below = collections.defaultdict(float)

  def contexts(self, picture, i, j):
    height, width = picture.shape
    levels = []
    for row, column in NEIGHBOURS[: self.depth]:
      y, x = i + row, j + column
      inside = 0 <= y < height and 0 <= x < width
      levels.append(picture[y, x] if inside else "border")
    return [(i, j, *levels[:d]) for d in range(self.depth + 1)]

  def predict(self, context_nodes, level):
    """The root's probability, and each depth's estimate and below."""
    below, parts = None, []
    for node in reversed(context_nodes):
      n = self.counts[node]
      estimate = (n[level] + 1 / self.num_levels) / (n.sum() + 1)
      if below is None:
        below = estimate
        continue
      a, b = math.exp(self.log_estimates[node]), math.exp(self.log_below[node])
      parts.append((node, estimate, below))
      below = (a * estimate + b * below) / (a + b)
    return below, parts

  def log_prob(self, picture):
    total = 0.0
    for (i, j), level in np.ndenumerate(picture):
      total += math.log(self.predict(self.contexts(picture, i, j), level)[0])
    return total

  def learn(self, picture):
    for (i, j), level in np.ndenumerate(picture):
      nodes = self.contexts(picture, i, j)
      for node, estimate, below in self.predict(nodes, level)[1]:
        self.log_estimates[node] += math.log(estimate)
        self.log_below[node] += math.log(below)
      for node in nodes:
        self.counts[node][level] += 1


@pytest.mark.parametrize(("num_levels", "depth"), [(2, 4), (3, 2), (4, 0)])
def test_gain_is_that_of_a_plain_context_tree(num_levels, depth):
  rng = np.random.default_rng(0)
  first, second = rng.integers(0, num_levels, (2, 3, 4))
  model = exploration.init_density(12, num_levels, depth)
  oracle = Oracle(num_levels, depth)
  observe = jax.jit(exploration.observe_picture)
  for picture in (first, first, second, first, second, second):
    before = oracle.log_prob(picture)
    oracle.learn(picture)
    gain, model = observe(model, jnp.asarray(picture, jnp.int32))
    np.testing.assert_allclose(
      gain, oracle.log_prob(picture) - before, rtol=1e-4, atol=1e-4
    )


def test_bonus_is_its_formula():
  for gain in (1e-4, 0.1, 1.0, 5.0):
    pseudo_count = 1 / math.expm1(gain)
    np.testing.assert_allclose(
      exploration.pseudo_count_bonus(jnp.float32(gain)),
      (pseudo_count + 0.01) ** -0.5,
      rtol=1e-3,
    )
  for gain, bonus in ((0.0, 0.0), (-1.0, 0.0), (1000.0, 10.0)):
    np.testing.assert_allclose(
      exploration.pseudo_count_bonus(jnp.float32(gain)), bonus, rtol=1e-6
    )


@pytest.mark.parametrize("shape", [(6, 8, 2), (5, 7, 1), (2, 3, 3)])
def test_shrinking_averages_over_areas(shape):
  image = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
  side, fine = 4, 12
  newest = image[:, :, -1].astype(np.float64)
  # Every pixel cut into parts that fall into one pixel of the small picture each.
  height, width = shape[:2]
  cut = np.repeat(np.repeat(newest, side * fine, 0), side * fine, 1)
  blocks = cut.reshape(side, height * fine, side, width * fine)
  expected = np.floor(blocks.mean(axis=(1, 3)) * 8 / 256 + 1e-4)
  np.testing.assert_array_equal(exploration.shrink(image, side, 8), expected)
  # The least grey of a level is in it, whatever the rounding.
  for grey, level in ((0, 0), (96, 3)):
    small = exploration.shrink(np.full_like(image, grey), side, 8)
    np.testing.assert_array_equal(small, level)


def test_contexts_that_share_a_row_share_what_is_learnt():
  """With one row each depth is the same predictor, so that none gains on another."""
  pictures = np.random.default_rng(0).integers(0, 2, (4, 2, 3))
  crowded = exploration.init_density(6, 2, depth=3, num_buckets=1)
  plain = exploration.init_density(6, 2, depth=0, num_buckets=1)
  observe = jax.jit(exploration.observe_picture)
  for picture in pictures:
    gain, crowded = observe(crowded, jnp.asarray(picture))
    expected, plain = observe(plain, jnp.asarray(picture))
    np.testing.assert_allclose(gain, expected, rtol=1e-5)
  np.testing.assert_allclose(crowded.log_odds, 0.0, atol=1e-6)
