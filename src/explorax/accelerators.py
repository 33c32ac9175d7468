"""What GPUs and TPUs do otherwise than a CPU; every folder may use this module.

Their host waits for each value that decides a branch, and queues nothing beyond it.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp


def may_branch() -> bool:
  """Whether programs may branch on data, and scan small arrays: on a CPU."""
  return jax.default_backend() == "cpu"


def branch(
  predicate: jax.Array,
  then: Callable[..., Any],
  otherwise: Callable[..., Any],
  *operands: Any,
) -> Any:
  """`jax.lax.cond` on a CPU; on an accelerator both functions, and a choice."""
  if may_branch():
    return jax.lax.cond(predicate, then, otherwise, *operands)
  choose = functools.partial(jnp.where, predicate)
  return jax.tree.map(choose, then(*operands), otherwise(*operands))
