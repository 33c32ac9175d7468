"""Specs that say more than dm_env's, and how observations are encoded by them."""

from typing import Any

import dm_env
import numpy as np


class OneHotArray(dm_env.specs.BoundedArray):
  """A float array that holds a single 1 and zeros, or zeros only.

  Deep Sea's observations are of this kind (all zeros after the last step). Agents
  store them as an index and turn their first layer into a gather.
  """

  def __init__(self, shape: tuple[int, ...], name: str | None = None):
    super().__init__(shape, np.float32, 0.0, 1.0, name)

  @property
  def num_values(self) -> int:
    return int(np.prod(self.shape))


class OneHotIndex:
  """Encodes a one-hot observation as its flat index, and all zeros as −1."""

  def __init__(self, spec: OneHotArray):
    self.num_values = spec.num_values
    self.spec = dm_env.specs.BoundedArray(
      (), np.int32, -1, self.num_values - 1, spec.name
    )

  def __call__(self, observation: Any) -> np.ndarray:
    index = np.argmax(observation)
    flat = np.ravel(observation)
    return np.asarray(index if flat[index] else -1, np.int32)


class Dense:
  """Stores an observation as it is, its dtype made float32 unless it is uint8."""

  def __init__(self, spec: dm_env.specs.Array):
    dtype = np.uint8 if spec.dtype == np.uint8 else np.float32
    self.spec = dm_env.specs.Array(spec.shape, dtype, spec.name)

  def __call__(self, observation: Any) -> np.ndarray:
    return np.asarray(observation, self.spec.dtype)


def make_encoding(spec: dm_env.specs.Array) -> OneHotIndex | Dense:
  """The encoding for observations of `spec`."""
  return OneHotIndex(spec) if isinstance(spec, OneHotArray) else Dense(spec)
