"""The duration of an εz repeat: the laws of section 4 of εz-greedy (ICLR 2021).

A law is a frozen dataclass; call it with a random key and optionally a shape. It draws
int32 durations in agent steps, from 1 to `cap`; every probability is exact to within
2⁻³².
"""

import abc
import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import scipy  # It imports `special` when it is first used.

from explorax import ranges


class Duration(ranges.Checked, abc.ABC):
  """A law of durations."""

  @abc.abstractmethod
  def __call__(self, key: jax.Array, shape: tuple[int, ...] = ()) -> jax.Array:
    """Draws durations, int32 of the shape given."""


@dataclasses.dataclass(frozen=True)
class ZetaDuration(Duration):
  """The zeta law up to `cap`: `p(n) ∝ n^{−mu}`, n = 1, …, cap.

  With `clipped` it is min(n, cap), n from the whole zeta law: `cap` has the probability
  of all longer durations too.
  """

  mu: ranges.NonNegativeFloat = 2.0  # The exponent (section 4: 2 unless stated).
  # Longest duration, agent steps (appendix C; Rainbow's is 100).
  cap: ranges.PositiveInt = 10_000
  # Whether longer durations are shortened to `cap` or never drawn ("capped at n ≤ 100",
  # appendix C, may be either).
  clipped: bool = False

  def __post_init__(self) -> None:
    super().__post_init__()
    if self.clipped and self.mu <= 1:
      raise ValueError(
        f"ZetaDuration.mu is {self.mu}, but clipped shortens durations of the whole "
        "zeta law, which exists only for an exponent above 1; raise mu, or turn "
        "clipped off."
      )

  def __call__(self, key: jax.Array, shape: tuple[int, ...] = ()) -> jax.Array:
    thresholds = _zeta_thresholds(float(self.mu), int(self.cap), self.clipped)
    return _invert(key, thresholds, shape)


@dataclasses.dataclass(frozen=True)
class ExponentialDuration(Duration):
  """The geometric law truncated at `cap`: `p(n) ∝ decay^{n−1}`, n ≤ cap."""

  decay: ranges.BelowOne  # λ; 0 always gives a duration of 1.
  cap: ranges.PositiveInt = 10_000  # Longest duration, agent steps.

  def __call__(self, key: jax.Array, shape: tuple[int, ...] = ()) -> jax.Array:
    thresholds = _exponential_thresholds(float(self.decay), int(self.cap))
    return _invert(key, thresholds, shape)


@dataclasses.dataclass(frozen=True)
class UniformDuration(Duration):
  """The uniform law on 1, …, cap."""

  cap: ranges.PositiveInt  # Longest duration, agent steps.

  def __call__(self, key: jax.Array, shape: tuple[int, ...] = ()) -> jax.Array:
    return jax.random.randint(key, shape, 1, self.cap + 1, jnp.int32)


def _thresholds(mass: np.ndarray) -> np.ndarray:
  """`P(duration ≤ n)` for n = 1, 2, …, in units of 2⁻³², as uint32.

  Args:
    mass: float64 `[cap]`, the weight of each duration, the greatest ones first but for
      the last.

  Returns:
    One threshold for each duration except the longest that a 32-bit draw can give.
  """
  # Summed from the small end: the tail's masses are far below the head's precision.
  tail = np.cumsum(mass[::-1])[::-1]
  cumulative = np.rint((1.0 - tail[1:] / tail[0]) * 2.0**32)
  return cumulative[cumulative < 2.0**32].astype(np.uint32)


# Tables are computed once for each law.
@functools.lru_cache(maxsize=32)
def _zeta_thresholds(mu: float, cap: int, clipped: bool) -> np.ndarray:
  mass = np.arange(1, cap + 1, dtype=np.float64) ** -mu
  if clipped:
    mass[-1] = scipy.special.zeta(mu, cap)  # Σ_{n ≥ cap} n^{−mu}.
  return _thresholds(mass)


@functools.lru_cache(maxsize=32)
def _exponential_thresholds(decay: float, cap: int) -> np.ndarray:
  return _thresholds(decay ** np.arange(cap, dtype=np.float64))


def _invert(
  key: jax.Array, thresholds: np.ndarray, shape: tuple[int, ...]
) -> jax.Array:
  """Draws by inversion of the cumulative distribution.

  The draws are 32-bit integers rather than float32, whose uniform draws are multiples
  of 2⁻²³: coarser than the probability of a duration beyond 2000 of the zeta law with
  an exponent of 2.
  """
  bits = jax.random.bits(key, shape, jnp.uint32)
  index = jnp.searchsorted(jnp.asarray(thresholds), bits, side="right")
  return 1 + index.astype(jnp.int32)
