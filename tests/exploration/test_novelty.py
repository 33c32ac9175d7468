"""Episodic novelty, against a plain loop that follows the paper's algorithm."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest

from explorax import exploration
from explorax.exploration import novelty

pytestmark = pytest.mark.core


def _walk(seed: int, num_steps: int, dim: int, revisit: float = 0.4) -> np.ndarray:
  """Embeddings of which many are exact repetitions, or nearly so."""
  rng = np.random.default_rng(seed)
  walk = [rng.normal(size=dim)]
  for _ in range(num_steps - 1):
    if rng.random() < revisit:
      walk.append(walk[rng.integers(len(walk))] + rng.integers(2) * 1e-3)
    else:
      walk.append(rng.normal(size=dim))
  return np.asarray(walk, np.float32)


@pytest.mark.parametrize(
  ("capacity", "k", "dim", "others"),
  [
    (1, 1, 1, {}),
    (8, 10, 1, {}),
    (50, 20, 2, {"eps": 1e-2, "xi": 0.1, "c": 0.01, "s_max": 1.5}),
  ],
)
def test_matches_the_algorithm(capacity, k, dim, others):
  """Fewer than k entries, duplicates, a ring that wraps, and an episode's end.

  Several walks at once, vmapped and scanned.
  """
  walks = np.stack([_walk(seed, 40, dim) for seed in range(4)])

  def body(state, inputs):
    embedding, begins = inputs
    cleared = exploration.clear_episodic_memory(state)
    state = jax.tree.map(lambda a, b: jnp.where(begins, a, b), cleared, state)
    reward, state = exploration.episodic_novelty(state, embedding, k, *others.values())
    return state, reward

  def run(walk):
    start = exploration.init_episodic_memory(capacity, dim)
    return jax.lax.scan(body, start, (walk, jnp.arange(40) == 25))

  states, rewards = jax.jit(jax.vmap(run))(walks)
  for i, walk in enumerate(walks):
    oracle, expected = oracles.EpisodicNovelty(capacity, k, **others), []
    for t, embedding in enumerate(walk):
      if t == 25:
        oracle.reset()
      expected.append(oracle(embedding))
    np.testing.assert_allclose(rewards[i], expected, rtol=1e-3, atol=1e-6)
    assert (0.0 in expected[1:25]) == bool(others)  # max_similarity was passed.
    mean = np.mean(oracle.all_distances)
    np.testing.assert_allclose(states.mean_distance[i], mean, rtol=1e-4)
    assert states.num_distances.value[i] == len(oracle.all_distances)


def test_equal_states_only_are_never_nan():
  """d_m² stays 0: every kernel is 1, and s is sqrt(k) + c."""
  state = exploration.init_episodic_memory(5, 2)
  step = jax.jit(exploration.episodic_novelty)
  for t in range(12):
    reward, state = step(state, jnp.array([0.1, -7.3]))
    expected = 1.0 / (math.sqrt(10.0) + 1e-3) if t else 0.0
    np.testing.assert_allclose(reward, expected, rtol=1e-6)
  assert state.mean_distance == 0.0


def test_a_revisit_far_from_the_origin_is_recognised():
  """‖m‖² − 2 m·x + ‖x‖² would find distances of about 1 between equal states here."""
  places = np.random.default_rng(0).normal(1000.0, 1.0, (300, 32)).astype(np.float32)
  state = exploration.init_episodic_memory(1000, 32)
  step = jax.jit(lambda s, x: exploration.episodic_novelty(s, x, num_neighbors=1))
  for place in places:
    novel, state = step(state, place)
  familiar, _ = step(state, places[17])
  np.testing.assert_allclose(familiar, 1.0 / (1.0 + 1e-3), rtol=1e-5)
  assert novel > 10 * familiar


@pytest.mark.parametrize(
  ("size", "k"), [(1, 1), (1024, 300), (1025, 10), (3000, 300), (30_000, 10)]
)
def test_smallest_is_exact(size, k):
  rng = np.random.default_rng(size + k)
  for values in (
    rng.normal(size=size),
    rng.integers(0, 5, size=size),  # Ties by the thousand.
    np.where(np.arange(size) < size // 2, rng.normal(size=size), np.inf),
    np.arange(size)[::-1],
  ):
    values = values.astype(np.float32)
    smallest = jax.jit(novelty.smallest, static_argnums=1)(values, k)
    np.testing.assert_array_equal(smallest, np.sort(values)[:k])


@pytest.mark.parametrize("capacity", [3, 100])
@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e30])
def test_an_embedding_that_is_not_finite_earns_nan_and_leaves_no_trace(capacity, bad):
  """As the last one, and before others: the memory is full, or is not."""
  step = jax.jit(exploration.episodic_novelty)
  state = exploration.init_episodic_memory(capacity, 2)
  for embedding in _walk(0, 5, 2):
    _, state = step(state, embedding)
  broken, after = step(state, jnp.array([0.0, bad]))
  assert np.isnan(broken)
  assert all(map(np.array_equal, after, state))


@pytest.mark.parametrize(("k", "capacity"), [(3, 100), (20, 8)])
def test_nearest_distance_is_that_of_a_sorted_list(k, capacity):
  rng = np.random.default_rng(0)
  embeddings = rng.normal(size=(30, 4)).astype(np.float32)
  embeddings[5] = embeddings[6] = embeddings[7] = embeddings[4]
  step = jax.jit(exploration.nearest_distance, static_argnums=2)
  state = exploration.init_episodic_memory(capacity, 4)
  for t, x in enumerate(embeddings):
    found, state = step(state, x, k)
    known = embeddings[max(t - capacity, 0) : t].astype(np.float64)
    distances = np.sort(np.linalg.norm(known - x, axis=1))
    expected = distances[min(k, t, capacity) - 1] if t else 0.0
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert found == 0.0 or t != 7 or k > 3
  _, after = step(state, jnp.full(4, jnp.nan), k)
  assert all(map(np.array_equal, after, state))
