"""Specs that extend dm_env's."""

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import dm_env
import numpy as np


class EnvironmentSpec(NamedTuple):
  """The specs of an environment (Acme's class has the same two fields)."""

  observations: dm_env.specs.Array
  actions: dm_env.specs.DiscreteArray

  def __hash__(self) -> int:
    """So that agents can be cached by it; dm_env's specs have none."""
    return hash((self.observations.shape, self.actions.num_values))


# An array of floats, or a grey picture, with smaller sides is no image.
_LEAST_SIDE, _LEAST_SIDE_OF_PICTURE = 5, 36
REAL = "bifu"  # The kinds of numpy's dtypes for real numbers.
# An agent has an output for each action, and an input for each value of a discrete
# observation.
_MAX_VALUES = 2**20


class _EqualByArguments(dm_env.specs.Array):
  """A spec whose repr, equality and pickle use its constructor's arguments."""

  def __repr__(self) -> str:
    arguments = self._get_constructor_kwargs().items()
    return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in arguments)})"

  def __eq__(self, other: object) -> bool:
    if type(other) is not type(self):
      return False
    ours, theirs = (spec._get_constructor_kwargs() for spec in (self, other))
    return {**ours, "name": None} == {**theirs, "name": None}

  __hash__ = None  # type: ignore[assignment]  # As all specs.

  def __reduce__(self) -> tuple[Any, ...]:
    return type(self), tuple(self._get_constructor_kwargs().values())


class OneHotArray(_EqualByArguments, dm_env.specs.BoundedArray):
  """A float32 array that holds a single 1 and zeros, or zeros only.

  Deep Sea has such observations (all zeros after the last step). Agents
  store them as an index and turn their first layer into a gather.
  """

  def __init__(
    self,
    shape: tuple[int, ...],
    name: str | None = None,
    lower_triangle: bool = False,
    start: int = 0,
  ):
    """Makes the spec.

    Args:
      shape, name: of the array.
      lower_triangle: whether the array is a square matrix whose entries above the
        diagonal are always 0, as in Deep Sea. Hidden layers then have no weights for
        these entries, which would never be trained.
      start: the number of the first entry, where numbers stand for the array.
    """
    super().__init__(shape, np.float32, 0.0, 1.0, name)
    self.lower_triangle = lower_triangle
    self.start = start
    if lower_triangle and (len(self.shape) != 2 or self.shape[0] != self.shape[1]):
      raise ValueError(
        f"a one-hot array of shape {self.shape} has no lower triangle; its shape must "
        "be (N, N)."
      )

  @property
  def entries(self) -> np.ndarray:
    """The flat positions of the entries that can be 1, int32 and ascending."""
    possible = np.ones(self.shape, bool)
    where = np.flatnonzero(np.tril(possible) if self.lower_triangle else possible)
    return where.astype(np.int32)

  def join(self, number: Any) -> np.ndarray:
    """The array for a number of the first entry's `start` or more."""
    return one_hot(number, math.prod(self.shape), self.start).reshape(self.shape)


class StackedFrames(_EqualByArguments):
  """The newest frames of an episode, joined along the channels: `[H, W, frames · C]`.

  The oldest frame comes first. At an episode's start, zeros replace missing frames.
  Replay stores each frame once.
  """

  def __init__(
    self, shape: tuple[int, ...], dtype: Any, num_frames: int, name: str | None = None
  ):
    super().__init__(shape, dtype, name)
    self.num_frames = num_frames
    if num_frames < 1 or len(self.shape) != 3 or self.shape[-1] % num_frames:
      raise ValueError(
        f"{num_frames} frames cannot make an array of shape {self.shape}; it is "
        "(height, width, channels), the channels a multiple of the number of frames."
      )


def num_frames(spec: dm_env.specs.Array) -> int:
  """The number of frames in an observation; 1 unless the spec is a stack."""
  return spec.num_frames if isinstance(spec, StackedFrames) else 1


class JoinedArrays(_EqualByArguments):
  """Several arrays in dicts or tuples, joined into one float32 vector.

  The order is gymnasium's (`gymnasium.spaces.flatten`): dicts by their sorted keys.
  """

  def __init__(
    self,
    parts: tuple[tuple[tuple[Any, ...], int, int | None], ...],
    name: str | None = None,
  ):
    """Makes the spec.

    Args:
      parts: (path, size, start) of each array: the keys that lead to it, and how many
        numbers it is; or of each whole number, which becomes one-hot: how many values
        it has, and the least one. `start` is None for arrays.
      name: of the vector.
    """
    self.parts = tuple((tuple(path), size, start) for path, size, start in parts)
    super().__init__((sum(size for _, size, _ in self.parts),), np.float32, name)

  def join(self, observation: Any) -> np.ndarray:
    """Dicts and tuples as the vector."""
    vectors = []
    for path, size, start in self.parts:
      value = part(observation, path)
      if start is None:
        vectors.append(np.asarray(value, np.float32).reshape(size))
      else:
        vectors.append(one_hot(value, size, start))
    return np.concatenate(vectors)


def part(observation: Any, path: tuple[Any, ...]) -> Any:
  """The array at a path of `tree.flatten_with_path`: keys, positions, or fields."""
  for key in path:
    is_record = hasattr(observation, "_fields")
    observation = getattr(observation, key) if is_record else observation[key]
  return observation


def one_hot(number: Any, size: int, start: int) -> np.ndarray:
  """float32 `[size]` for a whole number, of which `start` is the least."""
  vector, numbers = np.zeros(size, np.float32), range(start, start + size)
  value = np.asarray(number)
  if value.ndim or value.item() not in numbers:
    raise ValueError(
      f"the observation is {number!r:.60}; it must be a whole number from {start} to "
      f"{start + size - 1}"
    )
  vector[numbers.index(value.item())] = 1.0
  return vector


def check_real(path: tuple[Any, ...], spec: Any) -> None:
  """Raises a TypeError if the part of observations is not an array of real numbers."""
  if not isinstance(spec, dm_env.specs.Array) or spec.dtype.kind not in REAL:
    raise TypeError(
      f"the environment's observations{''.join(f'[{key!r}]' for key in path)} are "
      f"{spec!r:.80}, but agents here take arrays of real numbers: leave them out or "
      "encode them, for instance with gymnasium.wrappers.FilterObservation or "
      "TransformObservation."
    )


def joined(leaves: Iterable[tuple[tuple[Any, ...], Any]]) -> JoinedArrays:
  """The spec of the vector for specs of arrays and whole numbers with their paths."""
  parts: list[tuple[tuple[Any, ...], int, int | None]] = []
  for path, spec in leaves:
    if isinstance(spec, dm_env.specs.DiscreteArray):
      parts.append((path, number_of_values("observations", spec.num_values), 0))
    else:
      start = spec.start if isinstance(spec, OneHotArray) else None
      parts.append((path, math.prod(spec.shape), start))
  return JoinedArrays(tuple(parts))


class CategoricalImage(_EqualByArguments):
  """Cells of numbers that are names of kinds, not sizes: uint8 `[H, W, C]`.

  Channel c of a cell is from 0 to n_c − 1, and networks receive it one-hot.
  """

  def __init__(
    self,
    shape: tuple[int, ...],
    channels: tuple[tuple[str, int], ...],
    name: str | None = None,
  ):
    """`channels` are the name and n_c of each channel."""
    super().__init__(shape, np.uint8, name)
    self.channels = tuple((str(label), int(number)) for label, number in channels)

  @property
  def num_categories(self) -> tuple[int, ...]:
    return tuple(number for _, number in self.channels)

  def join(self, observation: Any) -> np.ndarray:
    """The array of a dict with an `image` of the first channels.

    Each of the other channels is a number by its name, the same in all cells.
    """
    array, image = np.empty(self.shape, np.uint8), observation["image"]
    array[..., : image.shape[-1]] = image
    for channel in range(image.shape[-1], len(self.channels)):
      array[..., channel] = observation[self.channels[channel][0]]
    return array


class ImageWithState(_EqualByArguments):
  """An image with an extra last row that holds numbers instead of pixels.

  uint8 `[H + 1, W, C]`: the first entries of the last row, in memory order, are
  variables of the environment that the image does not show (or not clearly). Networks
  receive the image only.
  """

  def __init__(
    self, shape: tuple[int, ...], entries: tuple[str, ...], name: str | None = None
  ):
    """`entries` are the names of the numbers, at most W · C."""
    super().__init__(shape, np.uint8, name)
    self.entries = tuple(entries)

  @property
  def num_state(self) -> int:
    """The number of numbers in the row."""
    return len(self.entries)

  @property
  def image_spec(self) -> dm_env.specs.Array:
    """The spec of the image without the row, which networks receive."""
    height, width, channels = self.shape
    return dm_env.specs.Array((height - 1, width, channels), np.uint8, self.name)

  def image(self, observation: Any) -> Any:
    """`[..., H + 1, W, C]` → `[..., H, W, C]`, for numpy or jax arrays."""
    return observation[..., :-1, :, :]

  def state(self, observation: Any) -> Any:
    """`[..., H + 1, W, C]` → uint8 `[..., num_state]`, for numpy or jax arrays."""
    row = observation[..., -1, :, :]
    return row.reshape(*row.shape[:-2], -1)[..., : self.num_state]

  def join(self, image: np.ndarray, state: Any) -> np.ndarray:
    """Joins an image and numbers from 0 to 255 into an observation."""
    row = np.zeros((1, *self.shape[1:]), np.uint8)
    row.reshape(-1)[: self.num_state] = state
    return np.concatenate([image, row])


# Specs whose arrays are made by `join`, and stay as they are.
JOINING = (JoinedArrays, CategoricalImage, ImageWithState)


class IndexArray(_EqualByArguments, dm_env.specs.BoundedArray):
  """The index of a one-hot array: its 1 is in `entries[index]`; −1 for all zeros.

  Attributes:
    of: the spec of the one-hot array.
    num_entries: the number of all entries of the one-hot array.
    entries: the flat positions of those that can be 1.
  """

  def __init__(self, of: OneHotArray):
    self.of = of
    self.entries = of.entries
    self.num_entries = int(np.prod(of.shape))
    super().__init__((), np.int32, -1, len(self.entries) - 1, of.name)


def to_image(array: Any) -> Any:
  """An array of numpy or jax as `[H, W, C]`, if it is an image with other axes.

  The channels are the axis that is smaller than the two others, or that differs from
  the two others, which are equal: `[C, H, W]` is transposed. `[H, W]` gets an axis, and
  the channels of frames `[F, ...]` are joined, the first one first. An array is an
  image if it is uint8 with sides of at least 5 pixels (36 of `[H, W]`), or of floats
  with sides of at least 36. Where the shape leaves a doubt, nothing changes.
  """
  dtype, shape = np.dtype(array.dtype), array.shape
  if len(shape) == 2:
    is_picture = dtype == np.uint8 and min(shape) >= _LEAST_SIDE_OF_PICTURE
    return array[..., None] if is_picture else array
  least = _LEAST_SIDE if dtype == np.uint8 else _LEAST_SIDE_OF_PICTURE
  is_image = (dtype == np.uint8 or dtype.kind == "f") and len(shape) in (3, 4)
  if not is_image or sorted(shape[-3:])[1] < least:
    return array
  frames = array if len(shape) == 4 else array[None]
  first, second, third = shape[-3:]
  if third < min(first, second) or first == second != third:
    frames = frames.transpose(1, 2, 0, 3)
  elif first < min(second, third) or second == third != first:
    frames = frames.transpose(2, 3, 0, 1)
  else:
    return array
  return frames.reshape(*frames.shape[:2], -1)


def number_of_values(quantity: str, number: Any) -> int:
  """The number of values of a discrete space.

  Raises:
    TypeError: if it is not a whole number from 1 to 2²⁰.
  """
  if not isinstance(number, int | np.integer) or not 1 <= number <= _MAX_VALUES:
    raise TypeError(
      f"the environment's {quantity} have {number!r} values; agents here have an input "
      f"or output for each: it must be a whole number from 1 to {_MAX_VALUES:,}."
    )
  return int(number)


def to_record(spec: EnvironmentSpec) -> dict[str, Any]:
  """A spec in JSON's types, for `from_record`."""
  arguments = spec.observations._get_constructor_kwargs()
  if "dtype" in arguments:
    arguments["dtype"] = np.dtype(arguments["dtype"]).name
  return {
    "observations": {"class": type(spec.observations).__name__, **arguments},
    "num_actions": int(spec.actions.num_values),
  }


# By their names in records.
_CLASSES = {
  x.__name__: x for x in (dm_env.specs.Array, OneHotArray, StackedFrames, *JOINING)
}


def from_record(record: Any) -> EnvironmentSpec:
  """The inverse of `to_record`; a ValueError for anything else."""
  try:
    arguments = {key: _tuples(x) for key, x in record["observations"].items()}
    return EnvironmentSpec(
      _CLASSES[arguments.pop("class")](**arguments),
      dm_env.specs.DiscreteArray(record["num_actions"], np.int32, "action"),
    )
  except (AttributeError, KeyError, TypeError, ValueError) as error:
    raise ValueError(
      f"the spec {record!r:.60} of an environment cannot be read ({error})."
    ) from error


def _tuples(value: Any) -> Any:
  return tuple(map(_tuples, value)) if isinstance(value, list) else value
