"""The operators of off-policy returns, computed exactly on a finite decision process.

Munos et al. (2016), "Safe and efficient off-policy reinforcement learning", equation 4:

    RQ(x, a) = Q(x, a) + E_μ[Σ_t γ^t (Π_{s=1}^t c_s) (r_t + γ E_π Q(x_{t+1}, ·)
                                                      − Q(x_t, a_t))]
             = Q + (I − γ P^{cμ})⁻¹ (T^π Q − Q)    for a trace c(a, x),

The algorithms (`KINDS`) differ in the trace. For comparison, `KINDS` also has expected
SARSA(λ), which does not correct for μ, and is Peng's Q(λ) if π is greedy. It has c = λ
and replaces the last Q(x_t, a_t) by E_π Q(x_t, ·).

For control, π depends on Q: it is greedy for Harutyunyan's Q*(λ) and Watkins's Q(λ).
Matrices act on pairs (x, a), numbered x A + a.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from explorax.losses import traces as trace_functions
from explorax.papers.tabular import random_mdps

Array = jax.Array

_TRACES = {
  "importance_sampling": trace_functions.importance_sampling,
  "harutyunyan_q_lambda": trace_functions.harutyunyan_q_lambda,
  "tree_backup": trace_functions.tree_backup,
  "retrace": trace_functions.retrace,
  "watkins_q_lambda": trace_functions.watkins_q_lambda,
  # The trace is Harutyunyan's; the baseline differs.
  "expected_sarsa_lambda": trace_functions.harutyunyan_q_lambda,
}
KINDS = tuple(_TRACES)


def bellman(
  mdp: random_mdps.MDP, pi: Array, q: Array, discount: float | Array
) -> Array:
  """T^π Q = r + γ P^π Q. Policies and values `[S, A]` → `[S, A]`."""
  return mdp.rewards + discount * mdp.transitions @ jnp.sum(pi * q, axis=-1)


def pair_matrix(mdp: random_mdps.MDP, weights: Array) -> Array:
  """P^w: p(y|x, a) w(b|y) from pair (x, a) to pair (y, b). `[S, A]` → `[SA, SA]`."""
  size = mdp.rewards.size
  return jnp.einsum("xay,yb->xayb", mdp.transitions, weights).reshape(size, size)


def q_pi(mdp: random_mdps.MDP, pi: Array, discount: float | Array) -> Array:
  """Q^π = (I − γ P^π)⁻¹ r, `[S, A]`, for γ < 1."""
  return _resolve(mdp, discount * pair_matrix(mdp, pi), mdp.rewards)


def q_star(mdp: random_mdps.MDP, discount: float | Array) -> Array:
  """Q*, `[S, A]`, for γ < 1: the values of the policy that value iteration finds.

  Value iteration stops when its residual no longer decreases (only rounding remains).
  """

  def residual(q: Array, updated: Array) -> Array:
    return jnp.max(jnp.abs(updated - q))

  def update(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
    q, last, _ = carry
    updated = bellman(mdp, random_mdps.epsilon_greedy(q), q, discount)
    return updated, residual(q, updated), last

  start = jnp.zeros_like(mdp.rewards)
  infinity = jnp.full_like(start[0, 0], jnp.inf)
  q, _, _ = jax.lax.while_loop(
    lambda carry: (carry[1] < carry[2]) | jnp.isinf(carry[2]),
    update,
    (start, infinity, infinity),
  )
  return q_pi(mdp, random_mdps.epsilon_greedy(q), discount)


def traces(kind: str, pi: Array, mu: Array, lambda_: float | Array) -> Array:
  """c(a, x) of every pair, by `losses.traces`. `[S, A]` → `[S, A]`.

  Importance sampling has no λ (table 1) and ignores `lambda_`. Watkins's trace is for
  a deterministic π.

  Raises:
    ValueError: for a kind that is not in `KINDS`.
  """
  if kind not in KINDS:
    raise ValueError(f"kind is {kind!r}; it must be one of {', '.join(KINDS)}.")
  if kind == "importance_sampling":
    lambda_ = 1.0
  return _TRACES[kind](pi, mu, lambda_)


def apply(
  kind: str,
  mdp: random_mdps.MDP,
  pi: Array,
  mu: Array,
  q: Array,
  discount: float | Array,
  lambda_: float | Array,
) -> Array:
  """RQ, the mean of infinite returns.

  Args:
    kind: one of `KINDS`.
    mdp: the process.
    pi: the target policy π(a|x), `[S, A]`.
    mu: the behaviour policy μ(a|x), `[S, A]`.
    q: Q, `[S, A]`.
    discount: γ < 1.
    lambda_: λ in [0, 1].

  Returns:
    `[S, A]`.
  """
  kernel = discount * pair_matrix(mdp, traces(kind, pi, mu, lambda_) * mu)
  baseline = _baseline(kind, pi, q)
  errors = bellman(mdp, pi, q, discount) - baseline
  return baseline + _resolve(mdp, kernel, errors)


def error_matrix(
  kind: str,
  mdp: random_mdps.MDP,
  pi: Array,
  mu: Array,
  discount: float | Array,
  lambda_: float | Array,
) -> Array:
  """The matrix M with RQ − RQ' = M (Q − Q'), for a π that does not follow Q.

      M = (I − γ P^{cμ})⁻¹ (γ P^π − γ P^{cμ})

  One application of R multiplies the error Q − Q^π by M (lemma 1). Iterating R
  converges for every Q if and only if the spectral radius of M is below 1. Each row sum
  of |M| is the contraction factor of a pair: above 1, some errors expand.

  Args:
    kind, mdp, pi, mu, discount, lambda_: as in `apply`.

  Returns:
    `[SA, SA]`. For expected SARSA(λ), P^{cμ} E_π replaces the last P^{cμ}, and the
    fixed point is not Q^π.
  """
  kernel = discount * pair_matrix(mdp, traces(kind, pi, mu, lambda_) * mu)
  size = mdp.rewards.size
  of_baseline = jax.vmap(
    lambda unit: _baseline(kind, pi, unit.reshape(pi.shape)).reshape(-1), out_axes=1
  )(jnp.eye(size, dtype=kernel.dtype))
  rest = discount * pair_matrix(mdp, pi) - kernel @ of_baseline
  return jnp.linalg.solve(jnp.eye(size, dtype=kernel.dtype) - kernel, rest)


class Moments(NamedTuple):
  """The moments of the returns that begin at each pair, `[S, A]` each."""

  mean: Array
  variance: Array


def moments(
  kind: str,
  mdp: random_mdps.MDP,
  pi: Array,
  mu: Array,
  q: Array,
  discount: float | Array,
  lambda_: float | Array,
  length: int | Array,
) -> Moments:
  """Mean and variance of returns of `length` transitions under μ.

  The last transition bootstraps from E_π Q. The recursion updates the mean m and the
  variance v, where B is the baseline (Q, or E_π Q in expected SARSA(λ)) and sums have
  the weights p(y|x, a) μ(b|y):

      Z = E_π Q(y, ·) + c(b, y) (m(y, b) − B(y, b))
      m ← r + γ Σ Z,    v ← γ² Σ (c² v(y, b) + (Z − Σ Z)²),    from m = B, v = 0.

  Args:
    kind, mdp, pi, mu, q, discount, lambda_: as in `apply`, the limit of the mean.
    length: the number of transitions, at least 1; may be traced.
  """
  c = traces(kind, pi, mu, lambda_)
  chances = pair_matrix(mdp, mu)
  baseline = _baseline(kind, pi, q)
  values = jnp.sum(pi * q, axis=-1, keepdims=True)

  def step(_: Array, last: Moments) -> Moments:
    z = (values + c * (last.mean - baseline)).reshape(-1)
    mean = chances @ z
    spread = jnp.sum(chances * jnp.square(z[None, :] - mean[:, None]), axis=-1)
    later = chances @ (jnp.square(c) * last.variance).reshape(-1)
    variance = jnp.square(discount) * (later + spread)
    return Moments(
      mdp.rewards + discount * mean.reshape(q.shape), variance.reshape(q.shape)
    )

  return jax.lax.fori_loop(0, length, step, Moments(baseline, jnp.zeros_like(q)))


def _baseline(kind: str, pi: Array, q: Array) -> Array:
  """The baseline of a TD error: Q(x, a), or E_π Q(x, ·). `[S, A]`."""
  if kind == "expected_sarsa_lambda":
    return jnp.sum(pi * q, axis=-1, keepdims=True) * jnp.ones_like(q)
  return q


def _resolve(mdp: random_mdps.MDP, kernel: Array, vector: Array) -> Array:
  """(I − kernel)⁻¹ vector, `[S, A]` → `[S, A]`."""
  matrix = jnp.eye(mdp.rewards.size, dtype=kernel.dtype) - kernel
  return jnp.linalg.solve(matrix, vector.reshape(-1)).reshape(vector.shape)
