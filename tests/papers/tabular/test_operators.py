"""What Munos et al. (2016) prove of the operators, on random decision processes.

The processes are drawn by NumPy, and all is computed in float64.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax.papers.tabular import operators, random_mdps

DISCOUNT = 0.9
SAFE = ("retrace", "tree_backup", "importance_sampling", "watkins_q_lambda")
LAMBDAS = (0.0, 0.3, 0.7, 1.0)
NUM_MDPS = 40

every_kind = pytest.mark.parametrize("kind", operators.KINDS)
safe_kinds = pytest.mark.parametrize("kind", SAFE)


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


def deterministic(pi):
  return np.eye(pi.shape[-1])[np.argmax(pi, axis=-1)]


# Values.


def test_values_solve_bellman_s_equations():
  mdp, pi, _ = draw_mdps(np.random.default_rng(5))
  q = batched("q_pi")(mdp, pi, DISCOUNT)
  np.testing.assert_allclose(batched("bellman")(mdp, pi, q, DISCOUNT), q, atol=1e-12)
  best = batched("q_star")(mdp, DISCOUNT)
  values = jnp.einsum("nxay,ny->nxa", mdp.transitions, jnp.max(best, axis=-1))
  np.testing.assert_allclose(mdp.rewards + DISCOUNT * values, best, atol=1e-12)


# Theorem 1 and remark 1.


@safe_kinds
@pytest.mark.parametrize("lambda_", LAMBDAS)
def test_theorem_1_safe_traces_contract_to_the_target_s_values(kind, lambda_):
  rng = np.random.default_rng(6)
  mdp, pi, mu = draw_mdps(rng)
  factors = contraction_factors(kind, mdp, pi, mu, DISCOUNT, lambda_)
  assert np.all(norm(factors) <= DISCOUNT + 1e-12)
  q_pi = batched("q_pi")(mdp, pi, DISCOUNT)
  apply = batched("apply", kind)
  fixed = apply(mdp, pi, mu, q_pi, DISCOUNT, lambda_)
  np.testing.assert_allclose(fixed, q_pi, atol=1e-11)
  q = jnp.asarray(rng.normal(scale=10, size=pi.shape))
  left = np.abs(apply(mdp, pi, mu, q, DISCOUNT, lambda_) - q_pi)
  bound = factors * norm(q - q_pi)[:, None, None]
  assert np.all(left <= bound + 1e-9)


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


@pytest.mark.parametrize("lambda_", LAMBDAS)
def test_retrace_contracts_no_less_than_tree_backup(lambda_):
  mdp, pi, mu = draw_mdps(np.random.default_rng(11))
  retrace, tree_backup = (
    contraction_factors(kind, mdp, pi, mu, DISCOUNT, lambda_)
    for kind in ("retrace", "tree_backup")
  )
  assert np.all(retrace <= tree_backup + 1e-12)
  if lambda_:
    assert np.any(retrace < tree_backup - 0.01)


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


NUM_ITERATIONS = 150


@functools.cache
def control(kind):
  """(mdp, μ, Q_0, λ, ε `[K]`) → Q_0, ..., Q_K of Q_{k+1} = R_k Q_k. `[K + 1, N, S, A]`.

  π_k is ε_k-greedy with respect to Q_k.
  """

  def of_one(mdp, mu, q, lambda_, epsilons):
    def step(q, epsilon):
      pi = random_mdps.epsilon_greedy(q, epsilon)
      return operators.apply(kind, mdp, pi, mu, q, DISCOUNT, lambda_), q

    last, qs = jax.lax.scan(step, q, epsilons)
    return jnp.concatenate([qs, last[None]])

  return jax.jit(jax.vmap(of_one, (0, 0, 0, None, None), out_axes=1))


def test_harutyunyan_s_control_diverges_where_retrace_does_not():
  """λ = 1 and a μ that mostly takes the worst action (section 3.1, observed)."""
  rng = np.random.default_rng(14)
  mdp, _, _ = draw_mdps(rng, concentration=0.2)
  best = batched("q_star")(mdp, DISCOUNT)
  mu = jnp.asarray(0.95 * deterministic(-best) + 0.05 * deterministic(best))
  start = best + jnp.asarray(rng.normal(scale=0.1, size=best.shape))
  greedy = jnp.zeros(NUM_ITERATIONS)

  def error(kind, lambda_):
    last = control(kind)(mdp, mu, start, lambda_, greedy)[-1]
    return norm(np.nan_to_num(last - best, nan=np.inf))

  diverged = error("harutyunyan_q_lambda", 1.0) > 1e6
  assert np.any(diverged)
  assert np.all(error("retrace", 1.0)[diverged] < 1e-4)
  # Below (1 − γ)/(2γ) it contracts.
  assert np.all(error("harutyunyan_q_lambda", 0.05) < 1e-2)


# Theorem 2.


@pytest.mark.parametrize("first_epsilon", [0.0, 1.0])
@pytest.mark.parametrize("kind", ["retrace", "tree_backup"])
def test_theorem_2_control_from_a_pessimistic_start(kind, first_epsilon):
  """‖Q_{k+1} − Q*‖ ≤ γ ‖Q_k − Q*‖ + ε_k ‖Q_k‖, with T^{π_k} Q_k ≥ TQ_k − ε_k ‖Q_k‖.

  With greedy π_k, Retrace is Watkins's Q(λ).
  """
  mdp, _, mu = draw_mdps(np.random.default_rng(15))
  best = batched("q_star")(mdp, DISCOUNT)
  pessimistic = jnp.max(jnp.abs(mdp.rewards), axis=(1, 2)) / (DISCOUNT - 1)
  start = pessimistic[:, None, None] * jnp.ones_like(best)
  epsilons = first_epsilon / jnp.arange(1.0, NUM_ITERATIONS + 1)
  qs = control(kind)(mdp, mu, start, 1.0, epsilons)
  errors = norm(qs - best[None])
  policy = jax.vmap(jax.vmap(random_mdps.epsilon_greedy, (0, None)))
  of_greedy, of_pi = (
    jax.vmap(batched("bellman"), (None, 0, 0, None))(
      mdp, policy(qs[:-1], e), qs[:-1], DISCOUNT
    )
    for e in (0 * epsilons, epsilons)
  )
  gaps = np.max(of_greedy - of_pi, axis=(2, 3))
  assert np.all(errors[1:] <= DISCOUNT * errors[:-1] + gaps + 1e-9)
  assert np.all(errors[-1] < 0.1 * norm(best))


def test_epsilon_greedy_with_falling_epsilon_is_increasingly_greedy():
  """P^{π_{k+1}} Q_{k+1} ≥ P^{π_k} Q_{k+1} (definition 1), for any Q_k and Q_{k+1}."""
  rng = np.random.default_rng(16)
  mdp, _, _ = draw_mdps(rng)
  q, next_q = jnp.asarray(rng.normal(size=(2, *mdp.rewards.shape)))
  epsilon = jnp.asarray(rng.uniform(size=NUM_MDPS))
  policy = jax.vmap(random_mdps.epsilon_greedy)
  falling = epsilon * rng.uniform(size=NUM_MDPS)
  values = batched("bellman")
  before = values(mdp, policy(q, epsilon), next_q, 1.0)
  after = values(mdp, policy(next_q, falling), next_q, 1.0)
  assert np.all(after >= before - 1e-12)
  # With a rising one it fails.
  after = values(mdp, policy(next_q, 0.5 + 0.5 * epsilon), next_q, 1.0)
  assert np.any(after < before)


# What does not correct for μ.


def test_expected_sarsa_s_fixed_point_is_of_the_mixed_policy():
  mdp, pi, mu = draw_mdps(np.random.default_rng(17))
  mixed = batched("q_pi")(mdp, 0.4 * pi + 0.6 * mu, DISCOUNT)
  found = batched("apply", "expected_sarsa_lambda")(mdp, pi, mu, mixed, DISCOUNT, 0.6)
  np.testing.assert_allclose(found, mixed, atol=1e-10)


# Programming.
