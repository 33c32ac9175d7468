"""The bonus of pseudo-counts: what it looks at, and what it refuses."""

import dm_env
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax import exploration
from explorax.agents.bonuses import pseudo_counts
from explorax.environments import specs

IMAGE = dm_env.specs.BoundedArray((8, 6, 2), np.uint8, 0, 255)
INDEX = dm_env.specs.BoundedArray((), np.int32, -1, 4)
SMALL = pseudo_counts.PseudoCounts(side=4, num_levels=3, depth=2, num_buckets=20)


def observe(bonus, observations, last=False):
  """The bonuses of one observation after the other."""
  half = bonus.acting
  model, rewards, step = half.init(), [], jax.jit(half.observe)
  for observation in observations:
    r_int, model = step((), model, observation, jnp.int32(0), jnp.bool_(last))
    rewards.append(float(r_int))
  return rewards


def test_an_image_is_counted_by_its_newest_channel():
  bonus = SMALL.build(IMAGE, 3)
  assert bonus.end == "destination" and bonus.acting.training is None
  frames = np.random.default_rng(0).integers(0, 256, (3, 8, 6, 2), dtype=np.uint8)
  rewards = observe(bonus, frames)
  older = frames.copy()
  older[..., 0] = 255 - older[..., 0]
  assert observe(bonus, older) == rewards
  model, expected = exploration.init_density(16, 3, 2, 20), []
  for frame in frames:
    picture = exploration.shrink(frame, 4, 3)
    gain, model = exploration.observe_picture(model, picture)
    expected.append(float(exploration.pseudo_count_bonus(gain)))
  np.testing.assert_allclose(rewards, expected, rtol=1e-5)


def test_one_hot_observations_are_levels_of_one_pixel():
  bonus = SMALL.build(INDEX, 3)
  rewards = observe(bonus, jnp.array([-1, 2, 2, 2, 4, 2], jnp.int32))
  assert rewards[1] > rewards[2] > rewards[3] > rewards[5]
  assert rewards[4] > rewards[3]
  # The zeros after an episode's end are an observation like any other.
  assert observe(bonus, jnp.array([-1, -1], jnp.int32))[1] < rewards[0]
  assert observe(bonus, jnp.array([3], jnp.int32), last=True)[0] == rewards[0]


def test_refuses_other_observations():
  spec = specs.CategoricalImage((8, 6, 1), (("object", 4),))
  with pytest.raises(ValueError, match=r"PseudoCounts supports images .* use another"):
    SMALL.build(spec, 3)
