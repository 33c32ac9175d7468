"""Sums and counts in single precision that lose no small terms.

A float32 beyond 2²⁴ does not change when 1 is added to it. A `Sum` keeps what rounding
takes away in a second number.
"""

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

from explorax import accelerators


class Sum(NamedTuple):
  """A sum: `value`, float32, and `rest`, float32, which rounding took away from it.

  The sum is `value + rest` in double precision; `value` alone is it in single
  precision.
  """

  value: jax.Array
  rest: jax.Array


def zero(shape: tuple[int, ...] = ()) -> Sum:
  """A sum of nothing, of this shape."""
  return Sum(jnp.zeros(shape, jnp.float32), jnp.zeros(shape, jnp.float32))


def add(total: Sum, term: chex.Numeric) -> Sum:
  """Adds a term, by Knuth's exact sum of two numbers (TAOCP 2, section 4.2.2)."""
  term = jnp.asarray(term, jnp.float32) + total.rest
  value = total.value + term
  added = value - total.value
  rest = (total.value - (value - added)) + (term - added)
  return Sum(value, rest)


def cumulative(x: jax.Array) -> jax.Array:
  """The running sums of `[N]`; of a few numbers, accelerators need no scan."""
  if x.shape[0] > 16 or accelerators.may_branch():
    return jnp.cumsum(x)
  return jnp.sum(jnp.where(jnp.tri(x.shape[0], dtype=bool), x, 0), axis=1)
