"""The operators of off-policy returns, computed exactly on random decision processes.

Munos et al. (2016), "Safe and efficient off-policy reinforcement learning", equation 4:

    RQ = Q + (I − γ P^{cμ})⁻¹ (T^π Q − Q)    for a trace c(a, x) of `losses.traces`

For control, π is greedy in Q. All arrays are float64 with any leading axes `...`, one
for each process; matrices act on pairs (x, a), numbered x A + a.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from explorax.losses import traces


class MDP(NamedTuple):
  """A finite decision process, without an end.

  Attributes:
    transitions: p(y|x, a), `[..., S, A, S]`.
    rewards: r(x, a), `[..., S, A]`.
  """

  transitions: np.ndarray
  rewards: np.ndarray


def draw(
  seeds: Sequence[int], num_states: int, num_actions: int, concentration: float
) -> tuple[MDP, np.ndarray]:
  """Processes and policies π, `[seeds, S, A]`; a seed's do not depend on the others.

  Transitions are from a Dirichlet distribution with this concentration (near 0, each
  pair has a single successor), rewards from [−1, 1), and policies from the simplex.
  """
  transitions, rewards, policies = [], [], []
  for seed in seeds:
    rng, shape = np.random.default_rng(seed), (num_states, num_actions)
    transitions.append(rng.dirichlet(np.full(num_states, concentration), shape))
    rewards.append(rng.uniform(-1, 1, shape))
    policies.append(rng.dirichlet(np.ones(num_actions), num_states))
  return MDP(np.stack(transitions), np.stack(rewards)), np.stack(policies)


def greedy(q: np.ndarray) -> np.ndarray:
  """The policy of the first of the greatest values, `[..., S, A]` → `[..., S, A]`."""
  return np.eye(q.shape[-1])[np.argmax(q, axis=-1)]


def away_from(policy: np.ndarray, distance: float) -> np.ndarray:
  """A policy μ whose ‖π(·|x) − μ(·|x)‖₁ is the same in every state, as far as possible.

  μ = (1 − κ) π + κ δ(the least likely action),    κ = distance / (2 (1 − min π))
  """
  least = np.min(policy, axis=-1, keepdims=True)
  share = np.minimum(1.0, distance / (2 * (1 - least)))
  return (1 - share) * policy + share * greedy(-policy)


def bellman(mdp: MDP, pi: np.ndarray, q: np.ndarray, discount: float) -> np.ndarray:
  """T^π Q = r + γ P^π Q. Policies and values `[..., S, A]` → `[..., S, A]`."""
  values = np.sum(pi * q, axis=-1)
  return mdp.rewards + discount * np.einsum("...xay,...y->...xa", mdp[0], values)


def q_star(mdp: MDP, discount: float) -> np.ndarray:
  """Q*, `[..., S, A]`, by value iteration from 0 until only rounding remains."""
  q = np.zeros_like(mdp.rewards)
  for _ in range(int(np.log(1e-15) / np.log(discount))):
    q = bellman(mdp, greedy(q), q, discount)
  return q


def apply(
  trace: traces.Trace,
  mdp: MDP,
  pi: np.ndarray,
  mu: np.ndarray,
  q: np.ndarray,
  discount: float,
  lambda_: float,
) -> np.ndarray:
  """RQ, the mean of infinite returns, `[..., S, A]`.

  Args:
    trace: one of `losses.traces`.
    mdp: the process.
    pi: the target policy π(a|x), `[..., S, A]`.
    mu: the behaviour policy μ(a|x), `[..., S, A]`.
    q: Q, `[..., S, A]`.
    discount: γ < 1.
    lambda_: λ in [0, 1].
  """
  kernel = _kernel(trace, mdp, pi, mu, discount, lambda_)
  errors = (bellman(mdp, pi, q, discount) - q).reshape(*kernel.shape[:-1], 1)
  return q + np.linalg.solve(np.eye(kernel.shape[-1]) - kernel, errors).reshape(q.shape)


def contraction(
  trace: traces.Trace,
  mdp: MDP,
  pi: np.ndarray,
  mu: np.ndarray,
  discount: float,
  lambda_: float,
) -> np.ndarray:
  """‖M‖∞ of RQ − RQ' = M (Q − Q'), the greatest factor of an error, `[...]`.

  M = (I − γ P^{cμ})⁻¹ (γ P^π − γ P^{cμ})    (lemma 1)
  """
  kernel = _kernel(trace, mdp, pi, mu, discount, lambda_)
  rest = discount * _pairs(mdp, pi) - kernel
  matrix = np.linalg.solve(np.eye(kernel.shape[-1]) - kernel, rest)
  return np.max(np.sum(np.abs(matrix), axis=-1), axis=-1)


def _kernel(
  trace: traces.Trace,
  mdp: MDP,
  pi: np.ndarray,
  mu: np.ndarray,
  discount: float,
  lambda_: float,
) -> np.ndarray:
  """γ P^{cμ}, `[..., SA, SA]`."""
  c = np.asarray(trace(pi, mu, lambda_), np.float64)  # type: ignore[arg-type]
  return discount * _pairs(mdp, c * mu)


def _pairs(mdp: MDP, weights: np.ndarray) -> np.ndarray:
  """P^w: p(y|x, a) w(b|y) from pair (x, a) to pair (y, b), `[..., SA, SA]`."""
  matrix = np.einsum("...xay,...yb->...xayb", mdp.transitions, weights)
  size = weights.shape[-2] * weights.shape[-1]
  return matrix.reshape(*matrix.shape[:-4], size, size)
