"""What holds for all functions: no gradient passes, and bad arguments are refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax import exploration

pytestmark = pytest.mark.core

KEY = jax.random.PRNGKey(0)
MEMORY = exploration.init_episodic_memory(5, 2)
MOMENTS = exploration.init_moments()
REGRESSION = exploration.init_regression(3)
ONE, MANY = jnp.zeros(3), jnp.zeros((4, 3))


def _learnt(x):
  learnt = exploration.update_regression(REGRESSION, jnp.outer(x, x), x, 0.5)
  return exploration.weight_posterior(learnt, 3, 1.0, 1.0).mean


def _of_memory(x):
  _, full = exploration.episodic_novelty(MEMORY, jnp.ones(2))
  novelty, after = exploration.episodic_novelty(full, x[:2])
  return novelty + jnp.sum(after.embeddings) + after.mean_distance


@pytest.mark.parametrize(
  "function",
  [
    lambda x: exploration.elliptical_bonus(exploration.init_ellipsoid(3, 1.0), x)[0],
    lambda x: exploration.normalise(
      exploration.update_moments(MOMENTS, x), jnp.ones(2)
    ),
    _learnt,
    _of_memory,
  ],
  ids=["ellipsoid", "moments", "regression", "novelty"],
)
def test_no_gradient_passes(function):
  gradient = jax.jit(jax.grad(lambda x: jnp.sum(function(x))))(jnp.arange(1.0, 4.0))
  np.testing.assert_array_equal(gradient, np.zeros(3))


REFUSED = {
  "table of 0 states": lambda: exploration.init_counts(0, 2),
  "0 actions": lambda: exploration.init_counts(2, 0),
  "num_buckets is 0": lambda: exploration.hash_observation(ONE, 0),
  "of 0 states": lambda: exploration.init_episodic_counts(0),
  "a density of 0 pixels": lambda: exploration.init_density(0, 8),
  "are 5 neighbours; use 0 to 4": lambda: exploration.init_density(9, 8, 5),
  "has 6 pixels, but the model has 12": lambda: exploration.observe_picture(
    exploration.init_density(12), jnp.zeros((2, 3), jnp.int32)
  ),
  "mu is 1": lambda: exploration.ZetaDuration(1.0, clipped=True),
  "dim is 0": lambda: exploration.init_ellipsoid(0, 0.1),
  "ridge is 0": lambda: exploration.init_ellipsoid(2, 0.0),
  r"Thompson\.explorers": lambda: exploration.Thompson(
    explorers=exploration.Explorers(2, prob=0.2)
  ).init(KEY, 2, 3),
  "the ensemble has only 4": lambda: exploration.Greedy(num_members=5).init(KEY, 4, 3),
  "Ucb needs at least 2 members": lambda: exploration.Ucb(ddof=1).init(KEY, 1, 3),
  r"Ucb\.of .* must be a Score": lambda: exploration.Ucb(
    0.1, of=exploration.EpsilonGreedy(0.1)
  ),
  r"EzGreedy\.of .* must be a Policy": lambda: exploration.EzGreedy(
    0.1, of=exploration.EzGreedy(0.1)
  ),
  "values": lambda: exploration.Piecewise((1.0, 0.5), (5, 6)),
  "ends": lambda: exploration.Alternating(ends=(0.5,)),
  "probabilities": lambda: exploration.Alternating(probabilities=(0.5, 0.5, 0.5)),
  "mixture of 0 policies": lambda: exploration.mixture_betas(0, 0.3),
  "beta is -0.1": lambda: exploration.mixture_betas(2, -0.1),
  "gamma_max is 1.0": lambda: exploration.mixture_discounts(2, 1.0, 0.9),
  "gamma_min 0.99": lambda: exploration.mixture_discounts(2, 0.9, 0.99),
  "values .* is empty": lambda: exploration.update_moments(MOMENTS, jnp.zeros((0,))),
  "of 0 embeddings": lambda: exploration.init_episodic_memory(0, 2),
  "num_neighbors is 0": lambda: exploration.episodic_novelty(
    MEMORY, jnp.zeros(2), num_neighbors=0
  ),
  "episodic_novelty: embedding ": lambda: exploration.episodic_novelty(MEMORY, ONE),
  "num_features is 0; a regression": lambda: exploration.init_regression(0),
  r"update_regression: targets .* \[N\] is": lambda: exploration.update_regression(
    REGRESSION, MANY, MANY[:, :1], 0.5
  ),
  # A batch, or an ensemble, whose mean would be taken for one state's values.
  r"q has shape \[4, 3\], but \[A\] is": lambda: exploration.epsilon_greedy(
    KEY, MANY, 0.1
  ),
  "epsilon is nan": lambda: exploration.epsilon_greedy(KEY, ONE, jnp.nan),
  "epsilon has shape": lambda: exploration.epsilon_greedy(KEY, ONE, ONE),
  "temperature is 0.0": lambda: exploration.boltzmann(KEY, ONE, 0.0),
  "int32, but float": lambda: exploration.boltzmann(KEY, jnp.arange(3), 1.0),
  r"ucb: q .* \[K, A\] is": lambda: exploration.ucb(ONE, 0.1, key=KEY),
  "ddof=1 needs at least 2": lambda: exploration.ucb(MANY[:1], 0.1, ddof=1),
}


@pytest.mark.parametrize("message", REFUSED)
def test_bad_arguments_are_refused(message):
  with pytest.raises((TypeError, ValueError), match=message):
    REFUSED[message]()
