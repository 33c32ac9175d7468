"""TD errors of off-policy algorithms, which share one return and differ in its trace.

The source of all of them is Munos et al. 2016, "Safe and efficient off-policy
reinforcement learning"; values may be transformed, as in R2D2 and NGU (Badia et al.
2020, appendix E):

    TD_t = h( G_t ) − q_tm1(a_t),    G from h⁻¹(q_t), no gradient through G.
"""

import inspect
from collections.abc import Callable
from typing import Concatenate, ParamSpec

import jax
import jax.numpy as jnp

from explorax.losses import checks, indexing, returns, traces, transforms

Array = jax.Array
P = ParamSpec("P")

_STREAM = {
  "q_tm1": "float [T, A]",
  "q_t": "float [T, A]",
  "a_tm1": "int [T]",
  "a_t": "int [T]",
  "r_t": "float [T]",
  "discount_t": "float [T]",
  "lambda_": "number [] or [T]",
}
_POLICIES = {"pi_t": "float [T, A]", "mu_t": "float [T] or [T, A]"}


def td_errors(
  q_tm1: Array, a_tm1: Array, g_tm1: Array, tx_pair: transforms.TxPair
) -> Array:
  """h(G) − q(a), with no gradient through the return G. All `[T]`, but q `[T, A]`."""
  return jax.lax.stop_gradient(tx_pair.apply(g_tm1)) - indexing.select(q_tm1, a_tm1)


def greedy_values(
  q_t: Array, q_t_selector: Array | None, tx_pair: transforms.TxPair
) -> Array:
  """h⁻¹(q_t) at the greedy actions of the selector, or of q_t. `[T, A]` → `[T]`."""
  if q_t_selector is None:
    # The argmax of an array is several times slower than its maximum.
    return tx_pair.apply_inv(jnp.max(q_t, axis=-1))
  return tx_pair.apply_inv(indexing.select(q_t, jnp.argmax(q_t_selector, axis=-1)))


def expected_value(
  pi_t: Array, q_t: Array, tx_pair: transforms.TxPair = transforms.identity_pair
) -> Array:
  """E_π h⁻¹(q_t), without gradient, in float32 at least. `[T, A]` → `[T]`."""
  pi_t, q_t = _constants(pi_t, q_t)
  return jnp.sum(pi_t * tx_pair.apply_inv(q_t), axis=-1)


def _constants(*arrays: Array) -> list[Array]:
  """The arrays in float32 at least, without gradient.

  A target has no gradient: stopping it here keeps it out of the loop.
  """
  return [
    jnp.asarray(x, jnp.result_type(x, jnp.float32))
    for x in jax.lax.stop_gradient(arrays)
  ]


def _values(
  q_t: Array, a_t: Array, pi_t: Array, mu_t: Array, tx_pair: transforms.TxPair
) -> tuple[Array, Array, Array, Array]:
  """q_a_t, v_t, π(a_t) and μ(a_t), `[T]` each, with q on the scale of the returns."""
  q_t, pi_t, mu_t = _constants(q_t, pi_t, mu_t)
  q_a_t = tx_pair.apply_inv(indexing.gather(q_t, a_t))
  v_t = expected_value(pi_t, q_t, tx_pair)
  mu_a_t = mu_t if jnp.ndim(mu_t) == 1 else indexing.gather(mu_t, a_t)
  return q_a_t, v_t, indexing.gather(pi_t, a_t), mu_a_t


@checks.arguments(**_STREAM, **_POLICIES)
def off_policy_q(
  trace: traces.Trace,
  q_tm1: Array,
  q_t: Array,
  a_tm1: Array,
  a_t: Array,
  r_t: Array,
  discount_t: Array,
  pi_t: Array,
  mu_t: Array,
  lambda_: float | Array,
  tx_pair: transforms.TxPair = transforms.identity_pair,
) -> Array:
  """TD errors with any trace; see `traces`.

      G_{t-1} = r_t + γ_t (E_π q_t + c_t (G_t − q_t(a_t))),    c = trace(π, μ, λ)

  The bootstrapped action is π's: for a double estimate, take π from the online network
  and q_t from the target network.

  At a row that must not enter a trace (an episode's last one, padding), pass λ = 0.
  Later rows are then ignored, and the return bootstraps there, unless the discount is
  also 0.

  Args:
    trace: (π(a_t), μ(a_t), λ) → c_t, all `[T]`.
    q_tm1: online network's values at times [0, ..., T − 1], transformed. `[T, A]`.
    q_t: target network's values at times [1, ..., T], transformed. `[T, A]`.
    a_tm1: actions taken at times [0, ..., T − 1]. Int `[T]`.
    a_t: actions taken at times [1, ..., T]; the last one is ignored. Int `[T]`.
    r_t: rewards at times [1, ..., T]. `[T]`.
    discount_t: γ times the environment's discount, at times [1, ..., T]. `[T]`.
    pi_t: probabilities of the target policy at times [1, ..., T]. `[T, A]`.
    mu_t: probability with which a_t was drawn, at times [1, ..., T], or those of
      all actions; if it is 0, the trace is 0. `[T]` or `[T, A]`.
    lambda_: λ, for all times or at times [1, ..., T]. `[]` or `[T]`.
    tx_pair: transformation of the values, and its inverse.

  Returns:
    TD errors, target − q_tm1(a_tm1), at times [0, ..., T − 1]. `[T]`.
  """
  r_t, discount_t, lambda_ = jax.lax.stop_gradient((r_t, discount_t, lambda_))
  q_a_t, v_t, pi_a_t, mu_a_t = _values(q_t, a_t, pi_t, mu_t, tx_pair)
  c_t = trace(pi_a_t, mu_a_t, lambda_)
  g_tm1 = returns.off_policy_returns(q_a_t, v_t, r_t, discount_t, c_t)
  return td_errors(q_tm1, a_tm1, g_tm1, tx_pair)


def _with_trace(
  function: Callable[Concatenate[traces.Trace, P], Array],
  trace: traces.Trace,
  docstring: str,
) -> Callable[P, Array]:
  """The function with this trace, under the trace's name."""

  def algorithm(*args: P.args, **kwargs: P.kwargs) -> Array:
    return function(trace, *args, **kwargs)

  signature = inspect.signature(function)
  others = list(signature.parameters.values())[1:]
  algorithm.__name__ = algorithm.__qualname__ = trace.__name__
  algorithm.__doc__ = docstring
  algorithm.__signature__ = signature.replace(parameters=others)  # type: ignore[attr-defined]
  return checks.arguments(**_STREAM, **_POLICIES)(algorithm)


retrace = _with_trace(
  off_policy_q,
  traces.retrace,
  """TD errors of Retrace(λ): c = λ min(1, π/μ).

  Safe for any π and μ, with full returns where the two are close. Takes the arguments
  of `off_policy_q` without the trace, and returns the same.
  """,
)

tree_backup = _with_trace(
  off_policy_q,
  traces.tree_backup,
  """TD errors of tree-backup(λ) (Precup et al. 2000): c = λ π.

  Safe for any π and μ, but also cuts traces of nearly on-policy data. μ is ignored; it
  is an argument so that algorithms are interchangeable. Arguments and result are those
  of `off_policy_q`, without its trace.
  """,
)

harutyunyan_q_lambda = _with_trace(
  off_policy_q,
  traces.harutyunyan_q_lambda,
  """TD errors of Q^π(λ), and of Q*(λ) where π is greedy (Harutyunyan et al.): c = λ.

  Converges if π is close to μ: λ < (1 − γ)/(γε), ε = max_x ‖π − μ‖₁, or
  λ < (1 − γ)/(2γ) in control; otherwise it may diverge. μ is ignored; it is an argument
  so that algorithms are interchangeable. Arguments and result are those of
  `off_policy_q`, without its trace.
  """,
)


@checks.arguments(**_STREAM, **_POLICIES)
def importance_sampling(
  q_tm1: Array,
  q_t: Array,
  a_tm1: Array,
  a_t: Array,
  r_t: Array,
  discount_t: Array,
  pi_t: Array,
  mu_t: Array,
  tx_pair: transforms.TxPair = transforms.identity_pair,
) -> Array:
  """TD errors with per-decision importance sampling (Precup et al. 2000): c = π/μ.

  Unbiased for any π and μ, with a variance that grows with their distance. There is no
  λ: at a row that must not enter a trace, pass μ = 0. `off_policy_q` describes the
  other arguments and the result.
  """
  return off_policy_q(
    traces.importance_sampling,
    q_tm1,
    q_t,
    a_tm1,
    a_t,
    r_t,
    discount_t,
    pi_t,
    mu_t,
    1.0,
    tx_pair,
  )


@checks.arguments(**_STREAM, **_POLICIES)
def non_markov_retrace(
  q_tm1: Array,
  q_t: Array,
  a_tm1: Array,
  a_t: Array,
  r_t: Array,
  discount_t: Array,
  pi_t: Array,
  mu_t: Array,
  lambda_: float | Array,
  tx_pair: transforms.TxPair = transforms.identity_pair,
) -> Array:
  """TD errors with the trace of equation 10, which depends on the start of the return.

      c_s = λ min(1 / (c_1 ... c_{s−1}), π/μ)

  Converges in policy evaluation, for any π and μ; see `non_markov_returns`.
  Arguments and result are as in `off_policy_q`.
  """
  r_t, discount_t, lambda_ = jax.lax.stop_gradient((r_t, discount_t, lambda_))
  q_a_t, v_t, pi_a_t, mu_a_t = _values(q_t, a_t, pi_t, mu_t, tx_pair)
  rho_t = traces.importance_ratio(pi_a_t, mu_a_t)
  g_tm1 = returns.non_markov_returns(q_a_t, v_t, r_t, discount_t, rho_t, lambda_)
  return td_errors(q_tm1, a_tm1, g_tm1, tx_pair)


@checks.arguments(**_STREAM, q_t_selector="float [T, A]")
def watkins_q_lambda(
  q_tm1: Array,
  q_t: Array,
  a_tm1: Array,
  a_t: Array,
  r_t: Array,
  discount_t: Array,
  lambda_: float | Array,
  q_t_selector: Array | None = None,
  tx_pair: transforms.TxPair = transforms.identity_pair,
) -> Array:
  """TD errors of Watkins's Q(λ): c is λ if a_t is greedy, else 0.

      G_{t-1} = r_t + γ_t (q_t(a*) + c_t (G_t − q_t(a_t)))

  This is Retrace(λ) with a greedy π. If a_t is one of several greedy actions, it is a*;
  otherwise a* is the first of them.

  Args:
    q_tm1, q_t, a_tm1, a_t, r_t, discount_t, lambda_, tx_pair: as in `off_policy_q`.
    q_t_selector: values that define the greedy actions, at times [1, ..., T]: the
      online network's for a double estimate; q_t by default. `[T, A]`.

  Returns:
    TD errors, target − q_tm1(a_tm1), at times [0, ..., T − 1]. `[T]`.
  """
  selector = q_t if q_t_selector is None else q_t_selector
  q_t, r_t, discount_t, lambda_, selector, q_t_selector = jax.lax.stop_gradient(
    (q_t, r_t, discount_t, lambda_, selector, q_t_selector)
  )
  is_greedy = indexing.gather(selector, a_t) == jnp.max(selector, axis=-1)
  q_a_t = tx_pair.apply_inv(indexing.gather(q_t, a_t))
  v_t = jnp.where(is_greedy, q_a_t, greedy_values(q_t, q_t_selector, tx_pair))
  c_t = jnp.where(is_greedy, lambda_, 0.0)
  g_tm1 = returns.off_policy_returns(q_a_t, v_t, r_t, discount_t, c_t)
  return td_errors(q_tm1, a_tm1, g_tm1, tx_pair)
