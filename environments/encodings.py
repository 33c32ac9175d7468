"""How observations are stored and given to networks."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import dm_env
import numpy as np

from explorax.environments import specs

if TYPE_CHECKING:
  import jax


class OneHotIndex:
  """Encodes a one-hot observation as the number of its 1 among `spec.entries`.

  `[*spec.shape]` float32 → `[]` int32; all zeros are −1. An observation whose largest
  entry is neither 1 nor 0 (or is NaN) is refused, and one whose 1 is above the diagonal
  of a lower triangle. The encoding does not check that there is only one 1.
  """

  def __init__(self, spec: specs.OneHotArray):
    self.spec = specs.IndexArray(spec)
    # Flat position → index; too large an index where no 1 can be.
    self._index = np.full(self.spec.num_entries, len(self.spec.entries), np.int32)
    self._index[self.spec.entries] = np.arange(len(self.spec.entries))

  def __call__(self, observation: Any) -> np.ndarray:
    flat = np.asarray(observation).ravel()
    position = flat.argmax()
    largest = flat.item(position)
    if largest == 0.0:
      return np.asarray(-1, np.int32)
    if largest != 1.0:
      raise ValueError(
        f"the largest entry of a one-hot observation is {largest}; it must be 1, or 0 "
        "where all entries are: give the environment another spec if it is not one-hot."
      )
    index = np.asarray(self._index[position])
    if index > self.spec.maximum:
      row, column = divmod(int(position), self.spec.of.shape[1])
      raise ValueError(
        f"the 1 of a one-hot observation is in row {row} and column {column}, above "
        "the diagonal; leave out lower_triangle in the environment's spec."
      )
    return index

  def on_device(self, observation: "jax.Array") -> "jax.Array":
    """The same within a jitted function, without checks.

    A 1 above the diagonal of a lower triangle gets an index beyond the spec's, for
    which a hidden layer returns NaN.
    """
    import jax.numpy as jnp  # noqa: PLC0415  # Importing this module needs no jax.

    flat = jnp.ravel(observation)
    position = jnp.argmax(flat)
    return jnp.where(flat[position] == 0.0, -1, jnp.asarray(self._index)[position])


class Dense:
  """Stores an observation as float32, unless it is uint8, and images as `[H, W, C]`.

  Dicts and tuples are joined; see `to_array`.
  """

  def __init__(self, spec: dm_env.specs.Array):
    self.spec = spec
    if isinstance(spec, specs.JOINING):
      return
    dtype = np.dtype(np.uint8 if spec.dtype == np.uint8 else np.float32)
    if isinstance(spec, specs.StackedFrames):
      self.spec = spec.replace(dtype=dtype)
    else:
      shape = specs.to_image(np.zeros(spec.shape, dtype)).shape
      self.spec = dm_env.specs.Array(shape, dtype, spec.name)

  def __call__(self, observation: Any) -> np.ndarray:
    return to_array(self.spec, observation)

  def on_device(self, observation: "jax.Array") -> "jax.Array":
    """The same within a jitted function."""
    array = observation.astype(self.spec.dtype)
    return array if array.shape == self.spec.shape else specs.to_image(array)


def make(spec: dm_env.specs.Array) -> OneHotIndex | Dense:
  """The encoding for observations of `spec`."""
  return OneHotIndex(spec) if isinstance(spec, specs.OneHotArray) else Dense(spec)


def to_array(spec: dm_env.specs.Array, observation: Any) -> np.ndarray:
  """An observation as its environment returns it, as the array that agents receive.

  Dicts and tuples are joined (`specs.JoinedArrays`, `specs.CategoricalImage`), a number
  becomes one-hot (`specs.OneHotArray`), and images have their channels last. What is
  such an array already is not copied.

  Args:
    spec: of the array.
    observation: of the environment.

  Raises:
    ValueError: if it has another shape, or values that the spec's dtype cannot hold.
    TypeError: if it is not of real numbers.
  """
  array = _converted(spec, observation)
  if array.shape != spec.shape:
    raise _wrong_shape(spec, observation)
  return array


def to_batch(spec: dm_env.specs.Array, observation: Any) -> tuple[np.ndarray, bool]:
  """`[B, *spec.shape]` of one observation or of a batch, and whether it is a batch.

  Raises the errors of `to_array`.
  """
  array = _converted(spec, observation)
  if array.shape == spec.shape:
    return array[None], False
  batch = (
    [_converted(spec, one) for one in np.asarray(observation)] if array.ndim else []
  )
  if not batch or any(one.shape != spec.shape for one in batch):
    raise _wrong_shape(spec, observation)
  return np.stack(batch), True


def _wrong_shape(spec: dm_env.specs.Array, observation: Any) -> ValueError:
  return ValueError(
    f"the observation has the shape {np.shape(observation)}, not {spec.shape}"
  )


def _converted(spec: dm_env.specs.Array, observation: Any) -> np.ndarray:
  """An array of the spec's dtype, whose shape may be another."""
  has_parts = isinstance(observation, Mapping | tuple)
  if has_parts and isinstance(spec, specs.JoinedArrays | specs.CategoricalImage):
    return spec.join(observation)
  if isinstance(observation, Mapping) and len(observation) == 1:
    (observation,) = observation.values()
  array = np.asarray(observation)
  if array.dtype.kind not in specs.REAL:
    text = " ".join(repr(observation).split())
    raise TypeError(f"the observation is {text:.60}, and not real numbers")
  if isinstance(spec, specs.OneHotArray) and not array.ndim:
    return spec.join(observation)
  if array.dtype != spec.dtype:
    given, array = array, array.astype(spec.dtype)
    if spec.dtype == np.uint8 and (array != given).any():
      raise ValueError("the observation has values that its dtype, uint8, cannot hold")
  return array if array.shape == spec.shape else specs.to_image(array)
