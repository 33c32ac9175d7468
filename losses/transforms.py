"""Invertible transformations of values, in which TD errors are computed."""

import functools
import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp


class TxPair(NamedTuple):
  """An increasing element-wise transformation and its inverse; rlax's also work.

  Attributes:
    apply: real values → the space in which networks predict.
    apply_inv: its inverse.
  """

  apply: Callable[[jax.Array], jax.Array]
  apply_inv: Callable[[jax.Array], jax.Array]


def _identity(x: jax.Array) -> jax.Array:
  return x


# The identity.
identity_pair = TxPair(_identity, _identity)


def _is_finite_number(value: object) -> bool:
  return isinstance(value, int | float) and math.isfinite(value)


@functools.cache
def _make_signed_hyperbolic_pair(eps: float) -> TxPair:
  def apply(x: jax.Array) -> jax.Array:
    # √(|x| + 1) − 1 = |x| / (√(|x| + 1) + 1), without cancellation near 0.
    return x * (1.0 / (jnp.sqrt(jnp.abs(x) + 1.0) + 1.0) + eps)

  def apply_inv(x: jax.Array) -> jax.Array:
    # w = √(|z| + 1) − 1 solves ε w² + (1 + 2ε) w = |x|, and |z| = w (w + 2). This form
    # of the root has no subtraction.
    b = 1.0 + 2.0 * eps
    factor = 2.0 / (b + jnp.sqrt(b * b + 4.0 * eps * jnp.abs(x)))
    return x * factor * (jnp.abs(x) * factor + 2.0)

  return TxPair(apply, apply_inv)


def signed_hyperbolic_pair(eps: float = 1e-3) -> TxPair:
  """The pair of `h(z) = sign(z) (√(|z| + 1) − 1) + ε z`.

  Its inverse is `sign(x) (((√(1 + 4ε (|x| + 1 + ε)) − 1) / (2ε))² − 1)`. Both are
  computed without cancellation, so that float32 values survive a round trip to within a
  few roundings of their size, including those near 0; ε = 0 is allowed. The same ε
  gives the same pair, which may therefore be a static argument of `jax.jit`.

  Source: Pohlen et al. 2018, proposition A.2; NGU (Badia et al. 2020), appendix E,
  equation 17, whose inverse lacks the square.

  Args:
    eps: ε, a finite Python number of at least 0.

  Returns:
    The pair, for arrays of floats of any shape.
  """
  if not (_is_finite_number(eps) and eps >= 0):
    raise ValueError(
      f"signed_hyperbolic_pair: eps is {eps!r}; it must be a finite Python number "
      "of at least 0, such as 1e-3."
    )
  return _make_signed_hyperbolic_pair(float(eps))
