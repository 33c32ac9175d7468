"""Compares the speed of a step of episodic novelty with rlax's.

Both memories are full, and both steps are jitted and donate their memory. The steps
alternate, so that other load on the machine affects both equally.
"""

import itertools
from collections.abc import Callable
from typing import Any

import bench
import jax
import numpy as np
import rlax

from explorax import exploration

SIZES = ((30_000, 32), (5000, 32))  # Capacity and dimension.

_Step = Callable[[Any, jax.Array], tuple[jax.Array, Any]]


def _ours(embeddings: np.ndarray) -> tuple[_Step, Any]:
  """Our step and a memory filled with `embeddings` `[capacity, dim]`."""
  state = exploration.init_episodic_memory(*embeddings.shape)
  state = state._replace(
    embeddings=jax.device_put(embeddings),
    added=jax.numpy.int32(len(embeddings)),
    mean_distance=jax.numpy.float32(1.0),
    num_distances=jax.numpy.float32(1.0),
  )
  return jax.jit(exploration.episodic_novelty, donate_argnums=0), state


def _peers(embeddings: np.ndarray) -> tuple[_Step, Any]:
  """rlax's step, with its defaults, and a memory filled with `embeddings`."""
  capacity = len(embeddings)

  def step(state, embedding):
    reward, state = rlax.episodic_memory_intrinsic_rewards(
      embedding[None], 10, 1.0, state, max_memory_size=capacity
    )
    return reward[0], state

  _, state = rlax.episodic_memory_intrinsic_rewards(
    embeddings[:1], 10, 1.0, max_memory_size=capacity
  )
  state.memory = jax.device_put(embeddings)
  return jax.jit(step, donate_argnums=0), state


def _steps(step: _Step, state: Any, queries: list[jax.Array]) -> Callable[[], None]:
  """A function that makes one step at each call and waits for its result."""
  query = itertools.cycle(queries)

  def call() -> None:
    nonlocal state
    _, state = jax.block_until_ready(step(state, next(query)))

  return call


def measure(quick: bool = False) -> list[bench.Row]:
  """Microseconds of a step for each size of the memory: medians over 500 steps."""
  rows = []
  rng = np.random.default_rng(0)
  for capacity, dim in SIZES:
    embeddings = rng.normal(size=(capacity, dim)).astype(np.float32)
    queries = [jax.device_put(x) for x in rng.normal(size=(10, dim)).astype(np.float32)]
    contestants = {
      "explorax": _steps(*_ours(embeddings), queries),
      "rlax": _steps(*_peers(embeddings), queries),
    }
    name = f"episodic novelty {capacity}x{dim}"
    repeats = 50 if quick else 500
    rows.append(bench.beside_rlax(name, contestants, repeats, warm_up=10))
  return rows


TABLES = (bench.Table("A step of episodic novelty, beside rlax", "novelty:measure"),)
