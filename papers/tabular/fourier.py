"""Features of continuous observations: the Fourier basis."""

import dataclasses
import itertools
import math
from typing import Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np

from explorax import ranges


@runtime_checkable
class Features(Protocol):
  """A function of observations, hashable (a frozen dataclass)."""

  @property
  def num_features(self) -> int:
    """F."""

  def __call__(self, observation: jax.Array) -> jax.Array:
    """The features, float32 `[F]`."""

  def step_scales(self) -> np.ndarray:
    """The factor of the step size for each feature, float32 `[F]`."""


@dataclasses.dataclass(frozen=True)
class FourierBasis(ranges.Checked):
  """The Fourier basis of order n (Konidaris et al., 2011, section 3).

    φ_c(x) = cos(π c · x̂), c ∈ {0, …, n}^d, x̂_i = (x_i − low_i)/(high_i − low_i)

  The basis has all (n + 1)^d features, or, with `total_order`, those with Σ_i c_i ≤ n,
  like a polynomial of degree n. For n = 7 and d = 5 these are 32768 and 792 features.
  The last element of c changes fastest between features. Observations are clipped to
  the bounds, so that x̂ ∈ [0, 1]^d: outside, cos(π c x) is periodic, and distant states
  would have similar features.

  In more than two dimensions, each feature of the full basis is computed as
  cos α cos β − sin α sin β, where β is the angle of the last two dimensions: 32768
  features need the cosines and sines of only 576 angles.
  """

  order: ranges.NonNegativeInt  # n.
  low: tuple[float, ...]  # Mapped to 0, for each of the d dimensions.
  high: tuple[float, ...]  # Mapped to 1.
  total_order: bool = False  # Only c with Σ c_i ≤ n.

  def __post_init__(self) -> None:
    super().__post_init__()
    if not self.low or len(self.low) != len(self.high):
      raise ValueError(
        f"FourierBasis has low={self.low} and high={self.high}; each dimension of the "
        "observation, and there must be one, needs both."
      )
    for low, high in zip(self.low, self.high, strict=True):
      if not -math.inf < low < high < math.inf:
        raise ValueError(
          f"FourierBasis has a bound of {low} below and of {high} above; they must be "
          "finite, and the first the smaller one."
        )

  @property
  def num_features(self) -> int:
    dimensions = len(self.low)
    if self.total_order:
      return math.comb(self.order + dimensions, dimensions)
    return (self.order + 1) ** dimensions

  def __call__(self, observation: jax.Array) -> jax.Array:
    low = jnp.asarray(self.low, jnp.float32)
    width = jnp.asarray(self.high, jnp.float32) - low
    scaled = jnp.clip((jnp.asarray(observation, jnp.float32) - low) / width, 0.0, 1.0)
    num_heads = max(len(self.low) - 2, 0)
    if self.total_order or not num_heads:
      return jnp.cos(_angles(self._multi_indices(), scaled))
    heads = _angles(_multi_indices(self.order, num_heads), scaled[:num_heads])
    tails = _angles(_multi_indices(self.order, 2), scaled[num_heads:])
    # As a matrix product, whose factors' elements are computed only once.
    return jnp.dot(
      jnp.stack([jnp.cos(heads), -jnp.sin(heads)], axis=1),
      jnp.stack([jnp.cos(tails), jnp.sin(tails)]),
      precision="highest",
    ).reshape(-1)

  def step_scales(self) -> np.ndarray:
    """1/‖c‖, or 1 if c = 0 (Konidaris et al., 2011, section 3.1), float32 `[F]`."""
    norms = np.linalg.norm(self._multi_indices(), axis=1)
    return (1.0 / np.where(norms == 0.0, 1.0, norms)).astype(np.float32)

  def _multi_indices(self) -> np.ndarray:
    """c of every feature, float32 `[F, d]`."""
    indices = _multi_indices(self.order, len(self.low))
    if self.total_order:
      indices = indices[indices.sum(axis=1) <= self.order]
    return indices


def _angles(indices: np.ndarray, scaled: jax.Array) -> jax.Array:
  """π c · x̂ for each of the c `[C, dims]`, float32 `[C]`."""
  frequencies = np.float32(np.pi) * indices
  return sum(
    (jnp.asarray(c) * scaled[i] for i, c in enumerate(frequencies.T)),
    start=jnp.float32(0.0),
  )


def _multi_indices(order: int, dimensions: int) -> np.ndarray:
  """All c with elements up to n, float32 `[(order + 1)^dimensions, dimensions]`."""
  values = range(order + 1)
  return np.asarray(list(itertools.product(values, repeat=dimensions)), np.float32)
