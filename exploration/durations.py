"""How long an εz repeat lasts: the laws of section 4 of εz-greedy (ICLR 2021).

All of them draw int32 durations in agent steps, at least 1 and at most `cap`.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np


def _check_cap(cap: int) -> None:
  if cap < 1:
    raise ValueError(f"cap is {cap} agent steps, but a duration is at least 1.")


def _thresholds(mass: np.ndarray) -> np.ndarray:
  """`P(duration ≤ n)` for n = 1, 2, …, in units of 2⁻³², as uint32.

  Args:
    mass: float64 `[cap]`, descending, each duration's weight.

  Returns:
    One threshold for each duration but the longest that a 32-bit draw can give.
  """
  # Summed from the small end: the tail's masses are far below the head's precision.
  tail = np.cumsum(mass[::-1])[::-1]
  cumulative = np.rint((1.0 - tail[1:] / tail[0]) * 2.0**32)
  return cumulative[cumulative < 2.0**32].astype(np.uint32)


@functools.lru_cache(maxsize=32)
def _zeta_thresholds(mu: float, cap: int) -> np.ndarray:
  return _thresholds(np.arange(1, cap + 1, dtype=np.float64) ** -mu)


@functools.lru_cache(maxsize=32)
def _exponential_thresholds(decay: float, cap: int) -> np.ndarray:
  return _thresholds(decay ** np.arange(cap, dtype=np.float64))


def _invert(
  key: jax.Array, thresholds: np.ndarray, shape: tuple[int, ...]
) -> jax.Array:
  """Draws by inversion of the cumulative distribution.

  The draws are 32-bit integers rather than float32, whose uniform draws are multiples
  of 2⁻²³: coarser than the probability of a duration beyond 2000 of the zeta law with
  an exponent of 2. So every probability is right to within 2⁻³².
  """
  bits = jax.random.bits(key, shape, jnp.uint32)
  index = jnp.searchsorted(jnp.asarray(thresholds), bits, side="right")
  return 1 + index.astype(jnp.int32)


def sample_zeta(
  key: jax.Array, mu: float, cap: int, shape: tuple[int, ...] = ()
) -> jax.Array:
  """Draws from the zeta law cut off at `cap`: `p(n) ∝ n^{−mu}`, n = 1, …, cap.

  Every probability is right to within 2⁻³². The table behind it is made once for each
  pair of `mu` and `cap`.

  Args:
    key: a random key.
    mu: the exponent, static, ≥ 0; the paper's is 2.
    cap: the longest duration, static, agent steps; the paper's are 10 000 and 100.
    shape: of the result.

  Returns:
    int32, of that shape.

  Raises:
    ValueError: if `mu` is negative or not finite, or `cap` is below 1.
  """
  _check_cap(cap)
  if not 0.0 <= mu < np.inf:
    raise ValueError(f"mu is {mu}; a zeta exponent is finite and at least 0.")
  return _invert(key, _zeta_thresholds(float(mu), int(cap)), shape)


def sample_exponential(
  key: jax.Array, decay: float, cap: int, shape: tuple[int, ...] = ()
) -> jax.Array:
  """Draws from the geometric law cut off at `cap`: `p(n) ∝ decay^{n−1}`, n ≤ cap.

  Every probability is right to within 2⁻³².

  Args:
    key: a random key.
    decay: λ, static, in [0, 1); 0 is a duration of 1 always.
    cap: the longest duration, static, agent steps.
    shape: of the result.

  Returns:
    int32, of that shape.

  Raises:
    ValueError: if `decay` is not in [0, 1), or `cap` is below 1.
  """
  _check_cap(cap)
  if not 0.0 <= decay < 1.0:
    raise ValueError(f"decay is {decay}; use a value in [0, 1).")
  return _invert(key, _exponential_thresholds(float(decay), int(cap)), shape)


def sample_uniform(key: jax.Array, cap: int, shape: tuple[int, ...] = ()) -> jax.Array:
  """Draws uniformly from 1, …, cap.

  Args:
    key: a random key.
    cap: the longest duration, static, agent steps.
    shape: of the result.

  Returns:
    int32, of that shape.

  Raises:
    ValueError: if `cap` is below 1.
  """
  _check_cap(cap)
  return jax.random.randint(key, shape, 1, cap + 1, jnp.int32)
