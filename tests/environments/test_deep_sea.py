"""Deep Sea, step by step against bsuite's own."""

import warnings

import jax
import numpy as np
import pytest
from bsuite.environments import deep_sea as bsuite_deep_sea

from explorax.environments import deep_sea


class _Tosses:
  """bsuite's random numbers, given in advance: one toss and one noise a step."""

  def __init__(self):
    self.fails, self.noise = False, 0.0

  def rand(self):
    return 0.0 if self.fails else 1.0

  def randn(self):
    return self.noise


def _bsuite(size, *, stochastic=False, permuted=False, mapping_seed=42):
  with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # It warns of actions that are not permuted.
    environment = bsuite_deep_sea.DeepSea(
      size,
      deterministic=not stochastic,
      randomize_actions=permuted,
      mapping_seed=mapping_seed,
    )
  environment._rng = _Tosses()
  return environment


def _assert_equal(ours, theirs):
  assert ours.step_type == theirs.step_type
  np.testing.assert_array_equal(ours.observation, theirs.observation)
  if theirs.first():
    assert (ours.reward, ours.discount) == (0.0, 1.0)
  else:
    np.testing.assert_allclose(ours.reward, theirs.reward, rtol=1e-6, atol=1e-7)
    assert ours.discount == theirs.discount


@pytest.mark.parametrize(
  ("size", "stochastic", "permuted"),
  [(2, False, True), (5, True, True), (10, False, False)],
)
def test_is_bsuites_given_the_same_tosses(size, stochastic, permuted):
  sea = deep_sea.DeepSea(
    size, stochastic=stochastic, permuted=permuted, mapping_seed=size
  )
  params = sea.default_params()
  reference = _bsuite(size, stochastic=stochastic, permuted=permuted, mapping_seed=size)
  reset, step = jax.jit(sea.reset), jax.jit(sea.step)
  draw = jax.jit(deep_sea.draw_tosses, static_argnums=1)
  rng = np.random.default_rng(size)
  keys = iter(jax.random.split(jax.random.PRNGKey(size), 40 * size))
  counted = {"bad_episode": 0.0, "denoised_return": 0.0}
  for episode in range(40):
    state, timestep = reset(jax.random.PRNGKey(0), params)
    expected = reference.reset()
    _assert_equal(timestep, expected)
    row, column = 0, 0
    while not expected.last():
      action = rng.integers(2, dtype=np.int32)
      if episode % 3 == 0 or (episode % 3 == 1 and row > 0):
        # Towards the goal, in some episodes after a first step that is random.
        action = np.int32(params.right[row, column])
      key = next(keys)
      fails, noise = draw(key, size)
      reference._rng.fails, reference._rng.noise = bool(fails), float(noise)
      state, timestep = step(key, state, action, params)
      expected = reference.step(action)
      _assert_equal(timestep, expected)
      row, column = int(state.row), int(state.column)
    for name, value in sea.metrics(state, params).items():
      counted[name] += float(value)
  info = reference.bsuite_info()
  assert counted["bad_episode"] == info["total_bad_episodes"]
  assert counted["denoised_return"] == info["denoised_return"]
  assert 0 < counted["bad_episode"] < 40
  assert counted["denoised_return"] > 0


@pytest.mark.parametrize("size", [4, 20])
def test_tosses_have_the_probabilities_of_bsuites(size):
  keys = jax.random.split(jax.random.PRNGKey(1), 20_000)
  draw = jax.jit(jax.vmap(lambda key: deep_sea.draw_tosses(key, size)))
  fails, noise = (np.asarray(x, np.float64) for x in draw(keys))
  # Within 5 standard errors.
  error = 5 / 20_000**0.5
  assert abs(fails.mean() - 1 / size) < error * (1 / size * (1 - 1 / size)) ** 0.5
  assert abs(noise.mean()) < error
  assert abs(noise.var() - 1) < error * 2**0.5
  assert abs(np.corrcoef(fails, noise)[0, 1]) < error
