"""The whole intrinsic reward against a plain loop."""

import math

import dm_env
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax.agents.bonuses import ngu

SPEC = dm_env.specs.Array((2,), np.float32)


def reference(settings, weights, episodes):
  """Algorithm 1 of Never Give Up and its equation 1, line by line, in float64.

  Yields (r_int, α before it is clipped) of each observation.
  """
  wide = jax.tree.map(lambda x: np.asarray(x, np.float64), weights)

  def f(x):
    return x @ wide.embedding["embedding"]["w"] + wide.embedding["embedding"]["b"]

  def g(params, x):
    return x @ params["embedding"]["w"] + params["embedding"]["b"]

  memory, all_distances, all_errors = [], [], []
  for number, episode in enumerate(episodes):
    if number % settings.episodes_per_memory == 0:
      memory = []
    for x in np.asarray(episode, np.float64):
      # 1-3: the embedding, and its nearest neighbours.
      state = f(x)
      distances = sorted(float(np.sum((state - m) ** 2)) for m in memory)
      nearest = distances[: settings.num_neighbors]
      # 4: the running mean of their distances.
      all_distances += nearest
      mean = sum(all_distances) / max(len(all_distances), 1)
      # 5-8: distances become similarities.
      total = 0.0
      for d in nearest:
        rate = d / mean if mean > 0 else 0.0
        rate = max(rate - settings.cluster_distance, 0.0)
        total += settings.kernel_epsilon / (rate + settings.kernel_epsilon)
      reward = 0.0
      if nearest:
        total *= settings.num_neighbors / len(nearest)
        s = math.sqrt(total) + settings.pseudo_count
        reward = 0.0 if s > settings.max_similarity else 1.0 / s
      # The observation enters the memory last, in place of the oldest one.
      memory = [*memory, state][-settings.memory_capacity :]
      alpha = 1.0
      if settings.rnd:
        error = float(np.sum((g(wide.predictor, x) - g(wide.target, x)) ** 2))
        all_errors.append(error)
        deviation = np.std(all_errors)
        if deviation > 0:
          alpha = 1.0 + (error - np.mean(all_errors)) / deviation
      yield reward * min(max(alpha, 1.0), settings.max_modulation), alpha


def walks(lengths, seed=0):
  """Episodes on a small grid, so that many observations are exact repetitions."""
  rng = np.random.default_rng(seed)
  return [
    np.cumsum(rng.integers(-1, 2, (length, 2)), axis=0).astype(np.float32)
    for length in lengths
  ]


def run(bonus, weights, episodes):
  """The rewards of all observations, and the last state."""
  begin, observe = jax.jit(bonus.begin_episode), jax.jit(bonus.observe)
  state, rewards = bonus.init(), []
  for episode in episodes:
    state = begin(state)
    for t, x in enumerate(episode):
      last = jnp.bool_(t == len(episode) - 1)
      reward, state = observe(weights, state, x, jnp.int32(0), last)
      rewards.append(float(reward))
  return rewards, state


@pytest.mark.parametrize(
  "changes",
  [
    {},
    # A ring that wraps, in episodes that are remembered together.
    {"episodes_per_memory": 3, "memory_capacity": 7, "num_neighbors": 4},
    # Never as many entries as neighbours, and similarities that are too large.
    {"rnd": False, "memory_capacity": 5, "num_neighbors": 9, "max_similarity": 1.5},
  ],
)
def test_rewards_are_those_of_the_algorithm(make_bonus, changes):
  settings = ngu.NeverGiveUp(
    torso="mlp", embedding_size=2, rnd_size=3, max_modulation=2.0, **changes
  )
  bonus = make_bonus(
    SPEC,
    **{"memory_capacity": 30_000, "max_modulation": 2.0, **changes},
  )
  weights = bonus.training.weights(bonus.training.init(jax.random.PRNGKey(3)))
  episodes = walks((14, 9, 1, 12, 15))
  rewards, state = run(bonus, weights, episodes)
  expected, alphas = zip(*reference(settings, weights, episodes), strict=True)
  assert np.isfinite(rewards).all()
  np.testing.assert_allclose(rewards, expected, rtol=2e-3, atol=1e-6)
  assert state.episodes == 5
  starts = np.cumsum([0, 14, 9, 1, 12])
  is_empty = np.arange(5) % settings.episodes_per_memory == 0
  np.testing.assert_array_equal(np.array(rewards)[starts] == 0.0, is_empty)
  if settings.rnd:
    # Clipped at both ends, and at neither.
    assert min(alphas) < 1.0 and max(alphas) > 2.0
    assert any(1.0 < alpha < 2.0 for alpha in alphas)
    assert state.moments.weight == len(rewards)
  else:
    assert state.moments.weight == 0
    assert rewards.count(0.0) > sum(is_empty)  # s_m was exceeded.
