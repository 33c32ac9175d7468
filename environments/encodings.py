"""How observations are stored and given to networks."""

from typing import TYPE_CHECKING, Any

import dm_env
import numpy as np

from explorax import environments
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
    if largest == 1.0:
      index = np.asarray(self._index[position])
      if index > self.spec.maximum:
        raise ValueError(self.spec.of.above_the_diagonal(int(position)))
      return index
    if largest == 0.0:
      return np.asarray(-1, np.int32)
    raise ValueError(
      f"the largest entry of a one-hot observation is {largest}; it must be 1, or 0 "
      "where all entries are: give the environment another spec if it is not one-hot."
    )

  def on_device(self, observation: "jax.Array") -> "jax.Array":
    """The same within a jitted function, without checks.

    A 1 above the diagonal of a lower triangle gets an index beyond the spec's, for
    which a hidden layer returns NaN.
    """
    return environments.jax_encoding.one_hot_index(observation, self._index)


class Dense:
  """Stores an observation as float32, unless it is uint8, and images as `[H, W, C]`."""

  def __init__(self, spec: dm_env.specs.Array):
    self.spec = spec
    self._encode = spec.encode if isinstance(spec, specs.Image) else None
    has_parts = isinstance(spec, specs.JoinedArrays | specs.CategoricalImage)
    self._join = spec.join if has_parts else None
    if isinstance(spec, specs.ImageWithState | specs.CategoricalImage):
      return
    if isinstance(spec, specs.Image):
      spec = spec.encoded
    dtype = np.uint8 if spec.dtype == np.uint8 else np.float32
    if isinstance(spec, specs.StackedFrames):
      self.spec = specs.StackedFrames(spec.shape, dtype, spec.num_frames, spec.name)
    else:
      self.spec = dm_env.specs.Array(spec.shape, dtype, spec.name)

  def __call__(self, observation: Any) -> np.ndarray:
    if self._join is not None and not isinstance(observation, np.ndarray):
      return self._join(observation)
    array = np.asarray(observation, self.spec.dtype)
    return array if self._encode is None else self._encode(array)

  def on_device(self, observation: "jax.Array") -> "jax.Array":
    """The same within a jitted function."""
    array = observation.astype(self.spec.dtype)
    return array if self._encode is None else self._encode(array)


def make(spec: dm_env.specs.Array) -> OneHotIndex | Dense:
  """The encoding for observations of `spec`."""
  return OneHotIndex(spec) if isinstance(spec, specs.OneHotArray) else Dense(spec)
