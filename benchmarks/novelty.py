"""Times a step of episodic novelty side by side with rlax's.

`python -m benchmarks.novelty` prints a table; `measure` returns it as data. Both
memories are full, donated and jitted, and their steps alternate, so that whatever
else the machine does disturbs both alike.
"""

import statistics
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import rlax

from explorax import exploration

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
  """rlax's step, with its defaults, and a memory filled likewise."""
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


def _time(step: _Step, state: Any, embedding: jax.Array) -> tuple[float, Any]:
  """Seconds that one step takes, and the state after it."""
  start = time.perf_counter()
  _, state = jax.block_until_ready(step(state, embedding))
  return time.perf_counter() - start, state


def measure(
  sizes: tuple[tuple[int, int], ...] = ((30_000, 32), (5000, 32)),
  num_steps: int = 500,
) -> list[dict[str, Any]]:
  """Medians over `num_steps` steps for each (capacity, dim).

  Returns:
    One dict per size: `name`, `explorax_us` and `rlax_us` (microseconds per step) and
    `ratio`, how many times as fast as rlax.
  """
  rows = []
  rng = np.random.default_rng(0)
  for capacity, dim in sizes:
    embeddings = rng.normal(size=(capacity, dim)).astype(np.float32)
    queries = [jax.device_put(x) for x in rng.normal(size=(10, dim)).astype(np.float32)]
    contestants = [_ours(embeddings), _peers(embeddings)]
    times: list[list[float]] = [[], []]
    for i in range(num_steps + 10):
      for j, (step, state) in enumerate(contestants):
        seconds, state = _time(step, state, queries[i % len(queries)])
        contestants[j] = (step, state)
        if i >= 10:  # The first ones compile.
          times[j].append(seconds)
    ours, peers = (1e6 * statistics.median(t) for t in times)
    rows.append(
      {
        "name": f"episodic novelty {capacity}x{dim}",
        "explorax_us": ours,
        "rlax_us": peers,
        "ratio": peers / ours,
      }
    )
  return rows


def main() -> None:
  for row in measure():
    print(
      f"{row['name']}: {row['explorax_us']:.0f} us, rlax {row['rlax_us']:.0f} us, "
      f"{row['ratio']:.2f} times as fast"
    )


if __name__ == "__main__":
  main()
