"""How observations become features, and the gather that stands for a product."""

import dm_env
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax.environments import encodings, specs
from explorax.networks import inputs as inputs_lib


def index_spec(num_values):
  return dm_env.specs.BoundedArray((), np.int32, -1, num_values - 1)


def test_gather_is_the_product_with_the_one_hot():
  inputs = inputs_lib.make_inputs(index_spec(7))
  w = np.random.default_rng(0).standard_normal((7, 5)).astype(np.float32)
  index = np.array([3, -1, 0, 6, 3, -1], np.int32)
  # The oracle: rows picked by hand.
  expected = np.stack([w[i] if i >= 0 else np.zeros(5, np.float32) for i in index])
  np.testing.assert_array_equal(inputs.linear(index, w), expected)
  np.testing.assert_allclose(inputs.dense(index) @ w, expected, rtol=1e-6)
  beyond = np.where(index == 6, 7, index)
  assert np.isnan(inputs.linear(beyond, w)[3]).all()


def test_gradient_of_the_gather_adds_up_repeated_rows_and_skips_minus_one():
  inputs = inputs_lib.make_inputs(index_spec(4))
  index = np.array([2, -1, 2, 1], np.int32)
  upstream = np.random.default_rng(1).standard_normal((4, 3)).astype(np.float32)
  expected = np.zeros((4, 3))
  for i, row in zip(index, upstream.astype(np.float64), strict=True):
    if i >= 0:
      expected[i] += row
  gradient = jax.grad(lambda w: jnp.sum(inputs.linear(index, w) * upstream))
  np.testing.assert_allclose(gradient(jnp.ones((4, 3))), expected, rtol=1e-6)


def test_rows_of_impossible_entries_are_left_out():
  array = specs.OneHotArray((3, 3), lower_triangle=True)
  inputs = inputs_lib.make_inputs(encodings.make(array).spec)
  w = np.random.default_rng(2).standard_normal((9, 5)).astype(np.float32)
  positions = [0, 3, 4, 6, 7, 8]  # Of the lower triangle, row by row.
  index = np.array([-1, *range(6)], np.int32)
  expected = np.concatenate([np.zeros((1, 5), np.float32), w[positions]])
  np.testing.assert_array_equal(inputs.linear(index, inputs.rows(w)), expected)
  np.testing.assert_allclose(inputs.dense(index) @ w, expected, rtol=1e-6)
  assert not inputs.dense(np.array([6], np.int32)).any()
  assert (inputs.num_features, inputs.num_rows) == (9, 6)


def test_floats_are_flattened_and_bytes_are_scaled():
  rng = np.random.default_rng(2)
  w = rng.standard_normal((6, 4)).astype(np.float32)
  floats = rng.standard_normal((5, 2, 3)).astype(np.float32)
  inputs = inputs_lib.make_inputs(dm_env.specs.Array((2, 3), np.float32))
  assert (inputs.num_features, inputs.is_index) == (6, False)
  np.testing.assert_allclose(
    inputs.linear(floats, w), floats.reshape(5, 6) @ w, rtol=1e-5, atol=1e-6
  )
  pixels = rng.integers(0, 256, (5, 2, 3)).astype(np.uint8)
  inputs = inputs_lib.make_inputs(dm_env.specs.Array((2, 3), np.uint8))
  np.testing.assert_allclose(
    inputs.dense(pixels), pixels.reshape(5, 6) / 255.0, rtol=1e-6
  )


def test_categories_are_one_hot():
  rng = np.random.default_rng(3)
  spec = specs.CategoricalImage((2, 3, 2), (("object", 4), ("state", 3)))
  cells = np.stack([rng.integers(n, size=(5, 2, 3)) for n in (4, 3)], axis=-1)
  expected = np.zeros((5, 2, 3, 7))
  for where in np.ndindex(5, 2, 3):
    expected[where][cells[where][0]] = 1
    expected[where][4 + cells[where][1]] = 1
  inputs = inputs_lib.make_inputs(spec)
  assert (inputs.num_features, inputs.is_index) == (42, False)
  cells = cells.astype(np.uint8)
  np.testing.assert_array_equal(inputs.dense(cells), expected.reshape(5, 42))
  w = rng.standard_normal((42, 4)).astype(np.float32)
  np.testing.assert_allclose(
    jax.jit(inputs.linear)(cells, w), expected.reshape(5, 42) @ w, rtol=1e-5, atol=1e-6
  )


@pytest.mark.parametrize(
  ("spec", "message"),
  [
    (dm_env.specs.Array((), np.int32), "int32 scalar with bounds"),
    (dm_env.specs.BoundedArray((), np.int32, 0, 5), "int32 scalar with bounds"),
    (dm_env.specs.Array((3,), np.complex64), "dtype complex64"),
    (dm_env.specs.Array((0, 3), np.float32), "no elements"),
  ],
)
def test_other_observations_are_refused(spec, message):
  with pytest.raises(ValueError, match=message):
    inputs_lib.make_inputs(spec)


def test_a_row_of_state_below_an_image_is_not_seen():
  spec = specs.ImageWithState((3, 2, 1), ("x", "y"))
  inputs = inputs_lib.make_inputs(spec)
  image = np.arange(8, dtype=np.uint8).reshape(2, 2, 2, 1)
  batch = np.stack(
    [spec.join(x, state) for x, state in zip(image, [[9, 8], [7, 6]], strict=True)]
  )
  assert inputs.num_features == 4
  np.testing.assert_allclose(
    inputs.dense(batch), image.reshape(2, 4).astype(np.float32) / 255
  )
