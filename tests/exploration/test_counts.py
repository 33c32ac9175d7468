"""Visit counts and the hashing of observations."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax import exploration

pytestmark = pytest.mark.core


def test_counts_are_those_of_a_loop():
  rng = np.random.default_rng(0)
  expected = np.zeros((4, 3), int)
  counts = exploration.init_counts(4, 3)
  visit = jax.jit(exploration.count_visit)
  for state, action, amount in zip(
    rng.integers(4, size=100),
    rng.integers(3, size=100),
    rng.integers(2, size=100),
    strict=True,
  ):
    counts = visit(counts, state, action, amount)
    expected[state, action] += amount
  np.testing.assert_array_equal(counts, expected)
  assert counts.dtype == jnp.int32
  bonus = jax.jit(exploration.count_bonus)
  for place in np.ndindex(4, 3):
    np.testing.assert_allclose(
      bonus(counts, *place), (expected[place] + 0.01) ** -0.5, rtol=1e-5
    )


def test_bonuses_at_the_ends():
  counts = exploration.init_counts(1, 1)
  one = exploration.count_visit(counts, jnp.int32(0), jnp.int32(0))
  np.testing.assert_array_equal(one, [[1]])  # A visit counts once by default.
  zero = jnp.int32(0)
  np.testing.assert_allclose(exploration.count_bonus(counts, zero, zero), 10.0)
  np.testing.assert_allclose(
    exploration.count_bonus(counts + 4, zero, zero, pseudo_count=0.0), 0.5, rtol=1e-6
  )


@pytest.mark.parametrize("place", [(2, 0), (-1, 0), (0, 3), (0, -1)])
def test_places_outside_the_table_are_refused_or_count_nothing(place):
  counts = exploration.init_counts(2, 3)
  for function in (exploration.count_visit, exploration.count_bonus):
    with pytest.raises(ValueError, match=rf"{function.__name__}: (state|action) is"):
      function(counts, *map(jnp.int32, place))
  assert np.isnan(jax.jit(exploration.count_bonus)(counts, *place))
  assert not jax.jit(exploration.count_visit)(counts, *place).any()


def test_equal_observations_share_a_bucket():
  hashed = jax.jit(exploration.hash_observation, static_argnums=1)
  bucket = hashed(np.array([[0.0, 1.5], [-2.0, 3.0]], np.float32), 1000)
  assert bucket.dtype == jnp.int32 and bucket.shape == ()
  minus_zero = jnp.array([[-0.0, 1.5], [-2.0, 3.0]])
  assert bucket == hashed(minus_zero, 1000)
  assert bucket == exploration.hash_observation(minus_zero, 1000)


@pytest.mark.parametrize(
  ("dtype", "values"), [(jnp.float32, 3), (jnp.int32, 3), (jnp.uint8, 3), (bool, 2)]
)
def test_places_and_values_matter(dtype, values):
  """All observations of eight cells with so many values have their own buckets."""
  cells = np.stack(np.meshgrid(*[np.arange(values)] * 8), axis=-1).reshape(-1, 8)
  hashed = jax.vmap(lambda x: exploration.hash_observation(x, 2**31 - 1))(
    jnp.asarray(cells, dtype)
  )
  assert len(np.unique(hashed)) >= len(cells) - 1  # 0.01 collisions are expected.
  assert int(hashed.min()) >= 0


def test_visits_of_an_episode_are_those_of_a_dictionary():
  rng = np.random.default_rng(0)
  counts = exploration.init_episodic_counts(5)
  visit = jax.jit(exploration.count_episodic_visit)
  for _ in range(6):
    seen = {}
    counts = exploration.clear_episodic_counts(counts)
    for state in rng.integers(5, size=rng.integers(1, 15)):
      seen[state] = seen.get(state, 0) + 1
      visits, counts = visit(counts, state)
      assert visits == seen[state] and visits.dtype == jnp.int32
