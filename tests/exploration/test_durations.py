"""The laws of repeats' durations, against scipy's."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from explorax import exploration

pytestmark = pytest.mark.core

_NUM_DRAWS = 400_000


def _assert_follows(draws: np.ndarray, pmf: np.ndarray) -> None:
  """χ² over bins that grow with the duration, so that the tail counts too.

  Args:
    draws: durations.
    pmf: `[cap]`, the probability of durations 1, …, cap.
  """
  cap = len(pmf)
  assert draws.min() >= 1
  assert draws.max() <= cap
  edges = np.unique(np.ceil(1.3 ** np.arange(64)).astype(int))
  edges = np.append(edges[edges <= cap], cap + 1)
  expected = np.add.reduceat(pmf, edges[:-1] - 1) * len(draws)
  observed = np.histogram(draws, edges)[0]
  likely = expected >= 5
  # What is too rare for χ² is one bin, which holds its expectation within reason.
  rare = expected[~likely].sum()
  assert abs(observed[~likely].sum() - rare) <= 5 * np.sqrt(rare) + 1
  if likely.sum() > 1:
    share = observed[likely].sum() / expected[likely].sum()
    result = scipy.stats.chisquare(observed[likely], expected[likely] * share)
    assert result.pvalue > 1e-4


@pytest.mark.parametrize(
  ("mu", "cap"), [(2.0, 10_000), (1.0, 50), (3.5, 1000), (0.0, 12)]
)
def test_zeta_follows_scipys_zipfian(mu, cap):
  draws = exploration.ZetaDuration(mu, cap)(jax.random.PRNGKey(0), (_NUM_DRAWS,))
  pmf = scipy.stats.zipfian.pmf(np.arange(1, cap + 1), mu, cap)
  _assert_follows(np.asarray(draws), pmf)


@pytest.mark.parametrize(("mu", "cap"), [(2.0, 100), (2.0, 1), (3.5, 7)])
def test_clipped_zeta_is_the_least_of_the_whole_law_and_the_cap(mu, cap):
  law = exploration.ZetaDuration(mu, cap, clipped=True)
  draws = np.asarray(law(jax.random.PRNGKey(0), (_NUM_DRAWS,)))
  pmf = scipy.stats.zipf.pmf(np.arange(1, cap + 1), mu)
  pmf[-1] += scipy.stats.zipf.sf(cap, mu)
  _assert_follows(draws, pmf)
  share = np.sqrt(pmf[-1] * (1 - pmf[-1]) / _NUM_DRAWS)
  assert abs(np.mean(draws == cap) - pmf[-1]) <= 4 * share


def test_the_tail_of_zeta_is_not_on_a_grid():
  # Of 100 durations a float32 draw reaches 20 near 5000 and 5 near 10 000.
  draws = exploration.ZetaDuration()(jax.random.PRNGKey(1), (4_000_000,))
  draws = np.asarray(draws)
  tail = draws[draws >= 5000]
  expected = scipy.stats.zipfian.sf(4999, 2.0, 10_000) * len(draws)
  assert abs(len(tail) - expected) < 5 * np.sqrt(expected)
  masses = scipy.stats.zipfian.pmf(np.arange(5000, 10_001), 2.0, 10_000)
  distinct = np.sum(1.0 - np.exp(-masses * len(draws)))
  assert abs(len(np.unique(tail)) - distinct) < 5 * np.sqrt(distinct)


@pytest.mark.parametrize(("decay", "cap"), [(0.9, 10_000), (0.99, 50), (0.5, 3)])
def test_exponential_follows_the_truncated_geometric_law(decay, cap):
  draws = exploration.ExponentialDuration(decay, cap)(
    jax.random.PRNGKey(2), (_NUM_DRAWS,)
  )
  weights = np.array([decay ** (n - 1) for n in range(1, cap + 1)])
  _assert_follows(np.asarray(draws), weights / weights.sum())


def test_uniform_is_uniform():
  draws = exploration.UniformDuration(7)(jax.random.PRNGKey(3), (_NUM_DRAWS,))
  _assert_follows(np.asarray(draws), np.full(7, 1 / 7))


@pytest.mark.parametrize(
  "law",
  [
    exploration.ZetaDuration(2.0, 1),
    exploration.ZetaDuration(100.0),
    exploration.ExponentialDuration(0.5, 1),
    exploration.ExponentialDuration(0.0),
    exploration.UniformDuration(1),
  ],
  ids=str,
)
def test_degenerate_laws_give_1(law):
  draws = law(jax.random.PRNGKey(0), (1000,))
  np.testing.assert_array_equal(draws, np.ones(1000))
  assert draws.dtype == law(jax.random.PRNGKey(0)).dtype == jnp.int32
