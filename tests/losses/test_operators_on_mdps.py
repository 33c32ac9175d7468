"""What Munos et al. 2016 prove, on small random MDPs.

The operator `RQ = Q + (I − γ P^{cμ})⁻¹ (T^π Q − Q)` is computed exactly, in float64
and matrix form, for a table Q `[S, A]`; the traces c `[S, A]` in it are the library's.
"""

import functools
import typing

import jax
import numpy as np
import pytest

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
