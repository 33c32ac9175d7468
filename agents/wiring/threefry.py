"""JAX's random bits on a CPU, computed without a loop.

XLA runs the twenty rounds of Threefry, JAX's generator, as a loop on CPUs. For the few
numbers of a step, those loops take a fifth of the time of acting. The rounds as
straight code are one operation with the same bits.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend import random
from jax.interpreters import mlir

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA


@functools.cache
def unroll_on_cpu() -> None:
  """Makes the programs that this process compiles from now on use `threefry2x32`."""

  def apart(*arguments: jax.Array) -> Any:
    # Keys of keys in one operation would be computed again and again, and take minutes
    # to compile.
    arguments = jax.lax.optimization_barrier(arguments)
    return jax.lax.optimization_barrier(threefry2x32(*arguments))

  rule = mlir.lower_fun(apart, multiple_results=True)
  mlir.register_lowering(random.threefry2x32_p, rule, platform="cpu")


def threefry2x32(
  key_0: jax.Array, key_1: jax.Array, count_0: jax.Array, count_1: jax.Array
) -> tuple[jax.Array, jax.Array]:
  """Threefry-2x32 with 20 rounds (Salmon et al., 2011), for arrays of one shape.

  Args:
    key_0, key_1: uint32, the key.
    count_0, count_1: uint32, the counter.

  Returns:
    Two arrays of random bits, uint32.
  """
  keys = (key_0, key_1, key_0 ^ key_1 ^ jnp.uint32(_PARITY))
  x, y = count_0 + keys[0], count_1 + keys[1]
  for i in range(5):
    for distance in _ROTATIONS[i % 2]:
      x = x + y
      left = jax.lax.shift_left(y, jnp.uint32(distance))
      right = jax.lax.shift_right_logical(y, jnp.uint32(32 - distance))
      y = x ^ (left | right)
    x = x + keys[(i + 1) % 3]
    y = y + keys[(i + 2) % 3] + jnp.uint32(i + 1)
  return x, y
