"""Images with their axes in any order, and observations of several parts."""

import dm_env
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax import environments
from explorax.environments import encodings, specs

SPACES = gymnasium.spaces


class Random(gymnasium.Env):
  """Samples of its space, the same for every layout, in episodes of ten steps."""

  action_space = SPACES.Discrete(2)

  def __init__(self, space, axes=None):
    self._space, self._axes = space, axes
    self.observation_space = space
    if axes is not None:
      shape = [space.shape[axis] for axis in axes]
      self.observation_space = SPACES.Box(0, 255, tuple(shape), np.uint8)

  def reset(self, *, seed=None, options=None):
    if seed is not None:
      self._space.seed(seed)
    self._time = 0
    return self._observe(), {}

  def step(self, action):
    self._time += 1
    return self._observe(), float(action), self._time == 10, False, {}

  def _observe(self):
    observation = self._space.sample()
    return observation if self._axes is None else observation.transpose(self._axes)


@pytest.mark.parametrize(
  ("shape", "encoded"),
  [
    ((4, 84, 84), (84, 84, 4)),
    ((12, 84, 84), (84, 84, 12)),
    ((3, 210, 160), (210, 160, 3)),
    ((20, 8, 8), (8, 8, 20)),
    ((84, 84), (84, 84, 1)),
    ((4, 84, 84, 3), (84, 84, 12)),
    ((4, 3, 84, 84), (84, 84, 12)),
    *((x, x) for x in ((84, 84, 4), (210, 160, 3), (7, 7, 3), (8, 8, 20))),
    *((x, x) for x in ((10, 10), (2, 3, 4), (7,), (12, 12, 12), ())),
  ],
)
def test_images_have_their_channels_last(shape, encoded):
  image = np.random.default_rng(0).integers(256, size=shape, dtype=np.uint8)
  spec = dm_env.specs.Array(shape, np.uint8)
  encode = encodings.make(spec)
  expected = specs.to_image(image)
  assert encode.spec.shape == expected.shape == encoded
  np.testing.assert_array_equal(encode(image), expected)
  np.testing.assert_array_equal(jax.jit(encode.on_device)(jnp.asarray(image)), expected)
  again = encodings.make(encode.spec)  # What is encoded stays as it is.
  np.testing.assert_array_equal(again(expected), expected)
  if len(shape) == 3 and shape != encoded:
    np.testing.assert_array_equal(expected, image.transpose(1, 2, 0))
  if len(shape) == 4:  # Frames.
    frames = image if shape[-1] == 3 else image.transpose(0, 2, 3, 1)
    np.testing.assert_array_equal(expected, np.concatenate([*frames], axis=-1))


def test_floats_are_images_if_their_sides_are_those_of_a_picture():
  assert specs.to_image(np.zeros((3, 64, 64), np.float32)).shape == (64, 64, 3)
  assert specs.to_image(np.zeros((3, 9, 9), np.float32)).shape == (3, 9, 9)


PARTS = SPACES.Dict(
  b=SPACES.Discrete(3, start=2),
  a=SPACES.Box(0, 1, (2, 2), np.float64),
  c=SPACES.Tuple((SPACES.MultiBinary(2), SPACES.MultiDiscrete([3, 4]))),
)


def test_dicts_and_tuples_become_one_vector():
  class Fixed(Random):
    def _observe(self):
      c = (np.array([1, 0], np.int8), np.array([2, 3]))
      return {"b": np.int64(3), "a": np.array([[0.1, 0.2], [0.3, 0.4]]), "c": c}

  env = Fixed(PARTS)
  made = environments.wrap(env, seed=0)
  observation = made.reset().observation
  np.testing.assert_allclose(
    observation, [0.1, 0.2, 0.3, 0.4, 0, 1, 0, 1, 0, 2, 3], rtol=1e-6
  )
  assert observation.dtype == np.float32
  spec = made.observation_spec()
  spec.validate(observation)
  # What the environment gives is encoded alike.
  counted = made.raw.reset().observation
  np.testing.assert_array_equal(encodings.to_array(spec, counted), observation)


@pytest.mark.parametrize(
  ("space", "shape"),
  [
    (SPACES.Tuple((SPACES.Discrete(3), SPACES.Box(0, 1, (2,)))), (5,)),
    (SPACES.Dict(image=SPACES.Box(0, 255, (3, 40, 40), np.uint8)), (40, 40, 3)),
    (SPACES.Dict(only=SPACES.Discrete(4)), (4,)),
  ],
)
def test_a_tuple_is_joined_and_a_single_part_stays_as_it_is(space, shape):
  made = environments.wrap(Random(space), seed=0)
  assert made.observation_spec().shape == shape
  for _ in range(12):
    made.observation_spec().validate(made.step(0).observation)


def test_specs_of_dm_env_in_dicts_are_joined():
  class Parts(dm_env.Environment):
    def reset(self):
      return dm_env.restart({"y": np.float64(0.5), "x": [1, 2]})

    def step(self, action):
      return dm_env.transition(0.0, {"x": [1, 2]})

    def observation_spec(self):
      scalar = dm_env.specs.Array((), np.float64)
      return {"y": scalar, "x": dm_env.specs.Array((2,), np.int32)}

    def action_spec(self):
      return dm_env.specs.DiscreteArray(2)

  made = environments.wrap(Parts(), seed=0)
  assert made.reset().observation.tolist() == [1.0, 2.0, 0.5]
  with pytest.raises(ValueError, match=r"at step 1 of episode 1, 'y'"):
    made.step(0)


def test_parts_that_are_no_numbers_are_refused():
  pixels = SPACES.Box(0, 255, (3, 40, 40), np.uint8)
  env = Random(SPACES.Dict(image=pixels, mission=SPACES.Text(5)))
  with pytest.raises(TypeError, match=r"\['mission'\].*FilterObservation"):
    environments.wrap(env, seed=0)
  filtered = gymnasium.wrappers.FilterObservation(env, ["image"])
  assert environments.wrap(filtered, seed=0).reset().observation.shape == (40, 40, 3)


@pytest.mark.parametrize(
  ("spec", "one"),
  [
    (dm_env.specs.Array((2,), np.float32), [0.5, 1.5]),
    (dm_env.specs.Array((40, 40, 3), np.uint8), np.ones((3, 40, 40))),
    (dm_env.specs.Array((40, 40, 1), np.uint8), np.ones((40, 40))),
    (specs.OneHotArray((4,), start=2), 5),
  ],
)
def test_a_batch_of_raw_observations_is_converted_one_by_one(spec, one):
  expected = encodings.to_array(spec, one)
  spec.validate(expected)
  single, is_batch = encodings.to_batch(spec, one)
  assert not is_batch
  np.testing.assert_array_equal(single, expected[None])
  many, is_batch = encodings.to_batch(spec, np.stack([one] * 3))
  assert is_batch
  np.testing.assert_array_equal(many, np.stack([expected] * 3))
  with pytest.raises(ValueError, match=r"has the shape \(3, 9\)"):
    encodings.to_batch(spec, np.zeros((3, 9)))
