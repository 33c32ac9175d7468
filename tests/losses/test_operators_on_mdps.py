"""What Munos et al. 2016 prove, on small random MDPs.

The operator `RQ = Q + (I − γ P^{cμ})⁻¹ (T^π Q − Q)` is computed exactly, in float64
and matrix form, for a table Q `[S, A]`; the traces c `[S, A]` in it are the library's.
The library's sampled targets are shown to average to it.
"""

import functools
import itertools
import typing

import jax
import numpy as np
import pytest

from explorax import losses
from explorax.losses import traces

pytestmark = pytest.mark.ops

DISCOUNT = 0.9


class MDP(typing.NamedTuple):
  transitions: np.ndarray  # [S, A, S], probabilities.
  rewards: np.ndarray  # [S, A]


def _random_mdp(rng, num_states=4, num_actions=3, concentration=0.5) -> MDP:
  alpha = np.full(num_states, concentration)
  transitions = rng.dirichlet(alpha, size=(num_states, num_actions))
  return MDP(transitions, rng.uniform(-1, 1, size=(num_states, num_actions)))


def _random_policy(rng, mdp: MDP, floor: float = 0.0) -> np.ndarray:
  num_states, num_actions = mdp.rewards.shape
  policy = rng.dirichlet(np.full(num_actions, 0.7), size=num_states)
  return (1 - floor) * policy + floor / num_actions


def _greedy(q: np.ndarray) -> np.ndarray:
  return np.eye(q.shape[1])[np.argmax(q, axis=1)]


def _kernel(mdp: MDP, weights: np.ndarray) -> np.ndarray:
  """P^w over state-action pairs: p(y|x, a) w(y, b)."""
  size = mdp.rewards.size
  return np.einsum("xay,yb->xayb", mdp.transitions, weights).reshape(size, size)


def _bellman(mdp: MDP, pi: np.ndarray, q: np.ndarray) -> np.ndarray:
  """T^π Q."""
  values = np.sum(pi * q, axis=1)
  return mdp.rewards + DISCOUNT * mdp.transitions @ values


def _resolvent(mdp: MDP, mu: np.ndarray, c: np.ndarray) -> np.ndarray:
  return np.linalg.inv(np.eye(mdp.rewards.size) - DISCOUNT * _kernel(mdp, c * mu))


def _operator(mdp: MDP, pi, mu, c, q) -> np.ndarray:
  errors = _bellman(mdp, pi, q) - q
  return q + (_resolvent(mdp, mu, c) @ errors.ravel()).reshape(q.shape)


def _q_pi(mdp: MDP, pi: np.ndarray) -> np.ndarray:
  matrix = np.eye(mdp.rewards.size) - DISCOUNT * _kernel(mdp, pi)
  return np.linalg.solve(matrix, mdp.rewards.ravel()).reshape(mdp.rewards.shape)


def _q_star(mdp: MDP) -> np.ndarray:
  q = np.zeros_like(mdp.rewards)
  for _ in range(1000):
    q = _bellman(mdp, _greedy(q), q)
  return q


@functools.cache
def _traces(kind: str):
  return jax.jit(getattr(traces, kind))


def _trace(kind: str, pi: np.ndarray, mu: np.ndarray, lambda_: float) -> np.ndarray:
  """The library's trace of every state and action. `[S, A]`."""
  flat = (x.ravel().astype(np.float32) for x in (pi, mu))
  c = np.asarray(_traces(kind)(*flat, lambda_), np.float64)
  return c.reshape(pi.shape)


def _norm(q: np.ndarray) -> float:
  return np.max(np.abs(q))


SAFE = ("retrace", "tree_backup", "importance_sampling", "watkins_q_lambda")
safe_kinds = pytest.mark.parametrize("kind", SAFE)
# Traces come in float32.
SLACK = 1e-5


@safe_kinds
@pytest.mark.parametrize("lambda_", [0.5, 1.0])
def test_theorem_1_evaluation_contracts_for_any_policies(kind, lambda_):
  rng = np.random.default_rng(0)
  for _ in range(100):
    mdp = _random_mdp(rng)
    pi, mu = _random_policy(rng, mdp), _random_policy(rng, mdp, floor=0.1)
    c = _trace(kind, pi, mu, lambda_)
    assert np.all(c >= 0) and np.all(c * mu <= pi + SLACK)
    q_pi = _q_pi(mdp, pi)
    np.testing.assert_allclose(_operator(mdp, pi, mu, c, q_pi), q_pi, atol=1e-9)
    q = rng.normal(scale=10, size=q_pi.shape)
    before, after = _norm(q - q_pi), _norm(_operator(mdp, pi, mu, c, q) - q_pi)
    assert after <= (DISCOUNT + SLACK) * before


def test_theorem_1_holds_for_any_trace_below_the_ratio():
  rng = np.random.default_rng(1)
  for _ in range(200):
    mdp = _random_mdp(rng)
    pi, mu = _random_policy(rng, mdp), _random_policy(rng, mdp, floor=0.05)
    c = rng.uniform(size=pi.shape) * pi / mu
    q_pi, q = _q_pi(mdp, pi), rng.normal(scale=10, size=pi.shape)
    after = _norm(_operator(mdp, pi, mu, c, q) - q_pi)
    assert after <= DISCOUNT * _norm(q - q_pi) + 1e-9


@safe_kinds
def test_remark_1_the_contraction_of_each_state_and_action(kind):
  rng = np.random.default_rng(2)
  for _ in range(100):
    mdp = _random_mdp(rng)
    pi, mu = _random_policy(rng, mdp), _random_policy(rng, mdp, floor=0.1)
    c = _trace(kind, pi, mu, 1.0)
    lengths = _resolvent(mdp, mu, c) @ np.ones(mdp.rewards.size)
    eta = (1 - (1 - DISCOUNT) * lengths).reshape(pi.shape)
    assert np.all(eta >= -SLACK) and np.all(eta <= DISCOUNT + SLACK)
    q_pi, q = _q_pi(mdp, pi), rng.normal(scale=10, size=pi.shape)
    errors = np.abs(_operator(mdp, pi, mu, c, q) - q_pi)
    assert np.all(errors <= eta * _norm(q - q_pi) + 100 * SLACK)


def test_remark_1_full_traces_on_policy_evaluate_at_once_and_none_are_bellmans():
  rng = np.random.default_rng(3)
  mdp = _random_mdp(rng)
  pi, mu = _random_policy(rng, mdp), _random_policy(rng, mdp, floor=0.1)
  q = rng.normal(size=pi.shape)
  for kind in ("retrace", "importance_sampling", "harutyunyan_q_lambda"):
    at_once = _operator(mdp, mu, mu, _trace(kind, mu, mu, 1.0), q)
    np.testing.assert_allclose(at_once, _q_pi(mdp, mu), atol=1e-4)
  cut = _operator(mdp, pi, mu, _trace("retrace", pi, mu, 0.0), q)
  np.testing.assert_allclose(cut, _bellman(mdp, pi, q), atol=1e-12)


@pytest.mark.parametrize("kind", ["retrace", "tree_backup"])
def test_theorem_2_control_from_a_pessimistic_start(kind):
  rng = np.random.default_rng(4)
  for _ in range(10):
    mdp = _random_mdp(rng)
    q_star = _q_star(mdp)
    num_actions = mdp.rewards.shape[1]
    q = np.full(mdp.rewards.shape, -_norm(mdp.rewards) / (1 - DISCOUNT))
    for k in range(60):
      epsilon = 1 / (k + 1)
      pi = (1 - epsilon) * _greedy(q) + epsilon / num_actions
      mu = _random_policy(rng, mdp, floor=0.1)
      gap = np.max(_bellman(mdp, _greedy(q), q) - _bellman(mdp, pi, q))
      updated = _operator(mdp, pi, mu, _trace(kind, pi, mu, 1.0), q)
      bound = DISCOUNT * _norm(q - q_star) + gap
      assert _norm(updated - q_star) <= bound + SLACK * _norm(q)
      q = updated
    assert _norm(q - q_star) < 0.1 * _norm(q_star)


def test_uncorrected_q_lambda_diverges_where_retrace_converges():
  """Observed in the paper, section 3.1: Q*(λ) with large λ, μ far from greedy."""
  rng = np.random.default_rng(18)  # About one MDP in seven of this kind serves.
  mdp = _random_mdp(rng, num_states=4, num_actions=2, concentration=0.2)
  q_star = _q_star(mdp)
  worst = np.eye(2)[np.argmin(q_star, axis=1)]
  mu = 0.95 * worst + 0.05 * _greedy(q_star)
  start = q_star + rng.normal(scale=0.1, size=q_star.shape)
  errors = {}
  for kind in ("harutyunyan_q_lambda", "retrace", "tree_backup"):
    for lambda_ in (0.05, 1.0):
      q = start
      for _ in range(200):
        pi = _greedy(q)
        q = _operator(mdp, pi, mu, _trace(kind, pi, mu, lambda_), q)
        if _norm(q) > 1e6:
          break
      errors[kind, lambda_] = _norm(q - q_star)
  # λ = 0.05 is below (1 − γ)/(2γ), where Q*(λ) does contract.
  assert errors.pop(("harutyunyan_q_lambda", 1.0)) > 1e5
  assert max(errors.values()) < 1e-4, errors


def test_lemma_5_the_behaviour_of_equation_9_commutes_with_the_greedy_policy():
  """The greedy action has the same probability 1 − ε in all states."""
  rng = np.random.default_rng(8)
  mdp = _random_mdp(rng)
  greedy = _greedy(rng.normal(size=mdp.rewards.shape))
  other = _random_policy(rng, mdp, floor=0.5)

  def commutator(mu: np.ndarray) -> float:
    p, both = _kernel(mdp, greedy), _kernel(mdp, np.minimum(greedy, mu))
    return _norm(p @ both - both @ p)

  rest = other * (1 - greedy)
  mu = 0.5 * greedy + 0.5 * rest / rest.sum(axis=1, keepdims=True)
  assert commutator(mu) < 1e-12 < 0.01 < commutator(other)


# Increasingly greedy policies.


@jax.jit
def _expected_values(policy, q_t):
  """E_π q_t, as one-step Retrace sees it. `[T, A]`, `[T, A]` → `[T]`."""
  zeros = q_t[:, 0] * 0
  actions = zeros.astype(int)
  ones = zeros + 1
  return losses.retrace(q_t * 0, q_t, actions, actions, zeros, ones, policy, ones, 0.0)


def test_epsilon_greedy_with_falling_epsilon_is_increasingly_greedy():
  """E_{π_{k+1}} Q_{k+1} ≥ E_{π_k} Q_{k+1}, for any Q_k and Q_{k+1}."""
  rng = np.random.default_rng(5)
  q_k, q_k1 = rng.normal(size=(2, 2000, 4))
  epsilon_k = rng.uniform(size=(2000, 1))
  epsilon_k1 = epsilon_k * rng.uniform(size=(2000, 1))
  pi_k = (1 - epsilon_k) * _greedy(q_k) + epsilon_k / 4
  pi_k1 = (1 - epsilon_k1) * _greedy(q_k1) + epsilon_k1 / 4
  q_t = q_k1.astype(np.float32)
  after = _expected_values(pi_k1.astype(np.float32), q_t)
  before = _expected_values(pi_k.astype(np.float32), q_t)
  assert np.all(after >= before - 1e-6)
  # With a rising ε it fails.
  assert np.any(before < _expected_values(pi_k[::-1].astype(np.float32), q_t))


def test_softmax_is_not_increasingly_greedy_at_an_even_temperature():
  """The paper's lemma 3 says it is; its proof evaluates π_k at Q_{k+1}."""
  q_k = np.array([[0.0, 10.0]], np.float32)
  q_k1 = np.array([[0.0, 0.1]], np.float32)
  before = _expected_values(jax.nn.softmax(q_k), q_k1)
  after = _expected_values(jax.nn.softmax(q_k1), q_k1)
  assert after < before - 0.04


# The library's sampled targets are samples of the operator.


def _all_streams(mdp: MDP, mu: np.ndarray, start: tuple[int, int], length: int):
  """Every (states, actions) of `length` transitions from a start, and its chance."""
  num_states, num_actions = mdp.rewards.shape
  following = itertools.product(range(num_states), range(num_actions))
  for path in itertools.product(list(following), repeat=length):
    states, actions = zip(start, *path, strict=True)
    chance = 1.0
    for t in range(length):
      chance *= mdp.transitions[states[t], actions[t], states[t + 1]]
      chance *= mu[states[t + 1], actions[t + 1]]
    yield np.array(states), np.array(actions), chance


def _truncated_operator(mdp: MDP, pi, mu, c, q, length: int) -> np.ndarray:
  """Q + Σ_{t < length} (γ P^{cμ})^t (T^π Q − Q)."""
  kernel = DISCOUNT * _kernel(mdp, c * mu)
  term = (_bellman(mdp, pi, q) - q).ravel()
  total = q.ravel().copy()
  for _ in range(length):
    total += term
    term = kernel @ term
  return total.reshape(q.shape)


@pytest.mark.parametrize(
  ("name", "lambda_"),
  [
    ("retrace", 0.9),
    ("tree_backup", 0.9),
    ("harutyunyan_q_lambda", 0.9),
    ("importance_sampling", None),
  ],
)
def test_sampled_targets_average_to_the_operator(name, lambda_):
  rng = np.random.default_rng(6)
  mdp = _random_mdp(rng, num_states=2, num_actions=2)
  pi, mu = _random_policy(rng, mdp), _random_policy(rng, mdp, floor=0.2)
  q = rng.normal(size=pi.shape)
  length = 3
  start = (1, 0)
  streams = list(_all_streams(mdp, mu, start, length))
  states, actions, chances = map(np.stack, zip(*streams, strict=True))
  np.testing.assert_allclose(chances.sum(), 1)
  extra = () if lambda_ is None else (lambda_,)

  def target(q_t, a_tm1, a_t, r_t, pi_t, mu_t):
    discount_t = DISCOUNT + 0 * r_t
    errors = getattr(losses, name)(
      0 * q_t, q_t, a_tm1, a_t, r_t, discount_t, pi_t, mu_t, *extra
    )
    return errors[0]

  float32 = lambda x: x.astype(np.float32)  # noqa: E731
  targets = jax.jit(jax.vmap(target))(
    float32(q[states[:, 1:]]),
    actions[:, :-1],
    actions[:, 1:],
    float32(mdp.rewards[states[:, :-1], actions[:, :-1]]),
    float32(pi[states[:, 1:]]),
    float32(mu[states[:, 1:], actions[:, 1:]]),
  )
  c = _trace(name, pi, mu, 1.0 if lambda_ is None else lambda_)
  expected = _truncated_operator(mdp, pi, mu, c, q, length)[start]
  np.testing.assert_allclose(chances @ targets, expected, rtol=1e-4)
