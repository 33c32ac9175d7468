"""The laws of repeats' durations, against scipy's."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from explorax import exploration

pytestmark = pytest.mark.ops

_NUM_DRAWS = 1_000_000


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
  ("mu", "cap"), [(2.0, 10_000), (2.0, 100), (1.0, 50), (3.5, 1000)]
)
def test_zeta_follows_scipys_zipfian(mu, cap):
  draws = exploration.sample_zeta(jax.random.PRNGKey(0), mu, cap, (_NUM_DRAWS,))
  pmf = scipy.stats.zipfian.pmf(np.arange(1, cap + 1), mu, cap)
  _assert_follows(np.asarray(draws), pmf)


def test_zeta_with_an_exponent_of_0_is_uniform():
  draws = exploration.sample_zeta(jax.random.PRNGKey(0), 0.0, 12, (_NUM_DRAWS,))
  _assert_follows(np.asarray(draws), np.full(12, 1 / 12))


def test_the_tail_of_zeta_is_not_on_a_grid():
  # Of 100 durations a float32 draw reaches 20 near 5000 and 5 near 10 000.
  draws = exploration.sample_zeta(jax.random.PRNGKey(1), 2.0, 10_000, (10_000_000,))
  draws = np.asarray(draws)
  tail = draws[draws >= 5000]
  expected = scipy.stats.zipfian.sf(4999, 2.0, 10_000) * len(draws)
  assert abs(len(tail) - expected) < 5 * np.sqrt(expected)
  masses = scipy.stats.zipfian.pmf(np.arange(5000, 10_001), 2.0, 10_000)
  distinct = np.sum(1.0 - np.exp(-masses * len(draws)))
  assert abs(len(np.unique(tail)) - distinct) < 5 * np.sqrt(distinct)


@pytest.mark.parametrize(("decay", "cap"), [(0.9, 10_000), (0.99, 50), (0.5, 3)])
def test_exponential_follows_the_truncated_geometric_law(decay, cap):
  draws = exploration.sample_exponential(
    jax.random.PRNGKey(2), decay, cap, (_NUM_DRAWS,)
  )
  weights = np.array([decay ** (n - 1) for n in range(1, cap + 1)])
  _assert_follows(np.asarray(draws), weights / weights.sum())


def test_uniform_is_uniform():
  draws = exploration.sample_uniform(jax.random.PRNGKey(3), 7, (_NUM_DRAWS,))
  _assert_follows(np.asarray(draws), np.full(7, 1 / 7))


_ALWAYS_ONE = [
  lambda key, shape: exploration.sample_zeta(key, 2.0, 1, shape),
  lambda key, shape: exploration.sample_zeta(key, 100.0, 10_000, shape),
  lambda key, shape: exploration.sample_exponential(key, 0.5, 1, shape),
  lambda key, shape: exploration.sample_exponential(key, 0.0, 10_000, shape),
  lambda key, shape: exploration.sample_uniform(key, 1, shape),
]


@pytest.mark.parametrize("sample", _ALWAYS_ONE)
def test_degenerate_laws_give_1(sample):
  draws = sample(jax.random.PRNGKey(0), (1000,))
  np.testing.assert_array_equal(draws, np.ones(1000))


@pytest.mark.parametrize(
  "sample",
  [
    lambda key, shape=(): exploration.sample_zeta(key, 2.0, 100, shape),
    lambda key, shape=(): exploration.sample_exponential(key, 0.8, 100, shape),
    lambda key, shape=(): exploration.sample_uniform(key, 100, shape),
  ],
)
def test_shapes_types_and_transformations(sample):
  key = jax.random.PRNGKey(4)
  assert sample(key).shape == ()
  assert sample(key).dtype == jnp.int32
  assert sample(key, (2, 3)).shape == (2, 3)
  np.testing.assert_array_equal(jax.jit(sample)(key), sample(key))
  keys = jax.random.split(key, 5)
  np.testing.assert_array_equal(jax.vmap(sample)(keys), [sample(k) for k in keys])


@pytest.mark.parametrize(
  ("call", "message"),
  [
    (lambda key: exploration.sample_zeta(key, 2.0, 0), "cap is 0 agent steps"),
    (lambda key: exploration.sample_zeta(key, -1.0, 5), "mu is -1.0"),
    (lambda key: exploration.sample_zeta(key, np.nan, 5), "mu is nan"),
    (lambda key: exploration.sample_exponential(key, 1.0, 5), "decay is 1.0"),
    (lambda key: exploration.sample_exponential(key, 0.5, 0), "cap is 0 agent steps"),
    (lambda key: exploration.sample_uniform(key, -3), "cap is -3 agent steps"),
  ],
)
def test_bad_parameters_are_refused(call, message):
  with pytest.raises(ValueError, match=message):
    call(jax.random.PRNGKey(0))
