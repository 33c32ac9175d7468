"""The bonus of pseudo-counts: what it looks at, and what it refuses."""

import dm_env
import jax
import numpy as np
import pytest

from explorax import exploration
from explorax.agents.bonuses import pseudo_counts
from explorax.environments import specs

IMAGE = dm_env.specs.BoundedArray((8, 6, 2), np.uint8, 0, 255)
INDEX = dm_env.specs.BoundedArray((), np.int32, -1, 4)
SMALL = pseudo_counts.PseudoCounts(side=4, num_levels=3, depth=2, num_buckets=20)


def test_an_image_is_counted_by_its_newest_channel(play):
  bonus = SMALL.build(IMAGE, 3)
  assert bonus.end == "destination" and bonus.acting.training is None
  frames = np.random.default_rng(0).integers(0, 256, (3, 8, 6, 2), dtype=np.uint8)
  (rewards,), _ = play(bonus.acting, [frames])
  older = frames.copy()
  older[..., 0] = 255 - older[..., 0]
  assert play(bonus.acting, [older])[0] == [rewards]

  @jax.jit
  def visit(model, frame):
    gain, model = exploration.observe_picture(model, exploration.shrink(frame, 4, 3))
    return exploration.pseudo_count_bonus(gain), model

  model, expected = exploration.init_density(16, 3, 2, 20), []
  for frame in frames:
    value, model = visit(model, frame)
    expected.append(float(value))
  np.testing.assert_allclose(rewards, expected, rtol=1e-5)


def test_one_hot_observations_are_levels_of_one_pixel(play):
  bonus = SMALL.build(INDEX, 3)
  (rewards,), _ = play(bonus.acting, [np.array([-1, 2, 2, 2, 4, 2], np.int32)])
  assert rewards[1] > rewards[2] > rewards[3] > rewards[5]
  assert rewards[4] > rewards[3]
  # The zeros after an episode's end are an observation like any other.
  (zeros,), _ = play(bonus.acting, [np.array([-1, -1], np.int32)])
  assert zeros[1] < zeros[0] == rewards[0]
  assert play(bonus.acting, [[np.int32(3)]])[0] == [rewards[:1]]  # The last one counts.


def test_refuses_other_observations():
  spec = specs.CategoricalImage((8, 6, 1), (("object", 4),))
  with pytest.raises(ValueError, match=r"PseudoCounts supports images .* use another"):
    SMALL.build(spec, 3)
