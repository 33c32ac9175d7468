"""Episodic novelty: how far a state is from those seen before in this episode.

Algorithm 1 of "Never Give Up" (Badia et al., 2020), with these readings where the text
is silent:

  - While only n < k states have been seen, the sum over neighbours is scaled by k/n,
    and the first state of an episode earns 0. (Taken literally, an empty memory would
    give 1/c = 1000, far above all later rewards.)
  - d_m² is the mean of all neighbours' squared distances since the start of the run,
    over all episodes. If it is 0, normalised distances are 0.
  - The published k = 10 gives `s ≤ sqrt(10) + c`, so that `max_similarity` = 8 is
    never reached; with k ≥ 64 it can be.
  - An embedding that is not finite, or whose distances overflow float32, earns NaN and
    does not change the memory or the mean.
"""

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

from explorax.exploration import sums
from explorax.losses import checks

# Groups in the search for the smallest distances. 128 to 1024 were equally fast.
_MIN_GROUPS = 256


class EpisodicMemory(NamedTuple):
  """The states seen in this episode, and the scale of their distances.

  Attributes:
    embeddings: float32 `[capacity, dim]`, a ring.
    added: int32 `[]`, number of states since the memory was last cleared.
    mean_distance: float32 `[]`, d_m², over all episodes.
    num_distances: the number of distances in this mean.
  """

  embeddings: jax.Array
  added: jax.Array
  mean_distance: jax.Array
  num_distances: sums.Sum


def init_episodic_memory(capacity: int, dim: int) -> EpisodicMemory:
  """An empty memory.

  Args:
    capacity: number of states, in agent steps; the oldest are overwritten.
    dim: of the embeddings.

  Raises:
    ValueError: if either is below 1.
  """
  if capacity < 1 or dim < 1:
    raise ValueError(
      f"an episodic memory of {capacity} embeddings of dimension {dim} is empty; use "
      "at least 1 of each."
    )
  return EpisodicMemory(
    embeddings=jnp.zeros((capacity, dim), jnp.float32),
    added=jnp.zeros((), jnp.int32),
    mean_distance=jnp.zeros((), jnp.float32),
    num_distances=sums.zero(),
  )


def clear_episodic_memory(state: EpisodicMemory) -> EpisodicMemory:
  """Clears the memory at an episode's start; keeps the mean of the distances."""
  return state._replace(added=jnp.zeros_like(state.added))


def smallest(values: jax.Array, k: int) -> jax.Array:
  """The k smallest of `values` `[N]`, ascending, exactly; k ≤ N.

  The values are split into groups. The k smallest lie in the k groups with the smallest
  minima, and only those are searched. The minima come from repeatedly halving the
  array, which vectorises: on a CPU this takes a third of the time of `jax.lax.top_k` at
  N = 30 000.
  """
  num_groups = max(_MIN_GROUPS, _power_of_two(k))
  padded = _power_of_two(values.size)
  if padded <= 4 * num_groups:
    return -jax.lax.top_k(-values, k)[0]
  values = jnp.pad(values, (0, padded - values.size), constant_values=jnp.inf)
  minima = values
  while minima.size > num_groups:
    half = minima.size // 2
    minima = jnp.minimum(minima[:half], minima[half:])
  groups = jax.lax.top_k(-minima, k)[1]
  candidates = values.reshape(-1, num_groups)[:, groups]
  return -jax.lax.top_k(-candidates.ravel(), k)[0]


def _power_of_two(n: int) -> int:
  """The least power of two that is at least n."""
  return 1 << (n - 1).bit_length()


def _nearest(
  state: EpisodicMemory, embedding: jax.Array, num_neighbors: int
) -> tuple[jax.Array, jax.Array]:
  """Squared distances of the nearest, `[k]`, and how many of them are valid."""
  capacity = state.embeddings.shape[0]
  # Not ‖m‖² − 2 m·x + ‖x‖²: rounding would give equal states a distance.
  distances = jnp.sum(jnp.square(state.embeddings - embedding[None]), axis=1)
  size = jnp.minimum(state.added, capacity)
  distances = jnp.where(jnp.arange(capacity) < size, distances, jnp.inf)
  k = min(num_neighbors, capacity)
  return smallest(distances, k), jnp.minimum(size, k)


def _append(
  state: EpisodicMemory, embedding: jax.Array, distances: jax.Array, is_good: jax.Array
) -> EpisodicMemory:
  """Writes a finite embedding over the oldest one, after `distances` are computed."""
  # The second branch of this selection is never taken, which the compiler cannot know.
  # It orders the write after the reading of the memory, so that a donated memory is
  # updated in place. Otherwise XLA copies the whole memory twice per step.
  embedding = jnp.where(distances[0] < 0.0, jnp.nan, embedding)
  slot = state.added % state.embeddings.shape[0]
  embedding = jnp.where(is_good, embedding, state.embeddings[slot])
  embeddings = jax.lax.dynamic_update_slice_in_dim(
    state.embeddings, embedding[None], slot, axis=0
  )
  return state._replace(embeddings=embeddings, added=state.added + is_good)


def nearest_distance(
  state: EpisodicMemory, embedding: jax.Array, num_neighbors: int
) -> tuple[jax.Array, EpisodicMemory]:
  """The distance ‖y − y_k‖₂ to the k-th nearest in memory, to which y is then added.

  While fewer than k are there, it is the distance to the farthest; to an empty memory
  it is 0. An embedding that is not finite is not added.

  Args:
    state: from `init_episodic_memory`.
    embedding: y, float `[dim]`.
    num_neighbors: k, static.

  Returns:
    The distance, float32 `[]`, without a gradient, and the state.
  """
  checks.check_in_range("nearest_distance", "num_neighbors", num_neighbors, 1)
  checks.check(
    "nearest_distance",
    embeddings=(state.embeddings, "float [N, D]"),
    embedding=(embedding, "float [D]"),
  )
  embedding = jax.lax.stop_gradient(embedding).astype(jnp.float32)
  distances, num_valid = _nearest(state, embedding, num_neighbors)
  farthest = jnp.sqrt(distances[jnp.maximum(num_valid - 1, 0)])
  state = _append(state, embedding, distances, jnp.all(jnp.isfinite(embedding)))
  return jnp.where(num_valid > 0, farthest, 0.0), state


def episodic_novelty(
  state: EpisodicMemory,
  embedding: jax.Array,
  num_neighbors: int = 10,
  kernel_epsilon: chex.Numeric = 1e-4,
  cluster_distance: chex.Numeric = 8e-3,
  pseudo_count: chex.Numeric = 1e-3,
  max_similarity: chex.Numeric = 8.0,
) -> tuple[jax.Array, EpisodicMemory]:
  """Rewards an embedding for its distance to the memory, then adds it there.

  With d_i² the squared distances to the k nearest neighbours and d_m² their running
  mean: `K_i = ε / (max(d_i²/d_m² − ξ, 0) + ε)`, `s = sqrt(Σ_i K_i) + c`, and the
  reward is `1/s`, or 0 if `s > s_m`. (Badia et al., 2020, algorithm 1; for our readings
  see the top of this module.) Donate the state, so that it is updated in place.

  Args:
    state: from `init_episodic_memory`; emptied by `clear_episodic_memory`.
    embedding: `[dim]`, float, the controllable state.
    num_neighbors: k, static (table 6).
    kernel_epsilon: ε (table 6; the text says 1e-3).
    cluster_distance: ξ, below which two states are the same one.
    pseudo_count: c, keeps the reward below 1/c.
    max_similarity: s_m, beyond which the reward is 0.

  Returns:
    The reward, float32 `[]`, without a gradient, and the state.

  Raises:
    ValueError: if `num_neighbors` is below 1, or shapes do not fit.
  """
  checks.check_in_range("episodic_novelty", "num_neighbors", num_neighbors, 1)
  checks.check(
    "episodic_novelty",
    embeddings=(state.embeddings, "float [N, D]"),
    embedding=(embedding, "float [D]"),
  )
  embedding = jax.lax.stop_gradient(embedding).astype(jnp.float32)

  distances, num_valid = _nearest(state, embedding, num_neighbors)
  is_valid = jnp.arange(distances.size) < num_valid
  is_good = jnp.all(jnp.isfinite(embedding)) & jnp.all(
    jnp.isfinite(distances) | ~is_valid
  )
  num_distances = sums.add(state.num_distances, num_valid)
  gaps = jnp.where(is_valid, distances - state.mean_distance, 0.0)
  number = jnp.maximum(num_distances.value, 1.0)
  mean_distance = state.mean_distance + jnp.sum(gaps) / number

  rates = jnp.where(is_valid, distances, 0.0) / jnp.where(
    mean_distance > 0.0, mean_distance, 1.0
  )
  rates = jnp.maximum(rates - cluster_distance, 0.0)
  kernels = jnp.where(is_valid, kernel_epsilon / (rates + kernel_epsilon), 0.0)
  scale = num_neighbors / jnp.maximum(num_valid, 1)
  similarity = jnp.sqrt(scale * jnp.sum(kernels)) + pseudo_count
  unrewarded = (num_valid == 0) | (similarity > max_similarity)
  reward = jnp.where(unrewarded, 0.0, 1.0 / similarity)

  after = _append(state, embedding, distances, is_good)
  return jnp.where(is_good, reward, jnp.nan), after._replace(
    mean_distance=jnp.where(is_good, mean_distance, state.mean_distance),
    num_distances=jax.tree.map(
      lambda new, old: jnp.where(is_good, new, old), num_distances, state.num_distances
    ),
  )
