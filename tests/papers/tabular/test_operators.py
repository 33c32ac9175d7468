"""The exact operators of Munos et al. (2016), on random decision processes.

The paper's theorems are in tests/losses/test_operators_on_mdps.py.
"""

import numpy as np
import pytest

from explorax.losses import traces
from explorax.papers.tabular import operators

DISCOUNT = 0.9
MDP, PI = operators.draw(range(20), 4, 3, 0.5)
MU = operators.away_from(PI, 0.4)


def norm(q):
  return np.max(np.abs(q), axis=(-2, -1))


def test_a_seed_s_process_does_not_depend_on_the_others():
  mdp, pi = operators.draw([7], 4, 3, 0.5)
  np.testing.assert_array_equal(mdp.transitions[0], MDP.transitions[7])
  np.testing.assert_array_equal(pi[0], PI[7])
  np.testing.assert_allclose(MDP.transitions.sum(axis=-1), 1)


def test_the_best_values_solve_bellman_s_equation():
  best = operators.q_star(MDP, DISCOUNT)
  values = np.einsum("nxay,ny->nxa", MDP.transitions, best.max(axis=-1))
  np.testing.assert_allclose(MDP.rewards + DISCOUNT * values, best, atol=1e-12)


@pytest.mark.parametrize("distance", [0.05, 0.4, 1.2])
def test_a_policy_away_from_another_has_that_distance_in_every_state(distance):
  mu = operators.away_from(PI, distance)
  np.testing.assert_allclose(np.abs(PI - mu).sum(axis=-1), distance)
  np.testing.assert_allclose(mu.sum(axis=-1), 1)


@pytest.mark.parametrize("trace", [traces.retrace, traces.tree_backup])
def test_the_operator_is_the_sum_of_its_terms_and_its_factor_remark_1_s(trace):
  """RQ = Q + Σ (γ P^{cμ})^t (T^π Q − Q), and η = 1 − (1 − γ) Σ (γ P^{cμ})^t 1."""
  q = np.random.default_rng(0).normal(size=PI.shape)
  weights = MU * np.asarray(trace(PI, MU, 0.9), np.float64)
  term, one = operators.bellman(MDP, PI, q, DISCOUNT) - q, np.ones(PI.shape)
  total, length = np.zeros(PI.shape), np.zeros(PI.shape)
  for _ in range(400):
    total, length = total + term, length + one
    term, one = (
      DISCOUNT * np.einsum("nxay,ny->nxa", MDP.transitions, (weights * x).sum(axis=-1))
      for x in (term, one)
    )
  found = operators.apply(trace, MDP, PI, MU, q, DISCOUNT, 0.9)
  np.testing.assert_allclose(found, q + total, atol=1e-10)
  factor = operators.contraction(trace, MDP, PI, MU, DISCOUNT, 0.9)
  np.testing.assert_allclose(factor, norm(1 - (1 - DISCOUNT) * length), atol=1e-10)


@pytest.mark.parametrize("distance", [0.05, 0.2, 0.8])
def test_uncorrected_traces_contract_as_far_as_the_bound_says(distance):
  """At λ = 1 the factor is γε/(1 − γ), where every state is ε away."""
  mu = operators.away_from(PI, distance)
  found = operators.contraction(traces.harutyunyan_q_lambda, MDP, PI, mu, DISCOUNT, 1.0)
  np.testing.assert_allclose(found, DISCOUNT * distance / (1 - DISCOUNT), rtol=1e-9)
