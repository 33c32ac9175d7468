"""The exact operators of Munos et al. (2016), on random decision processes.

The processes are drawn by NumPy, and all is computed in float64. The paper's theorems
are in tests/losses/test_operators_on_mdps.py.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax.papers.tabular import operators, random_mdps

DISCOUNT = 0.9
NUM_MDPS = 40

every_kind = pytest.mark.parametrize("kind", operators.KINDS)


@pytest.fixture(autouse=True)
def _float64():
  jax.config.update("jax_enable_x64", True)
  yield
  jax.config.update("jax_enable_x64", False)


def draw_mdps(rng, num=NUM_MDPS, num_states=4, num_actions=3, concentration=0.5):
  """Processes and pairs of policies: MDP, π and μ, each with an axis `[num]`."""
  shape = (num, num_states, num_actions)
  alpha = np.full(num_states, concentration)
  mdp = random_mdps.MDP(
    jnp.asarray(rng.dirichlet(alpha, size=shape)),
    jnp.asarray(rng.uniform(-1, 1, size=shape)),
  )
  pi, mu = rng.dirichlet(np.full(num_actions, 0.7), size=(2, num, num_states))
  return mdp, jnp.asarray(pi), jnp.asarray(0.9 * mu + 0.1 / num_actions)


_IN_AXES = {
  "apply": (0, 0, 0, 0, None, None),
  "bellman": (0, 0, 0, None),
  "q_pi": (0, 0, None),
  "q_star": (0, None),
}


def batched(name, kind=None):
  """A function of `operators`, over a batch of processes, γ and λ being shared.

  Not compiled as a whole: the kinds share most of their steps.
  """
  function = getattr(operators, name)
  if kind is not None:
    function = functools.partial(function, kind)
  return jax.vmap(function, _IN_AXES.get(name, (0, 0, 0, None, None)))


def contraction_factors(kind, *args):
  """The least η(x, a) with |RQ − Q^π|(x, a) ≤ η(x, a) ‖Q − Q^π‖∞ for every Q."""
  matrix = batched("error_matrix", kind)(*args)
  return np.sum(np.abs(matrix), axis=-1).reshape(args[1].shape)


def norm(q):
  return np.max(np.abs(q), axis=(-2, -1))


# Values.


def test_values_solve_bellman_s_equations():
  mdp, pi, _ = draw_mdps(np.random.default_rng(5))
  q = batched("q_pi")(mdp, pi, DISCOUNT)
  np.testing.assert_allclose(batched("bellman")(mdp, pi, q, DISCOUNT), q, atol=1e-12)
  best = batched("q_star")(mdp, DISCOUNT)
  values = jnp.einsum("nxay,ny->nxa", mdp.transitions, jnp.max(best, axis=-1))
  np.testing.assert_allclose(mdp.rewards + DISCOUNT * values, best, atol=1e-12)


# Theorem 1 and remark 1.


@every_kind
def test_the_error_matrix_is_the_operator_s_and_its_worst_row_is_reached(kind):
  rng = np.random.default_rng(7)
  mdp, pi, mu = draw_mdps(rng)
  matrix = batched("error_matrix", kind)(mdp, pi, mu, DISCOUNT, 0.8)
  factors = contraction_factors(kind, mdp, pi, mu, DISCOUNT, 0.8)
  worst = np.argmax(factors.reshape(NUM_MDPS, -1), axis=1)
  signs = np.sign(matrix[np.arange(NUM_MDPS), worst]).reshape(pi.shape)
  q = rng.normal(size=pi.shape)
  apply = lambda q: batched("apply", kind)(mdp, pi, mu, q, DISCOUNT, 0.8)  # noqa: E731
  difference = np.asarray(apply(jnp.asarray(q + signs)) - apply(jnp.asarray(q)))
  by_matrix = np.einsum("nij,nj->ni", matrix, signs.reshape(NUM_MDPS, -1))
  np.testing.assert_allclose(difference, by_matrix.reshape(pi.shape), atol=1e-10)
  np.testing.assert_allclose(norm(difference), norm(factors), atol=1e-10)


@pytest.mark.parametrize("kind", ["retrace", "tree_backup"])
def test_remark_1_the_contraction_of_each_pair(kind):
  """η = 1 − (1 − γ) E_μ[Σ γ^t Π c], the sum being made term by term."""
  rng = np.random.default_rng(8)
  batch = draw_mdps(rng, 1, 4, 3)
  mdp, pi, mu = jax.tree.map(lambda x: x[0], batch)
  c = 0.9 * np.asarray(pi if kind == "tree_backup" else np.minimum(1, pi / mu))
  total, term = np.zeros(pi.shape), np.ones(pi.shape)
  for _ in range(400):
    total += term
    term = DISCOUNT * np.asarray(mdp.transitions) @ np.sum(mu * c * term, axis=1)
  eta = 1 - (1 - DISCOUNT) * total
  assert eta.min() >= 0 and eta.max() <= DISCOUNT
  found = contraction_factors(kind, *batch, DISCOUNT, 0.9)[0]
  np.testing.assert_allclose(found, eta, atol=1e-12)


@pytest.mark.parametrize(
  "kind",
  ["retrace", "importance_sampling", "harutyunyan_q_lambda", "expected_sarsa_lambda"],
)
def test_full_traces_on_policy_evaluate_at_once(kind):
  rng = np.random.default_rng(9)
  mdp, _, mu = draw_mdps(rng)
  q = jnp.asarray(rng.normal(size=mu.shape))
  found = batched("apply", kind)(mdp, mu, mu, q, DISCOUNT, 1.0)
  np.testing.assert_allclose(found, batched("q_pi")(mdp, mu, DISCOUNT), atol=1e-10)


@every_kind
def test_without_a_trace_it_is_bellman_s(kind):
  rng = np.random.default_rng(10)
  mdp, pi, mu = draw_mdps(rng)
  q = jnp.asarray(rng.normal(size=pi.shape))
  found = batched("apply", kind)(mdp, pi, mu, q, DISCOUNT, 0.0)
  bellman = batched("bellman")(mdp, pi, q, DISCOUNT)
  if kind == "importance_sampling":  # It has no λ, and is done at once.
    bellman = batched("q_pi")(mdp, pi, DISCOUNT)
  np.testing.assert_allclose(found, bellman, atol=1e-10)


# Harutyunyan's operator.


@pytest.mark.parametrize("distance", [0.05, 0.2, 0.8])
def test_uncorrected_traces_contract_as_far_as_the_bound_says(distance):
  """λ < (1 − γ)/(γε) contracts; at λ = 1 the factor is γε/(1 − γ), where every state
  is ε away: no error of one pair makes up for another's."""
  mdp, pi, _ = draw_mdps(np.random.default_rng(13))
  mu = jax.vmap(random_mdps.away_from, (0, None))(pi, distance)
  found = functools.partial(contraction_factors, "harutyunyan_q_lambda")
  bound = (1 - DISCOUNT) / (DISCOUNT * distance)
  assert np.all(norm(found(mdp, pi, mu, DISCOUNT, min(1.0, 0.999 * bound))) < 1)
  at_one = DISCOUNT * distance / (1 - DISCOUNT)
  np.testing.assert_allclose(found(mdp, pi, mu, DISCOUNT, 1.0), at_one, rtol=1e-9)


# What does not correct for μ.


def test_expected_sarsa_s_fixed_point_is_of_the_mixed_policy():
  mdp, pi, mu = draw_mdps(np.random.default_rng(17))
  mixed = batched("q_pi")(mdp, 0.4 * pi + 0.6 * mu, DISCOUNT)
  found = batched("apply", "expected_sarsa_lambda")(mdp, pi, mu, mixed, DISCOUNT, 0.6)
  np.testing.assert_allclose(found, mixed, atol=1e-10)
