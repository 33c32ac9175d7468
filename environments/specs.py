"""Specs that extend dm_env's, and the encoding of their observations."""

from typing import TYPE_CHECKING, Any, NamedTuple

import dm_env
import numpy as np

from explorax import environments

if TYPE_CHECKING:
  import jax


class EnvironmentSpec(NamedTuple):
  """The specs of an environment (Acme's class has the same two fields)."""

  observations: dm_env.specs.Array
  actions: dm_env.specs.DiscreteArray


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
  ):
    """Makes the spec.

    Args:
      shape: of the array.
      name: of the array.
      lower_triangle: whether the array is a square matrix whose entries above the
        diagonal are always 0, as in Deep Sea. Hidden layers then leave out the
        weights of these entries, which are never trained: the agent is the same, and
        faster.
    """
    super().__init__(shape, np.float32, 0.0, 1.0, name)
    self.lower_triangle = lower_triangle
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
      raise ValueError(_above_the_diagonal(int(array.argmax()), self.shape))
    return array


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


# Class of a recorded spec of observations, by its name.
_RECORDED = {
  cls.__name__: cls
  for cls in (dm_env.specs.Array, OneHotArray, StackedFrames, ImageWithState)
}


def to_record(spec: EnvironmentSpec) -> dict[str, Any]:
  """A spec in JSON's types, for `from_record`."""
  observations = spec.observations
  arguments = observations._get_constructor_kwargs()
  if "dtype" in arguments:
    arguments["dtype"] = np.dtype(arguments["dtype"]).name
  return {
    "observations": {
      "class": type(observations).__name__,
      **{k: list(v) if isinstance(v, tuple) else v for k, v in arguments.items()},
    },
    "num_actions": int(spec.actions.num_values),
  }


def from_record(record: Any) -> EnvironmentSpec:
  """The inverse of `to_record`.

  Raises:
    ValueError: if the record is none of `to_record`'s.
  """
  try:
    arguments = dict(record["observations"])
    cls = _RECORDED[arguments.pop("class")]
    arguments = {
      k: tuple(v) if isinstance(v, list) else v for k, v in arguments.items()
    }
    return EnvironmentSpec(
      cls(**arguments),
      dm_env.specs.DiscreteArray(record["num_actions"], np.int32, "action"),
    )
  except (AttributeError, KeyError, TypeError, ValueError) as error:
    raise ValueError(
      f"the spec {record!r:.60} of an environment cannot be read ({error})."
    ) from error


def describe(spec: EnvironmentSpec) -> str:
  """`observations of uint8 (84, 84, 4) and 6 actions`."""
  observations = spec.observations
  kind = f"{np.dtype(observations.dtype).name} {tuple(observations.shape)}"
  if num_frames(observations) > 1:
    kind += f" ({num_frames(observations)} frames)"
  if isinstance(observations, OneHotArray):
    kind = f"one of {int(np.prod(observations.shape))} values"
  return f"observations of {kind} and {spec.actions.num_values} actions"


class OneHotIndex:
  """Encodes a one-hot observation as the number of its 1 among `spec.entries`.

  `[*spec.shape]` float32 → `[]` int32; all zeros are −1. An observation whose largest
  entry is neither 1 nor 0 (or is NaN) is refused, and one whose 1 is above the diagonal
  of a lower triangle. The encoding does not check that there is only one 1.
  """

  def __init__(self, spec: OneHotArray):
    self.spec = IndexArray(spec)
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
        raise ValueError(_above_the_diagonal(int(position), self.spec.of.shape))
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


def _above_the_diagonal(position: int, shape: tuple[int, ...]) -> str:
  row, column = divmod(position, shape[1])
  return (
    f"the 1 of a one-hot observation is in row {row} and column {column}, above the "
    "diagonal; leave out lower_triangle in the environment's spec."
  )


class Dense:
  """Stores an observation unchanged, as float32 unless it is uint8."""

  def __init__(self, spec: dm_env.specs.Array):
    self.spec = spec
    if isinstance(spec, ImageWithState):
      return
    dtype = np.uint8 if spec.dtype == np.uint8 else np.float32
    if isinstance(spec, StackedFrames):
      self.spec = StackedFrames(spec.shape, dtype, spec.num_frames, spec.name)
    else:
      self.spec = dm_env.specs.Array(spec.shape, dtype, spec.name)

  def __call__(self, observation: Any) -> np.ndarray:
    return np.asarray(observation, self.spec.dtype)

  def on_device(self, observation: "jax.Array") -> "jax.Array":
    """The same within a jitted function."""
    return observation.astype(self.spec.dtype)


def make_encoding(spec: dm_env.specs.Array) -> OneHotIndex | Dense:
  """The encoding for observations of `spec`."""
  return OneHotIndex(spec) if isinstance(spec, OneHotArray) else Dense(spec)
