"""Torsos: map observations to features, the inputs of heads and LSTMs."""

import dataclasses
import math
from collections.abc import Callable, Sequence

import chex
import dm_env
import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np

from explorax.networks import convolution, ensemble, noisy
from explorax.networks import inputs as inputs_lib


@dataclasses.dataclass(frozen=True)
class Convolution:
  """A layer of square filters, without padding.

  Attributes:
    filters: number of filters.
    size: the side of a filter, in pixels.
    stride: in pixels.
  """

  filters: int
  size: int
  stride: int

  def side(self, side: int) -> int:
    """The side of its output, in pixels; less than 1 if a filter does not fit."""
    return (side - self.size) // self.stride + 1


CONVOLUTIONS = {
  # Mnih et al. (2015), Methods; Badia et al. (2020) also use it for 84×84.
  "dqn": (Convolution(32, 8, 4), Convolution(64, 4, 2), Convolution(64, 3, 1)),
  # van Hasselt et al. (2019), data-efficient Rainbow: a sixth of the computation.
  "data_efficient": (Convolution(32, 5, 5), Convolution(64, 5, 5)),
  # Dabney et al. (2021), appendix: R2D2 on frames of 210×160 in colour.
  "r2d2_rgb": (
    Convolution(32, 7, 4),
    Convolution(64, 5, 2),
    Convolution(128, 5, 2),
    Convolution(128, 3, 1),
  ),
  # Badia et al. (2020), the Disco Maze.
  "small": (Convolution(16, 3, 1), Convolution(32, 3, 1)),
}
TORSOS = ("auto", "mlp", *CONVOLUTIONS)


class ConvolutionalTorso(hk.Module):
  """Convolutions, then linear layers, with ReLU after each of them."""

  def __init__(
    self,
    convolutions: Sequence[Convolution],
    hidden_sizes: Sequence[int],
    noise: noisy.Noise | None = None,
    name: str | None = None,
  ):
    """Makes the module.

    Args:
      convolutions: the first layers.
      hidden_sizes: units of the linear layers; if empty, the features are the
        convolutions' outputs.
      noise: of the linear layers; None: they have none.
      name: of the module.
    """
    super().__init__(name)
    self._convolutions = tuple(convolutions)
    self._hidden_sizes = tuple(hidden_sizes)
    self._noise = noise

  def __call__(self, observation: jax.Array) -> jax.Array:
    """Images `[N, H, W, C]`, uint8 being scaled to [0, 1] → features `[N, F]`."""
    chex.assert_rank(observation, 4)
    scale = 1 / 255 if observation.dtype == jnp.uint8 else 1.0
    hidden = observation.astype(jnp.float32) * scale
    for layer in self._convolutions:
      convolve = convolution.Convolution2D(layer.filters, layer.size, layer.stride)
      hidden = jax.nn.relu(convolve(hidden))
    hidden = jnp.reshape(hidden, (hidden.shape[0], math.prod(hidden.shape[1:])))
    return _linear_layers(hidden, self._hidden_sizes, self._noise)


class PerceptronTorso(hk.Module):
  """Linear layers with ReLU after each; the first is a gather if x is an index."""

  def __init__(
    self,
    inputs: inputs_lib.Inputs,
    hidden_sizes: Sequence[int],
    noise: noisy.Noise | None = None,
    name: str | None = None,
  ):
    """Makes the module.

    Args:
      inputs: how observations become vectors.
      hidden_sizes: units of the layers; if empty, the features are the inputs.
      noise: of the layers; None: they have none.
      name: of the module.
    """
    super().__init__(name)
    self._inputs = inputs
    self._hidden_sizes = tuple(hidden_sizes)
    self._noise = noise

  def __call__(self, observation: jax.Array) -> jax.Array:
    """Encoded observations `[N, ...]` → features `[N, F]`."""
    if not self._hidden_sizes:
      return self._inputs.dense(observation)
    first, *others = self._hidden_sizes
    if self._noise is not None:
      layer = noisy.NoisyLinear(first, self._noise, self._inputs)
      hidden = jax.nn.relu(layer(observation))
      return _linear_layers(hidden, others, self._noise)
    w_init = hk.initializers.TruncatedNormal(self._inputs.num_features**-0.5)
    w = self._inputs.weights("w", first, w_init)
    b = hk.get_parameter("b", (first,), jnp.float32, jnp.zeros)
    hidden = jax.nn.relu(self._inputs.linear(observation, w) + b[None, :])
    return _linear_layers(hidden, others, None)


def _linear_layers(
  hidden: jax.Array, sizes: Sequence[int], noise: noisy.Noise | None
) -> jax.Array:
  """Linear layers with ReLU after each."""
  for size in sizes:
    layer = hk.Linear(size) if noise is None else noisy.NoisyLinear(size, noise)
    hidden = jax.nn.relu(layer(hidden))
  return hidden


def resolve_torso(name: str, observation_spec: dm_env.specs.Array) -> str:
  """The torso selected by `auto`; other names are returned unchanged.

  Images, that is uint8 of rank 3 (without a row of state below them, see `make_torso`),
  get `r2d2_rgb` if they are 210×160, else `dqn` if its filters fit (a side of at least
  36), else `small` if its filters fit; cells of categories get `small`. Floats of rank
  3 are images if the filters of `dqn` fit and they have fewer channels than rows and
  columns. All other observations get `mlp`.

  Raises:
    ValueError: for an unknown name.
  """
  if name not in TORSOS:
    raise ValueError(f"there is no torso {name!r}; use one of {', '.join(TORSOS)}.")
  if name != "auto":
    return name
  observation_spec = inputs_lib.visible_spec(observation_spec)
  shape = observation_spec.shape
  if len(shape) != 3:
    return "mlp"
  if observation_spec.dtype != np.uint8:
    least = max(_least_side("dqn"), shape[2] + 1)
    is_image = observation_spec.dtype.kind == "f" and min(shape[:2]) >= least
    return "dqn" if is_image else "mlp"
  if shape[:2] == (210, 160):
    return "r2d2_rgb"
  known = (
    ("small",) if hasattr(observation_spec, "num_categories") else ("dqn", "small")
  )
  fitting = (torso for torso in known if min(shape[:2]) >= _least_side(torso))
  return next(fitting, "mlp")


def make_torso(
  name: str,
  observation_spec: dm_env.specs.Array,
  hidden_sizes: Sequence[int],
  width: float = 1.0,
  noise: noisy.Noise | None = None,
) -> ensemble.MakeModule:
  """A function that builds the torso with this name.

  For observations with a row of state below an image, the torso sees only the image;
  cells of categories are one-hot (`inputs.make_inputs`).

  | name | layers before the linear ones |
  | --- | --- |
  | `mlp` | none; for an index, the first linear layer is a gather |
  | `dqn` | 32 filters of 8×8 by 4, 64 of 4×4 by 2, 64 of 3×3 by 1 |
  | `data_efficient` | 32 filters of 5×5 by 5, 64 of 5×5 by 5 |
  | `r2d2_rgb` | 32 of 7×7 by 4, 64 of 5×5 by 2, 128 of 5×5 by 2, 128 of 3×3 by 1 |
  | `small` | 16 of 3×3 by 1, 32 of 3×3 by 1 |
  | `auto` | depends on the observations, see `resolve_torso` |

  Every layer ends in a ReLU, and none pads its input. Weights are initialised as in
  Haiku: normal with deviation 1/sqrt(fan-in), truncated at two deviations; biases are
  zero. For noisy layers see `NoisyLinear`.

  Args:
    name: one of `TORSOS`.
    observation_spec: of the encoded observations: images `[H, W, C]` for
      convolutions, all kinds supported by `inputs.make_inputs` for `mlp`.
    hidden_sizes: units of the last, linear layers; if empty, the features are the
      flattened output of the layers before.
    width: scales the number of filters and units, which stay at least 1 (priors with
      reduced widths: Flennerhag et al., 2020, appendix E.1).
    noise: of the linear layers; convolutions have none. None: there is none.

  Returns:
    A function without arguments which, called inside `hk.transform`, builds a module:
    observations `[N, ...]` → float32 features `[N, F]`.

  Raises:
    ValueError: for an unknown name, a size or width that is not positive, or
      observations that the torso does not support.
  """
  seen = inputs_lib.visible_spec(observation_spec)
  if seen is not observation_spec:
    make = make_torso(name, seen, hidden_sizes, width, noise)
    return lambda: _crop(make(), seen.shape[0])
  hidden_sizes = tuple(hidden_sizes)
  if any(size < 1 for size in hidden_sizes):
    raise ValueError(
      f"hidden_sizes are {hidden_sizes}; each must be at least 1 (leave layers out "
      "instead)."
    )
  if not 0 < width < math.inf:
    raise ValueError(
      f"the width of a torso is {width}; it scales the number of units, so it must be "
      "finite and positive (1 changes nothing)."
    )
  name = resolve_torso(name, observation_spec)
  one_hot = inputs_lib.one_hot_spec(observation_spec)
  if one_hot is not observation_spec:
    make = make_torso(name, one_hot, hidden_sizes, width, noise)
    return lambda: _on_one_hot(make(), observation_spec.num_categories)
  scaled_sizes = tuple(_scale(size, width) for size in hidden_sizes)
  if name == "mlp":
    inputs = inputs_lib.make_inputs(observation_spec)
    return lambda: PerceptronTorso(inputs, scaled_sizes, noise)
  _check_image(name, observation_spec)
  convolutions = tuple(
    dataclasses.replace(layer, filters=_scale(layer.filters, width))
    for layer in CONVOLUTIONS[name]
  )
  return lambda: ConvolutionalTorso(convolutions, scaled_sizes, noise)


def _crop(
  torso: Callable[[jax.Array], jax.Array], height: int
) -> Callable[[jax.Array], jax.Array]:
  return lambda observation: torso(observation[:, :height])


def _on_one_hot(
  torso: Callable[[jax.Array], jax.Array], num_categories: Sequence[int]
) -> Callable[[jax.Array], jax.Array]:
  return lambda x: torso(inputs_lib.one_hot_channels(x, num_categories))


def _scale(units: int, width: float) -> int:
  return max(1, round(units * width))


def _least_side(name: str) -> int:
  """The smallest side of an image, in pixels, for which all layers of a torso fit."""
  side = 1
  for layer in reversed(CONVOLUTIONS[name]):
    side = (side - 1) * layer.stride + layer.size
  return side


def _check_image(name: str, spec: dm_env.specs.Array) -> None:
  is_image = len(spec.shape) == 3 and (
    spec.dtype == np.uint8 or np.issubdtype(spec.dtype, np.floating)
  )
  if not is_image:
    raise ValueError(
      f"the torso {name!r} takes images [height, width, channels] of uint8 or floats, "
      f"but observations are {np.dtype(spec.dtype).name} of shape {spec.shape}; use "
      "the torso 'mlp', or 'auto', for them."
    )
  least = _least_side(name)
  if min(spec.shape) < 1 or min(spec.shape[:2]) < least:
    raise ValueError(
      f"the torso {name!r} takes images of at least {least}×{least} pixels and one "
      f"channel, but observations are of shape {spec.shape}; use the torso 'auto', "
      "which chooses one that fits."
    )
