"""The traces of off-policy algorithms (Munos et al. 2016, section 2).

    importance_sampling    c_t = π/μ
    harutyunyan_q_lambda   c_t = λ
    tree_backup            c_t = λ π
    retrace                c_t = λ min(1, π/μ)
    watkins_q_lambda       c_t = λ where π is 1, else 0 (for a greedy π)

Each is a function of π(a_t|x_t), μ(a_t|x_t) and λ, for `off_policy_q`:

  pi_a_t: π(a_t|x_t) at times [1, ..., T]. Float `[T]`.
  mu_t: μ(a_t|x_t), with which a_t was drawn, at times [1, ..., T]; if it is 0, π/μ is
    set to 0. Float `[T]`.
  lambda_: λ, for all times or at times [1, ..., T]. `[]` or `[T]`.

It returns c_t at times [1, ..., T], float `[T]`.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp

Array = jax.Array
Trace = Callable[[Array, Array, float | Array], Array]


def importance_ratio(pi_a_t: Array, mu_t: Array) -> Array:
  """π(a)/μ(a), and 0 if μ(a) is 0: such an action was never drawn, so no trace passes.

  An invalid μ(a), negative or NaN, gives NaN, which a learner detects.
  """
  ratio = pi_a_t / jnp.where(mu_t > 0, mu_t, jnp.nan)
  return jnp.where(jnp.equal(mu_t, 0.0), 0.0, ratio)


def importance_sampling(pi_a_t: Array, mu_t: Array, lambda_: float | Array) -> Array:
  """λ π/μ; the algorithm has λ = 1 (Precup et al. 2000)."""
  return lambda_ * importance_ratio(pi_a_t, mu_t)


def harutyunyan_q_lambda(pi_a_t: Array, mu_t: Array, lambda_: float | Array) -> Array:
  """λ (Harutyunyan et al. 2016)."""
  del mu_t
  return lambda_ * jnp.ones_like(pi_a_t)


def tree_backup(pi_a_t: Array, mu_t: Array, lambda_: float | Array) -> Array:
  """λ π (Precup et al. 2000)."""
  del mu_t
  return lambda_ * jnp.asarray(pi_a_t)


def retrace(pi_a_t: Array, mu_t: Array, lambda_: float | Array) -> Array:
  """λ min(1, π/μ) (Munos et al. 2016)."""
  return lambda_ * jnp.minimum(1.0, importance_ratio(pi_a_t, mu_t))


def watkins_q_lambda(pi_a_t: Array, mu_t: Array, lambda_: float | Array) -> Array:
  """λ where π is 1, else 0, for a greedy π (Watkins 1989)."""
  del mu_t
  return lambda_ * jnp.where(jnp.asarray(pi_a_t) == 1.0, 1.0, 0.0)
