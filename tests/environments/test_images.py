"""Images with their axes in any order, and observations of several parts."""

import json
import pickle

import dm_env
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax import environments
from explorax.environments import encodings, spec_records, specs

pytestmark = pytest.mark.newest
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
  ("shape", "layout"),
  [
    ((4, 84, 84), "chw"),
    ((12, 84, 84), "chw"),
    ((3, 64, 64), "chw"),
    ((3, 210, 160), "chw"),
    ((20, 8, 8), "chw"),
    ((84, 84), "hw"),
    ((4, 84, 84, 3), "fhwc"),
    ((4, 3, 84, 84), "fchw"),
    ((84, 84, 4), None),
    ((210, 160, 3), None),
    ((7, 7, 3), None),
    ((8, 8, 20), None),
    ((10, 10), None),
    ((2, 3, 4), None),
    ((7,), None),
  ],
)
def test_the_layout_is_found_from_the_shape(shape, layout):
  spec = specs.of_array(shape, np.uint8)
  assert getattr(spec, "layout", None) == layout
  assert spec == pickle.loads(pickle.dumps(spec))
  whole = specs.EnvironmentSpec(spec, dm_env.specs.DiscreteArray(2, np.int32, "action"))
  assert (
    spec_records.from_record(json.loads(json.dumps(spec_records.to_record(whole))))
    == whole
  )
  if layout is None:
    assert encodings.make(spec).spec.shape == shape
    return
  sides = dict(zip(layout, shape, strict=True))
  channels = sides.get("f", 1) * sides.get("c", 1)
  assert encodings.make(spec).spec.shape == (sides["h"], sides["w"], channels)


@pytest.mark.parametrize(
  ("shape", "layout"),
  [((64, 64, 3), None), ((3, 64, 64), "chw"), ((3, 9, 9), None), ((40, 40), None)],
)
def test_floats_are_images_if_their_sides_are_those_of_a_picture(shape, layout):
  spec = specs.of_array(shape, np.float32)
  assert getattr(spec, "layout", None) == layout


def test_encoding_turns_the_axes_and_joins_frames():
  image = np.random.default_rng(0).integers(256, size=(4, 6, 7, 3), dtype=np.uint8)
  encode = encodings.make(specs.of_array((4, 6, 7, 3), np.uint8))
  encoded = encode(image)
  for frame in range(4):
    np.testing.assert_array_equal(encoded[..., 3 * frame : 3 * frame + 3], image[frame])
  np.testing.assert_array_equal(jax.jit(encode.on_device)(jnp.asarray(image)), encoded)
  turned = encodings.make(specs.of_array((3, 6, 7), np.uint8))
  np.testing.assert_array_equal(turned(image[0].transpose(2, 0, 1)), encoded[..., :3])


def test_an_unclear_layout_is_asked_for_and_can_be_given():
  env = Random(SPACES.Box(0, 255, (12, 12, 12), np.uint8))
  with pytest.raises(ValueError, match="layout=hwc or ,layout=chw") as raised:
    environments.wrap(env, seed=0)
  assert str(raised.value).count(". ") == 0
  for layout, shape in (
    ("hwc", (12, 12, 12)),
    ("chw", (12, 12, 12)),
    ("flat", (1728,)),
  ):
    made = environments.wrap(env, seed=0, layout=layout)
    encoding = environments.make_encoding(made.observation_spec())
    assert encoding.spec.shape == shape
    assert encoding(made.reset().observation).shape == shape
  for wrong in ("chwx", "hw"):
    with pytest.raises(ValueError, match=wrong):
      environments.wrap(env, seed=0, layout=wrong)


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
  assert spec == pickle.loads(pickle.dumps(spec))
  of_environment = environments.spec(made)
  record = json.loads(json.dumps(spec_records.to_record(of_environment)))
  assert spec_records.from_record(record) == of_environment
  # What the environment gives is encoded alike.
  counted = made.raw.reset().observation
  np.testing.assert_array_equal(environments.make_encoding(spec)(counted), observation)


@pytest.mark.parametrize(
  ("space", "shape"),
  [
    (SPACES.Tuple((SPACES.Discrete(3), SPACES.Box(0, 1, (2,)))), (5,)),
    (SPACES.Dict(image=SPACES.Box(0, 255, (3, 40, 40), np.uint8)), (3, 40, 40)),
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
  with pytest.raises(ValueError, match=r"without \['y'\] at step 1 of episode 1"):
    made.step(0)


def test_advice_on_parts_that_are_no_numbers_works():
  pixels = SPACES.Box(0, 255, (3, 40, 40), np.uint8)
  env = Random(SPACES.Dict(image=pixels, mission=SPACES.Text(5)))
  with pytest.raises(TypeError, match="FilterObservation") as raised:
    environments.wrap(env, seed=0)
  advice = str(raised.value).partition("gymnasium.wrappers.")[2].removesuffix(".")
  filtered = eval(f"gymnasium.wrappers.{advice}", {"gymnasium": gymnasium, "env": env})
  made = environments.wrap(filtered, seed=0)
  assert made.reset().observation.shape == (3, 40, 40)


def test_advice_on_actions_works():
  env = Random(SPACES.Box(0, 1, (2,)))
  env.action_space = SPACES.MultiDiscrete([2, 3])
  with pytest.raises(TypeError, match="TransformAction"):
    environments.wrap(env, seed=0)
  env.step = lambda action: (np.zeros(2), float(action @ [10, 1]), False, False, {})
  numbered = gymnasium.wrappers.TransformAction(
    env, lambda action: np.array(divmod(int(action), 3)), SPACES.Discrete(6)
  )
  made = environments.wrap(numbered, seed=0)
  made.reset()
  assert [made.step(action).reward for action in range(6)] == [0, 1, 2, 10, 11, 12]
