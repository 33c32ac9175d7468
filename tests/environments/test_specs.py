"""One-hot specs, images with state, and how observations are encoded."""

import pickle

import dm_env
import hypothesis
import hypothesis.strategies as st
import jax.numpy as jnp
import numpy as np
import pytest

from explorax.environments import specs

pytestmark = pytest.mark.ops

_SHAPES = st.lists(st.integers(1, 6), min_size=1, max_size=3).map(tuple)


@hypothesis.settings(max_examples=50, deadline=None, derandomize=True)
@hypothesis.given(shape=_SHAPES, data=st.data())
def test_one_hot_index_is_the_flat_position_of_the_one(shape, data):
  encode = specs.OneHotIndex(specs.OneHotArray(shape))
  index = data.draw(st.integers(0, int(np.prod(shape)) - 1))
  observation = np.zeros(shape, np.float32)
  observation[np.unravel_index(index, shape)] = 1.0
  encoded = encode(observation)
  assert encoded == index
  encode.spec.validate(encoded)


@hypothesis.settings(max_examples=20, deadline=None, derandomize=True)
@hypothesis.given(shape=_SHAPES)
def test_all_zeros_are_minus_one(shape):
  encode = specs.OneHotIndex(specs.OneHotArray(shape))
  encoded = encode(np.zeros(shape, np.float32))
  assert encoded == -1
  encode.spec.validate(encoded)


@pytest.mark.parametrize("entry", [0.5, 2.0, np.nan, np.inf])
def test_one_hot_index_refuses_what_is_no_one_hot(entry):
  encode = specs.OneHotIndex(specs.OneHotArray((3,)))
  with pytest.raises(ValueError, match="largest entry of a one-hot observation"):
    encode(np.array([0.0, entry, 0.0], np.float32))


def test_one_hot_index_refuses_negative_entries_only():
  encode = specs.OneHotIndex(specs.OneHotArray((2,)))
  with pytest.raises(ValueError, match=r"is -1\.0"):
    encode(np.array([-1.0, -2.0], np.float32))


@pytest.mark.parametrize(
  ("entries", "valid"),
  [
    ([0.0, 0.0, 0.0], True),
    ([0.0, 1.0, 0.0], True),
    ([1.0, 1.0, 0.0], False),
    ([0.0, 0.5, 0.0], False),
    ([0.0, 1.0, 0.25], False),
    ([0.0, 2.0, 0.0], False),
    ([0.0, np.nan, 0.0], False),
  ],
)
def test_one_hot_array_validates(entries, valid):
  spec = specs.OneHotArray((3,), "x")
  array = np.array(entries, np.float32)
  if valid:
    np.testing.assert_array_equal(spec.validate(array), array)
  else:
    with pytest.raises(ValueError):
      spec.validate(array)


def test_one_hot_array_survives_pickling_and_replacing():
  spec = specs.OneHotArray((2, 3), "x")
  for twin in (pickle.loads(pickle.dumps(spec)), spec.replace()):
    assert isinstance(twin, specs.OneHotArray)
    assert (twin.shape, twin.name, twin.num_values) == ((2, 3), "x", 6)
  assert spec.replace(shape=(4,)).num_values == 4
  assert repr(spec) == "OneHotArray(shape=(2, 3), name='x')"
  spec.validate(spec.generate_value())


def test_one_hot_array_refuses_an_empty_shape():
  with pytest.raises(ValueError, match="no entry that could be 1"):
    specs.OneHotArray((3, 0))


@pytest.mark.parametrize(
  ("dtype", "stored"),
  [
    (np.uint8, np.uint8),
    (np.float32, np.float32),
    (np.float64, np.float32),
    (np.int64, np.float32),
    (bool, np.float32),
  ],
)
def test_dense_stores_float32_or_uint8(dtype, stored):
  encode = specs.Dense(dm_env.specs.Array((2, 2), dtype, "x"))
  observation = np.array([[0, 1], [1, 0]], dtype)
  encoded = encode(observation)
  assert encode.spec.dtype == stored
  encode.spec.validate(encoded)
  np.testing.assert_array_equal(encoded, observation.astype(stored))


def test_make_encoding_goes_by_the_spec():
  assert isinstance(specs.make_encoding(specs.OneHotArray((3,))), specs.OneHotIndex)
  dense = specs.make_encoding(dm_env.specs.Array((3,), np.float32))
  assert isinstance(dense, specs.Dense)


WITH_STATE = specs.ImageWithState((3, 4, 2), ("x", "y", "keys"), "screen")


def test_an_image_and_its_state_are_joined_and_taken_apart():
  rng = np.random.default_rng(0)
  image = rng.integers(0, 256, (2, 4, 2), dtype=np.uint8)
  joined = WITH_STATE.join(image, [7, 255, 1])
  WITH_STATE.validate(joined)
  np.testing.assert_array_equal(joined[:2], image)
  # Along the row, pixel by pixel; what is left of it is 0.
  np.testing.assert_array_equal(joined[2].ravel(), [7, 255, 1, 0, 0, 0, 0, 0])
  for batch in (joined, np.stack([joined] * 5), np.stack([joined] * 6)[None]):
    for array in (batch, jnp.asarray(batch)):
      lead = batch.shape[:-3]
      seen, state = WITH_STATE.image(array), WITH_STATE.state(array)
      assert seen.dtype == state.dtype == np.uint8
      np.testing.assert_array_equal(seen, np.broadcast_to(image, (*lead, 2, 4, 2)))
      np.testing.assert_array_equal(state, np.broadcast_to([7, 255, 1], (*lead, 3)))


def test_an_image_with_state_survives_pickling_replacing_and_encoding():
  encoded = specs.make_encoding(WITH_STATE)
  for twin in (
    pickle.loads(pickle.dumps(WITH_STATE)),
    WITH_STATE.replace(),
    encoded.spec,
  ):
    assert isinstance(twin, specs.ImageWithState) and twin == WITH_STATE
    assert (twin.shape, twin.dtype, twin.name) == ((3, 4, 2), np.uint8, "screen")
    assert (twin.entries, twin.num_state) == (("x", "y", "keys"), 3)
  assert WITH_STATE.replace(entries=("x",)) != WITH_STATE
  assert WITH_STATE.replace(shape=(3, 4, 1)) != WITH_STATE
  assert WITH_STATE.image_spec == dm_env.specs.Array((2, 4, 2), np.uint8)
  assert "entries=('x', 'y', 'keys')" in repr(WITH_STATE)
  observation = WITH_STATE.generate_value()
  np.testing.assert_array_equal(encoded(observation), observation)
  assert encoded(observation).dtype == np.uint8


@pytest.mark.parametrize(
  ("shape", "entries", "message"),
  [
    ((3, 4), ("x",), r"cannot have the shape \(3, 4\)"),
    ((1, 4, 1), ("x",), "cannot have the shape"),
    ((3, 0, 1), ("x",), "cannot have the shape"),
    ((3, 2, 1), ("x", "y", "z"), "room for 1 to 2 numbers, but 3 are named"),
    ((3, 2, 1), (), "but 0 are named"),
  ],
)
def test_rows_of_state_that_cannot_be_are_refused(shape, entries, message):
  with pytest.raises(ValueError, match=message):
    specs.ImageWithState(shape, entries)


STACKED = specs.StackedFrames((3, 4, 6), np.uint8, 3, "screen")


def test_stacked_frames_survive_pickling_replacing_and_encoding():
  for twin in (
    pickle.loads(pickle.dumps(STACKED)),
    STACKED.replace(),
    specs.make_encoding(STACKED).spec,
  ):
    assert isinstance(twin, specs.StackedFrames) and twin == STACKED
    assert (twin.shape, twin.dtype, twin.name) == ((3, 4, 6), np.uint8, "screen")
    assert specs.num_frames(twin) == 3
  assert STACKED.replace(num_frames=2) != STACKED
  assert dm_env.specs.Array((3, 4, 6), np.uint8, "screen") != STACKED
  assert "num_frames=3" in repr(STACKED)
  assert specs.num_frames(dm_env.specs.Array((3, 4, 6), np.uint8)) == 1
  as_floats = specs.make_encoding(STACKED.replace(dtype=np.float64)).spec
  assert (as_floats.dtype, specs.num_frames(as_floats)) == (np.float32, 3)


@pytest.mark.parametrize(
  ("shape", "num_frames"), [((3, 4, 6), 4), ((3, 4, 6), 0), ((3, 4), 2)]
)
def test_frames_that_cannot_be_stacked_so_are_refused(shape, num_frames):
  message = f"{num_frames} frames cannot make an array of shape"
  with pytest.raises(ValueError, match=message):
    specs.StackedFrames(shape, np.uint8, num_frames)
