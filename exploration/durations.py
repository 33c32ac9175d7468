"""How long an εz repeat lasts: the laws of section 4 of εz-greedy (ICLR 2021).

All of them draw int32 durations in agent steps, at least 1 and at most `cap`.
"""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np


def _check_cap(cap: int) -> None:
  if cap < 1:
    raise ValueError(f"cap is {cap} agent steps, but a duration is at least 1.")


@functools.lru_cache(maxsize=32)
def _zeta_thresholds(mu: float, cap: int) -> np.ndarray:
  """`P(duration ≤ n)` for n = 1, …, cap − 1, in units of 2⁻³² (uint32 `[cap − 1]`)."""
  mass = np.arange(1, cap + 1, dtype=np.float64) ** -mu
  # Summed from the small end: the tail's masses are far below the head's precision.
  tail = np.cumsum(mass[::-1])[::-1]
  cumulative = 1.0 - tail[1:] / tail[0]
  return np.minimum(np.rint(cumulative * 2.0**32), 2.0**32 - 1).astype(np.uint32)


def sample_zeta(
  key: jax.Array, mu: float, cap: int, shape: tuple[int, ...] = ()
) -> jax.Array:
  """Draws from the zeta law cut off at `cap`: `p(n) ∝ n^{−mu}`, n = 1, …, cap.

  By inversion of the cumulative distribution, a table made once for each pair of
  `mu` and `cap`. The table and the draws are 32-bit integers rather than float32,
  whose draws are multiples of 2⁻²³: coarser than a duration's probability beyond
  n ≈ 2000 at mu = 2. Every probability is right to within 2⁻³².

  Args:
    key: a random key.
    mu: the exponent, static, ≥ 0; the paper's is 2.
    cap: the longest duration, static, agent steps.
    shape: of the result.

  Returns:
    int32, of that shape.

  Raises:
    ValueError: if `mu` is negative or not finite, or `cap` is below 1.
  """
  _check_cap(cap)
  if not 0.0 <= mu < np.inf:
    raise ValueError(f"mu is {mu}; a zeta exponent is finite and at least 0.")
  bits = jax.random.bits(key, shape, jnp.uint32)
  thresholds = jnp.asarray(_zeta_thresholds(float(mu), int(cap)))
  return 1 + jnp.searchsorted(thresholds, bits, side="right").astype(jnp.int32)


def sample_exponential(
  key: jax.Array, decay: chex.Numeric, cap: int, shape: tuple[int, ...] = ()
) -> jax.Array:
  """Draws from the geometric law cut off at `cap`: `p(n) ∝ decay^{n−1}`, n ≤ cap.

  Args:
    key: a random key.
    decay: λ, in [0, 1); 0 is a duration of 1 always.
    cap: the longest duration, static, agent steps.
    shape: of the result.

  Returns:
    int32, of that shape.

  Raises:
    ValueError: if `cap` is below 1.
  """
  _check_cap(cap)
  bits = jax.random.bits(key, shape, jnp.uint32)
  draw = (bits.astype(jnp.float32) + 1.0) * 2.0**-32  # In (0, 1], fine near 0.
  log_decay = jnp.log(jnp.asarray(decay, jnp.float32))
  # The law's survival function is (λⁿ − λᶜ)/(1 − λᶜ), inverted at the draw.
  cut = jnp.exp(cap * log_decay)
  length = jnp.floor(jnp.log(draw * (1.0 - cut) + cut) / log_decay)
  return jnp.clip(1.0 + length, 1.0, cap).astype(jnp.int32)


def sample_uniform(key: jax.Array, cap: int, shape: tuple[int, ...] = ()) -> jax.Array:
  """Draws uniformly from 1, …, cap.

  Args:
    key: a random key.
    cap: the longest duration, agent steps.
    shape: of the result.

  Returns:
    int32, of that shape.

  Raises:
    ValueError: if `cap` is below 1.
  """
  _check_cap(cap)
  return jax.random.randint(key, shape, 1, cap + 1, jnp.int32)
