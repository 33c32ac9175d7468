"""The whole intrinsic reward against a plain loop."""

import dm_env
import jax
import numpy as np
import oracles
import pytest

from explorax.agents.bonuses import ngu

SPEC = dm_env.specs.Array((2,), np.float32)


def reference(settings, weights, episodes):
  """Algorithm 1 of Never Give Up and its equation 1, in float64.

  Yields (r_int, α before it is clipped) of each observation.
  """
  wide = jax.tree.map(lambda x: np.asarray(x, np.float64), weights)

  def last_layer(params, x):
    return x @ params["embedding"]["w"] + params["embedding"]["b"]

  novelty = oracles.EpisodicNovelty(
    settings.memory_capacity,
    settings.num_neighbors,
    settings.kernel_epsilon,
    settings.cluster_distance,
    settings.pseudo_count,
    settings.max_similarity,
  )
  all_errors = []
  for number, episode in enumerate(episodes):
    if number % settings.episodes_per_memory == 0:
      novelty.reset()
    for x in np.asarray(episode, np.float64):
      reward, alpha = novelty(last_layer(wide.embedding, x)), 1.0
      if settings.rnd:
        error = last_layer(wide.predictor, x) - last_layer(wide.target, x)
        all_errors.append(np.sum(error**2))
        deviation = np.std(all_errors)
        if deviation > 0:
          alpha = 1.0 + (all_errors[-1] - np.mean(all_errors)) / deviation
      yield reward * min(max(alpha, 1.0), settings.max_modulation), alpha


def walks(lengths, seed=0):
  """Episodes on a small grid, so that many observations are exact repetitions."""
  rng = np.random.default_rng(seed)
  return [
    np.cumsum(rng.integers(-1, 2, (length, 2)), axis=0).astype(np.float32)
    for length in lengths
  ]


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
def test_rewards_are_those_of_the_algorithm(make_bonus, play, changes):
  settings = ngu.NeverGiveUp(
    torso="mlp", embedding_size=2, rnd_size=3, max_modulation=2.0, **changes
  )
  bonus = make_bonus(
    SPEC, **{"memory_capacity": 30_000, "max_modulation": 2.0, **changes}
  )
  training = bonus.training
  init = jax.jit(lambda key: training.weights(training.init(key)))
  weights = init(jax.random.PRNGKey(3))
  episodes = walks((14, 9, 1, 12, 15))
  values, state = play(bonus, episodes, weights)
  rewards = np.concatenate(values)
  expected, alphas = zip(*reference(settings, weights, episodes), strict=True)
  assert np.isfinite(rewards).all()
  np.testing.assert_allclose(rewards, expected, rtol=2e-3, atol=1e-6)
  assert state.episodes == 5
  starts = np.cumsum([0, 14, 9, 1, 12])
  is_empty = np.arange(5) % settings.episodes_per_memory == 0
  np.testing.assert_array_equal(rewards[starts] == 0.0, is_empty)
  if settings.rnd:
    # Clipped at both ends, and at neither.
    assert min(alphas) < 1.0 and max(alphas) > 2.0
    assert any(1.0 < alpha < 2.0 for alpha in alphas)
    assert state.moments.weight == len(rewards)
  else:
    assert state.moments.weight == 0
    assert np.sum(rewards == 0.0) > sum(is_empty)  # s_m was exceeded.
