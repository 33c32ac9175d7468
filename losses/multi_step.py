"""TD errors of multi-step returns that do not correct for the behaviour policy.

    TD_t = h( G_t ) − q_tm1(a_t)

G is computed from h⁻¹(q_t); no gradient passes through it.
"""

import jax
import jax.numpy as jnp

from explorax.losses import checks, off_policy, returns, transforms

Array = jax.Array


def _is_count(value: object) -> bool:
  return isinstance(value, int) and value >= 1


_STREAM = {
  "q_tm1": "float [T, A]",
  "a_tm1": "int [T]",
  "r_t": "float [T]",
  "discount_t": "float [T]",
  "q_t": "float [T, A]",
  "lambda_": "number [] or [T]",
}


def _lambda_td_errors(
  q_tm1: Array,
  a_tm1: Array,
  r_t: Array,
  discount_t: Array,
  v_t: Array,
  lambda_: float | Array,
  tx_pair: transforms.TxPair,
) -> Array:
  r_t, discount_t, v_t, lambda_ = jax.lax.stop_gradient((r_t, discount_t, v_t, lambda_))
  c_t = lambda_ * jnp.ones_like(v_t)
  g_tm1 = returns.off_policy_returns(v_t, v_t, r_t, discount_t, c_t)
  return off_policy.td_errors(q_tm1, a_tm1, g_tm1, tx_pair)


@checks.arguments(**_STREAM, q_t_selector="float [T, A]")
def peng_q_lambda(
  q_tm1: Array,
  a_tm1: Array,
  r_t: Array,
  discount_t: Array,
  q_t: Array,
  lambda_: float | Array,
  q_t_selector: Array | None = None,
  tx_pair: transforms.TxPair = transforms.identity_pair,
) -> Array:
  """TD errors of Peng's Q(λ) (Peng & Williams 1996).

      G_{t-1} = r_t + γ_t ((1 − λ_t) q_t(a*) + λ_t G_t),    G_T = q_T(a*)

  a* is greedy. The return is not corrected for actions that are not greedy.

  Args:
    q_tm1: online network's values at times [0, ..., T − 1], transformed. `[T, A]`.
    a_tm1: actions taken at times [0, ..., T − 1]. Int `[T]`.
    r_t: rewards at times [1, ..., T]. `[T]`.
    discount_t: γ times the environment's discount, at times [1, ..., T]. `[T]`.
    q_t: target network's values at times [1, ..., T], transformed. `[T, A]`.
    lambda_: λ, for all times or at times [1, ..., T]; use 0 at a row where returns must
      stop (an episode's last one, padding). `[]` or `[T]`.
    q_t_selector: values that define the greedy action, at times [1, ..., T]: the online
      network's for a double estimate; q_t by default. `[T, A]`.
    tx_pair: transformation of the values, and its inverse.

  Returns:
    TD errors, target − q_tm1(a_tm1), at times [0, ..., T − 1]. `[T]`.
  """
  v_t = off_policy.greedy_values(q_t, q_t_selector, tx_pair)
  return _lambda_td_errors(q_tm1, a_tm1, r_t, discount_t, v_t, lambda_, tx_pair)


@checks.arguments(**_STREAM, pi_t="float [T, A]")
def expected_sarsa_lambda(
  q_tm1: Array,
  a_tm1: Array,
  r_t: Array,
  discount_t: Array,
  q_t: Array,
  pi_t: Array,
  lambda_: float | Array,
  tx_pair: transforms.TxPair = transforms.identity_pair,
) -> Array:
  """TD errors of expected SARSA(λ) (Sutton & Barto 2018, equation 12.20).

      G_{t-1} = r_t + γ_t ((1 − λ_t) E_π q_t + λ_t G_t),    G_T = E_π q_T

  On-policy learning where a_t was drawn from π; Peng's Q(λ) where π is greedy.

  Args:
    q_tm1, a_tm1, r_t, discount_t, q_t, lambda_, tx_pair: as in `peng_q_lambda`.
    pi_t: probabilities of the policy at times [1, ..., T]. `[T, A]`.

  Returns:
    TD errors, target − q_tm1(a_tm1), at times [0, ..., T − 1]. `[T]`.
  """
  v_t = off_policy.expected_value(pi_t, q_t, tx_pair)
  return _lambda_td_errors(q_tm1, a_tm1, r_t, discount_t, v_t, lambda_, tx_pair)


def _n_step_returns(
  r_t: Array, discount_t: Array, v_t: Array, n: int, lambda_: float | Array
) -> Array:
  """Returns of n rewards; each iteration of the loop adds one reward at all times.

  A loop, not rlax's unrolled sum: XLA would move that sum into the gradient and compute
  each return once for every action.
  """
  r_t, discount_t, v_t, lambda_ = returns.of_one_dtype(r_t, discount_t, v_t, lambda_)
  length = v_t.shape[0]
  one_step = r_t + discount_t * (1 - lambda_) * v_t
  decay = discount_t * lambda_ * jnp.ones_like(v_t)

  def shifted(x: Array, fill: float | Array) -> Array:
    padded = jnp.concatenate([x, jnp.full(n - 1, fill, x.dtype)])
    return jnp.stack([padded[i : i + length] for i in range(n)])

  def step(g_t: Array, inputs: tuple[Array, Array]) -> tuple[Array, None]:
    one_step_t, decay_t = inputs
    return one_step_t + jnp.where(decay_t == 0, 0.0, decay_t * g_t), None

  # Past the end there are no rewards and no discounting: only the last value remains.
  inputs = (shifted(one_step, 0), shifted(decay, 1))
  g_tm1, _ = jax.lax.scan(step, shifted(v_t, v_t[-1])[-1], inputs, reverse=True)
  return g_tm1


@checks.arguments(**_STREAM, q_t_selector="float [T, A]")
def n_step_q(
  q_tm1: Array,
  a_tm1: Array,
  r_t: Array,
  discount_t: Array,
  q_t: Array,
  n: int,
  lambda_: float | Array = 1.0,
  q_t_selector: Array | None = None,
  tx_pair: transforms.TxPair = transforms.identity_pair,
) -> Array:
  """TD errors of n-step Q-learning; double Q-learning if a selector is given.

      G_{t-1} = r_t + γ_t (r_{t+1} + γ_{t+1} (... + γ_{t+n-1} q_{t+n-1}(a*)))

  a* is greedy. The last n − 1 returns are shorter and bootstrap from q_T.

  Args:
    q_tm1, a_tm1, r_t, discount_t, q_t, q_t_selector, tx_pair: as in `peng_q_lambda`.
    n: number of rewards in a return, a Python int of at least 1.
    lambda_: share of the return that continues beyond each time, for all times or at
      times [1, ..., T]; use 0 at a row where returns must stop and bootstrap (an
      episode's last one, padding). `[]` or `[T]`.

  Returns:
    TD errors, target − q_tm1(a_tm1), at times [0, ..., T − 1]. `[T]`.
  """
  if not _is_count(n):
    raise ValueError(f"n_step_q: n is {n!r}; it must be a whole number, at least 1.")
  r_t, discount_t, q_t, q_t_selector, lambda_ = jax.lax.stop_gradient(
    (r_t, discount_t, q_t, q_t_selector, lambda_)
  )
  v_t = off_policy.greedy_values(q_t, q_t_selector, tx_pair)
  g_tm1 = _n_step_returns(r_t, discount_t, v_t, min(n, v_t.shape[0]), lambda_)
  return off_policy.td_errors(q_tm1, a_tm1, g_tm1, tx_pair)
