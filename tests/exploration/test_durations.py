"""The laws of repeats' durations, against scipy's."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from explorax import exploration

pytestmark = pytest.mark.core


def _zeta(mu: float, cap: int) -> np.ndarray:
  return scipy.stats.zipfian.pmf(np.arange(1, cap + 1), mu, cap)


def _clipped_zeta(mu: float, cap: int) -> np.ndarray:
  """Of the least of the whole law and the cap."""
  pmf = scipy.stats.zipf.pmf(np.arange(1, cap + 1), mu)
  pmf[-1] += scipy.stats.zipf.sf(cap, mu)
  return pmf


def _geometric(decay: float, cap: int) -> np.ndarray:
  weights = np.array([decay ** (n - 1) for n in range(1, cap + 1)])
  return weights / weights.sum()


@pytest.mark.parametrize(
  ("law", "pmf"),
  [
    (exploration.ZetaDuration(), _zeta(2.0, 10_000)),
    (exploration.ZetaDuration(1.0, 50), _zeta(1.0, 50)),
    (exploration.ZetaDuration(0.0, 12), _zeta(0.0, 12)),
    (exploration.ZetaDuration(2.0, 1), [1.0]),
    (exploration.ZetaDuration(100.0, 50), _zeta(100.0, 50)),
    (exploration.ZetaDuration(2.0, 100, clipped=True), _clipped_zeta(2.0, 100)),
    (exploration.ZetaDuration(3.5, 7, clipped=True), _clipped_zeta(3.5, 7)),
    (exploration.ZetaDuration(2.0, 1, clipped=True), [1.0]),
    (exploration.ExponentialDuration(0.9), _geometric(0.9, 10_000)),
    (exploration.ExponentialDuration(0.99, 50), _geometric(0.99, 50)),
    (exploration.ExponentialDuration(0.0), [1.0]),
    (exploration.UniformDuration(7), np.full(7, 1 / 7)),
  ],
  ids=str,
)
def test_draws_follow_the_law(law, pmf):
  """In bins that grow with the duration, each within five deviations."""
  shape = (200_000,)
  draws = np.asarray(jax.jit(law, static_argnums=1)(jax.random.PRNGKey(0), shape))
  assert draws.shape == shape and draws.dtype == jnp.int32
  assert draws.min() >= 1 and draws.max() <= len(pmf)
  edges = np.unique(np.ceil(1.3 ** np.arange(64)).astype(int))
  edges = np.append(edges[edges <= len(pmf)], len(pmf) + 1)
  expected = np.add.reduceat(pmf, edges[:-1] - 1) * len(draws)
  observed = np.histogram(draws, edges)[0]
  np.testing.assert_array_less(abs(observed - expected), 5 * np.sqrt(expected) + 1)
  assert jax.eval_shape(law, jax.random.PRNGKey(0)).shape == ()


def test_the_tail_of_zeta_is_not_on_a_grid():
  # Of 100 durations a float32 draw reaches 20 near 5000 and 5 near 10 000.
  draw = jax.jit(exploration.ZetaDuration(), static_argnums=1)
  draws = np.asarray(draw(jax.random.PRNGKey(1), (2_000_000,)))
  tail = draws[draws >= 5000]
  expected = scipy.stats.zipfian.sf(4999, 2.0, 10_000) * len(draws)
  assert abs(len(tail) - expected) < 5 * np.sqrt(expected)
  # If one of ten durations could be drawn, ten times as many would be equal.
  masses = scipy.stats.zipfian.pmf(np.arange(5000, 10_001), 2.0, 10_000)
  pairs = np.sum(masses**2) * len(draws) ** 2 / 2
  assert len(tail) - len(np.unique(tail)) < pairs + 5 * np.sqrt(pairs)
