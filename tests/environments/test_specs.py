"""One-hot specs, images with state, and how observations are encoded."""

import collections
import json
import pickle

import dm_env
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tree

from explorax import networks
from explorax.environments import encodings, specs


@pytest.mark.parametrize(
  ("shape", "lower_triangle"), [((5,), False), ((2, 1, 3), False), ((3, 3), True)]
)
def test_one_hot_index_is_the_position_of_the_one(shape, lower_triangle):
  """−1 if there is none; in the lower triangle, positions are counted row by row."""
  encode = encodings.OneHotIndex(
    specs.OneHotArray(shape, lower_triangle=lower_triangle)
  )
  on_device = jax.jit(encode.on_device)
  positions = [x for x in np.ndindex(shape) if not lower_triangle or x[0] >= x[1]]
  for index in range(-1, len(positions)):
    observation = np.zeros(shape, np.float32)
    if index >= 0:
      observation[positions[index]] = 1.0
    encoded = encode(observation)
    assert encoded == index == on_device(observation)
    encode.spec.validate(encoded)
  assert encode.spec.maximum == len(positions) - 1
  assert encode.spec.num_entries == np.prod(shape)


def test_a_one_above_the_diagonal_is_refused():
  encode = encodings.OneHotIndex(specs.OneHotArray((3, 3), lower_triangle=True))
  observation = np.zeros((3, 3), np.float32)
  observation[0, 2] = 1.0
  with pytest.raises(ValueError, match="in row 0 and column 2, above the diagonal"):
    encode(observation)
  index = encode.on_device(jnp.asarray(observation))
  weights = jnp.ones((6, 2))
  assert np.isnan(networks.make_inputs(encode.spec).linear(index[None], weights)).all()


WITH_STATE = specs.ImageWithState((3, 4, 2), ("x", "y", "keys"), "screen")


def test_an_image_and_its_state_are_joined_and_taken_apart():
  image = np.random.default_rng(0).integers(0, 256, (2, 4, 2), dtype=np.uint8)
  joined = WITH_STATE.join(image, [7, 255, 1])
  WITH_STATE.validate(joined)
  np.testing.assert_array_equal(joined[:2], image)
  # Along the row, pixel by pixel; what is left of it is 0.
  np.testing.assert_array_equal(joined[2].ravel(), [7, 255, 1, 0, 0, 0, 0, 0])
  batch = np.stack([joined] * 5)
  for array in (joined, batch, jnp.asarray(batch)):
    seen, state = WITH_STATE.image(array), WITH_STATE.state(array)
    assert seen.dtype == state.dtype == np.uint8
    lead = array.shape[:-3]
    np.testing.assert_array_equal(seen, np.broadcast_to(image, (*lead, 2, 4, 2)))
    np.testing.assert_array_equal(state, np.broadcast_to([7, 255, 1], (*lead, 3)))


@pytest.mark.parametrize(
  ("spec", "other"),
  [
    (specs.OneHotArray((2, 3), "x"), {"start": 1}),
    (specs.OneHotArray((2, 2), "x", lower_triangle=True), {"lower_triangle": False}),
    (WITH_STATE, {"entries": ("x",)}),
    (specs.StackedFrames((3, 4, 6), np.uint8, 3, "x"), {"num_frames": 2}),
    (specs.CategoricalImage((7, 7, 1), (("object", 4),)), {"channels": ()}),
    (specs.JoinedArrays(((("a", 0), 2, None), (("b",), 3, 1))), {"parts": ()}),
  ],
)
def test_specs_survive_pickling_and_records(spec, other):
  whole = specs.EnvironmentSpec(spec, dm_env.specs.DiscreteArray(3, np.int32, "action"))
  record = json.loads(json.dumps(specs.to_record(whole)))
  twins = (pickle.loads(pickle.dumps(spec)), specs.from_record(record).observations)
  for twin in (*twins, spec.replace()):
    assert type(twin) is type(spec) and twin == spec and repr(twin) == repr(spec)
  assert spec.replace(**other) != spec
  assert dm_env.specs.Array(spec.shape, spec.dtype, spec.name) != spec


def test_the_parts_of_a_record_are_found_by_their_fields():
  record = collections.namedtuple("Record", ["position", "door"])
  position, door = dm_env.specs.Array((2,), np.float32), dm_env.specs.DiscreteArray(3)
  leaves = tree.flatten_with_path(record(position, {"open": door}))
  joined = specs.joined(leaves).join(record([0.5, 2.0], {"open": 1}))
  np.testing.assert_array_equal(joined, [0.5, 2.0, 0.0, 1.0, 0.0])
