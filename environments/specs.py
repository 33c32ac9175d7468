"""Specs that extend dm_env's."""

import math
from collections.abc import Iterator, Mapping
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


# The axes of images: frames, height, width, channels.
LAYOUTS = ("hwc", "chw", "hw", "fhwc", "fchw", "flat")
# A picture in floats, or in grey, cannot be told from other arrays if it is smaller.
_LEAST_SIDE, _LEAST_SIDE_OF_PICTURE = 5, 36


class LayoutError(ValueError):
  """It is not clear which axes of an image are which."""


class _ByArguments(dm_env.specs.Array):
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


class DiscreteRange(_ByArguments, dm_env.specs.DiscreteArray):
  """The whole numbers from `start` to `start + num_values − 1`, as in gymnasium."""

  def __init__(
    self, num_values: int, start: int, dtype: Any = np.int32, name: str | None = None
  ):
    super().__init__(num_values, dtype, name)
    self.start = start

  @property
  def minimum(self) -> np.ndarray:
    return np.asarray(self.start)

  @property
  def maximum(self) -> np.ndarray:
    return np.asarray(self.start + self.num_values - 1)


class OneHotArray(_ByArguments, dm_env.specs.BoundedArray):
  """A float32 array that holds a single 1 and zeros, or zeros only.

  Deep Sea's observations are of this kind (all zeros after the last step). Agents
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
      shape: of the array.
      name: of the array.
      lower_triangle: whether the array is a square matrix whose entries above the
        diagonal are always 0, as in Deep Sea. Hidden layers then leave out the
        weights of these entries, which are never trained: the agent is the same, and
        faster.
      start: the number of the first entry, where numbers stand for the array.
    """
    super().__init__(shape, np.float32, 0.0, 1.0, name)
    self.lower_triangle = lower_triangle
    self.start = start
    if 0 in self.shape:
      raise ValueError(
        f"a one-hot array of shape {self.shape} has no entry that could be 1; "
        "every dimension must be at least 1."
      )
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

  def validate(self, value: Any) -> np.ndarray:
    """Returns `value` as an array; raises a ValueError if it violates the spec."""
    array = super().validate(value)
    ones = np.count_nonzero(array)
    if ones > 1 or (ones and array.max() != 1.0):
      raise ValueError(
        f"{ones} entries of a one-hot array are not zero, the largest being "
        f"{array.max()}; it may hold a single 1 and zeros, or zeros only."
      )
    if self.lower_triangle and np.triu(array, 1).any():
      raise ValueError(self.above_the_diagonal(int(array.argmax())))
    return array

  def above_the_diagonal(self, position: int) -> str:
    """The error of a 1 at this flat position, where a lower triangle has none."""
    row, column = divmod(position, self.shape[1])
    return (
      f"the 1 of a one-hot observation is in row {row} and column {column}, above the "
      "diagonal; leave out lower_triangle in the environment's spec."
    )


class StackedFrames(_ByArguments):
  """The newest frames of an episode, joined along the channels: `[H, W, frames · C]`.

  The oldest frame comes first. At an episode's start, zeros replace missing frames.
  Replay stores each frame once.
  """

  def __init__(
    self,
    shape: tuple[int, ...],
    dtype: Any,
    num_frames: int,
    name: str | None = None,
  ):
    """Raises a ValueError if `num_frames` does not divide the number of channels."""
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


class Image(_ByArguments):
  """Images whose axes are not height, width and channels in this order.

  Environments return them as they are; encoded (`encodings.make`), they are
  `[H, W, C]`, where frames are joined along the channels, the first one first. The
  layout `flat` makes one vector of an array that is not an image.
  """

  def __init__(
    self, shape: tuple[int, ...], dtype: Any, layout: str, name: str | None = None
  ):
    """`layout` names the axes of `shape`, as `chw`; one of `LAYOUTS`.

    Raises:
      LayoutError: if there is no such layout, or it has another number of axes.
    """
    super().__init__(shape, dtype, name)
    self.layout = layout
    if layout not in LAYOUTS:
      raise LayoutError(
        f"there is no layout {layout!r} of images; use one of {', '.join(LAYOUTS)} "
        "(c: channels, h: height, w: width, f: frames)."
      )
    if layout != "flat" and len(layout) != len(self.shape):
      raise LayoutError(
        f"the layout {layout!r} has {len(layout)} axes, but observations are of shape "
        f"{self.shape}; use another one of {', '.join(LAYOUTS)}."
      )

  @property
  def encoded(self) -> dm_env.specs.Array:
    """The spec of the same images as `[H, W, C]`."""
    if self.layout == "flat":
      return dm_env.specs.Array((math.prod(self.shape),), self.dtype, self.name)
    sides = dict(zip(self.layout, self.shape, strict=True))
    channels = sides.get("f", 1) * sides.get("c", 1)
    return dm_env.specs.Array((sides["h"], sides["w"], channels), self.dtype, self.name)

  def encode(self, observation: Any) -> Any:
    """One observation as `[H, W, C]`, for numpy or jax arrays."""
    if self.layout != "flat":
      axes = [self.layout.index(axis) for axis in "hwfc" if axis in self.layout]
      observation = observation.transpose(axes)
    return observation.reshape(self.encoded.shape)


class Part(NamedTuple):
  """An array or a whole number in an observation that consists of several.

  Attributes:
    path: the keys and positions that lead to it.
    spec: a `DiscreteArray` becomes one-hot.
  """

  path: tuple[Any, ...]
  spec: Any

  def __str__(self) -> str:
    return "".join(f"[{key!r}]" for key in self.path)

  @property
  def size(self) -> int:
    is_number = isinstance(self.spec, dm_env.specs.DiscreteArray)
    return int(self.spec.num_values) if is_number else math.prod(self.spec.shape)

  def of(self, observation: Any) -> Any:
    """This part of an observation."""
    for key in self.path:
      observation = observation[key]
    return observation

  def vector(self, value: Any) -> np.ndarray:
    """The part as float32 `[size]`."""
    if not isinstance(self.spec, dm_env.specs.DiscreteArray):
      return np.asarray(value, np.float32).reshape(self.size)
    one_hot = np.zeros(self.size, np.float32)
    one_hot[int(value) - int(self.spec.minimum)] = 1.0
    return one_hot


class JoinedArrays(_ByArguments):
  """Several arrays in dicts or tuples, joined into one float32 vector.

  Dicts are in the order of their keys. An encoding (`encodings.make`) takes the vector,
  or the dicts and tuples.
  """

  def __init__(self, parts: tuple[Part, ...], name: str | None = None):
    super().__init__((sum(part.size for part in parts),), np.float32, name)
    self.parts = tuple(Part(tuple(part.path), _plain(part.spec)) for part in parts)

  def join(self, observation: Any) -> np.ndarray:
    """Dicts and tuples as the vector, without checks."""
    return np.concatenate([part.vector(part.of(observation)) for part in self.parts])


def _plain(spec: Any) -> Any:
  """What a part's spec says of its numbers, without its name, dtype and bounds."""
  if isinstance(spec, dm_env.specs.DiscreteArray):
    return DiscreteRange(int(spec.num_values), int(spec.minimum))
  return dm_env.specs.Array(spec.shape, np.float32)


def parts(spec: Any, path: tuple[Any, ...] = ()) -> Iterator[Part]:
  """The parts of a spec of dicts, tuples and lists."""
  if isinstance(spec, Mapping):
    for key in sorted(spec):
      yield from parts(spec[key], (*path, key))
  elif isinstance(spec, tuple | list):
    for key, item in enumerate(spec):
      yield from parts(item, (*path, key))
  else:
    yield Part(path, spec)


class CategoricalImage(_ByArguments):
  """Cells of numbers that are names of kinds, not sizes: uint8 `[H, W, C]`.

  Channel c of a cell is from 0 to n_c − 1, and networks receive it one-hot.
  """

  def __init__(
    self,
    shape: tuple[int, ...],
    channels: tuple[tuple[str, int], ...],
    left_out: tuple[str, ...] = (),
    name: str | None = None,
  ):
    """Makes the spec.

    Args:
      shape: `(H, W, C)`.
      channels: the name and n_c of each channel.
      left_out: parts of the environment's observations that are not in the image.
      name: of the array.

    Raises:
      ValueError: if there is another number of channels in the shape.
    """
    super().__init__(shape, np.uint8, name)
    self.channels = tuple((str(label), int(number)) for label, number in channels)
    self.left_out = tuple(left_out)
    if len(self.shape) != 3 or self.shape[-1] != len(self.channels):
      raise ValueError(
        f"an array of shape {self.shape} has not the channels {self.channels}; it is "
        "(height, width, channels)."
      )

  @property
  def num_categories(self) -> tuple[int, ...]:
    """n_c of each channel."""
    return tuple(number for _, number in self.channels)

  def join(self, observation: Mapping[str, Any]) -> np.ndarray:
    """The array of a dict with an `image` of the first channels.

    Each of the other channels is a number by its name, the same in all cells.
    """
    array, image = np.empty(self.shape, np.uint8), observation["image"]
    array[..., : image.shape[-1]] = image
    for channel in range(image.shape[-1], len(self.channels)):
      array[..., channel] = observation[self.channels[channel][0]]
    return array


class ImageWithState(_ByArguments):
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
    if len(self.shape) != 3 or min(self.shape) < 1 or self.shape[0] < 2:
      raise ValueError(
        f"an image with a row of state cannot have the shape {self.shape}; it is "
        "(height + 1, width, channels), each of them at least 1."
      )
    room = self.shape[1] * self.shape[2]
    if not 1 <= self.num_state <= room:
      raise ValueError(
        f"the row below an image of shape {self.shape} has room for 1 to {room} "
        f"numbers, but {self.num_state} are named."
      )

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


class IndexArray(_ByArguments, dm_env.specs.BoundedArray):
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


def of_array(
  shape: tuple[int, ...], dtype: Any, name: str | None = None, layout: str | None = None
) -> dm_env.specs.Array:
  """The spec of observations that are one array: an `Image` if its axes say so.

  The channels are the axis that is smaller than the two others, or that differs from
  the two others, which are equal. This holds for arrays of uint8 with sides of at
  least 5 pixels, and for floats with sides of at least 36; `[H, W]` of uint8 with such
  sides are grey. Four axes are frames of images.

  Args:
    shape: of the array.
    dtype: of the array.
    name: of the array.
    layout: of the axes; None: it is found as above.

  Raises:
    LayoutError: if the layout cannot be found, or does not fit.
  """
  layout = layout or _find_layout(tuple(shape), np.dtype(dtype))
  if layout is None or (layout == "hwc" and len(shape) == 3):
    return dm_env.specs.Array(shape, dtype, name)
  return Image(shape, dtype, layout, name)


def split_layout(name: str) -> tuple[str, str | None]:
  """Splits `name,layout=chw` into a name and the layout of images; None: not given."""
  name, _, layout = name.partition(",layout=")
  return name, layout or None


def _find_layout(shape: tuple[int, ...], dtype: np.dtype) -> str | None:
  """The layout of an array; None if it is `[H, W, C]`, or no image."""
  if dtype != np.uint8 and dtype.kind != "f":
    return None
  is_bytes = dtype == np.uint8
  if len(shape) == 2:
    is_grey = is_bytes and min(shape) >= _LEAST_SIDE_OF_PICTURE
    return "hw" if is_grey else None
  least = _LEAST_SIDE if is_bytes else _LEAST_SIDE_OF_PICTURE
  if len(shape) not in (3, 4) or sorted(shape[-3:])[1] < least:
    return None
  a, b, c = shape[-3:]
  frames = "f" * (len(shape) - 3)
  if c < min(a, b) or a == b != c:
    return f"{frames}hwc" if frames else None
  if a < min(b, c) or b == c != a:
    return f"{frames}chw"
  if not is_bytes:
    return None
  raise LayoutError(
    f"the observations are images of shape {shape}, of which it is not clear what axis "
    f"the channels are; add ,layout={frames}hwc or ,layout={frames}chw to the "
    "environment's name, or ,layout=flat if they are no images (in Python: "
    "layout='chw' of environments.wrap or BonusWrapper)."
  )
