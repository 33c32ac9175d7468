"""The return that all off-policy losses share; they differ in its traces.

Rows and times: entry i of every argument, `[T]`, belongs to the transition from x_i
into x_{i+1}: its reward and discount, and the values, action, probabilities and trace
at x_{i+1}. Entry i of a return is the return of (x_i, a_i).
"""

import jax
import jax.numpy as jnp

from explorax.losses import checks

Array = jax.Array


def of_one_dtype(*arrays: float | Array) -> list[Array]:
  """The arrays in a common dtype, as loops need them."""
  dtype = jnp.result_type(*arrays)
  return [jnp.asarray(array, dtype) for array in arrays]


@checks.arguments(
  q_a_t="float [T]",
  v_t="float [T]",
  r_t="float [T]",
  discount_t="float [T]",
  c_t="float [T]",
)
def off_policy_returns(
  q_a_t: Array, v_t: Array, r_t: Array, discount_t: Array, c_t: Array
) -> Array:
  """Returns under π from data that another policy generated.

      G_{t-1} = r_t + γ_t (v_t + c_t (G_t − q_t(a_t))),    G_T = q_T(a_T)

  With v_t = E_π q_t this is the sampled operator of Retrace and related algorithms
  (Munos et al. 2016, equation 4), where c_t selects the algorithm (`traces`); with v_t
  as q_a_t it is the λ-return of Peng's Q(λ) and of expected SARSA(λ). A discount of 0
  ends the return at its reward; a trace of 0 ends it at v_t, so that nothing later
  enters. The last entries of q_a_t and c_t are ignored.

  Gradients pass through this function; the losses stop them.

  Args:
    q_a_t: q_t(a_t) at times [1, ..., T]. Float `[T]`.
    v_t: E_π q_t at times [1, ..., T]. Float `[T]`.
    r_t: rewards at times [1, ..., T]. Float `[T]`.
    discount_t: γ times the environment's discount, at times [1, ..., T]. Float `[T]`.
    c_t: traces at times [1, ..., T]. Float `[T]`.

  Returns:
    G at times [0, ..., T − 1]. Float `[T]`.
  """
  q_a_t, v_t, r_t, discount_t, c_t = of_one_dtype(q_a_t, v_t, r_t, discount_t, c_t)
  one_step = r_t + discount_t * v_t
  decay = discount_t * c_t

  def step(g_t: Array, inputs: tuple[Array, ...]) -> tuple[Array, Array]:
    one_step_t, decay_t, q_t = inputs
    # A trace of 0 also cuts infinite values.
    g_tm1 = one_step_t + jnp.where(decay_t == 0, 0.0, decay_t * (g_t - q_t))
    return g_tm1, g_tm1

  _, returns = jax.lax.scan(
    step, one_step[-1], (one_step[:-1], decay[:-1], q_a_t[:-1]), reverse=True
  )
  return jnp.concatenate([returns, one_step[-1:]])


@checks.arguments(
  q_a_t="float [T]",
  v_t="float [T]",
  r_t="float [T]",
  discount_t="float [T]",
  rho_t="float [T]",
  lambda_="number [] or [T]",
)
def non_markov_returns(
  q_a_t: Array,
  v_t: Array,
  r_t: Array,
  discount_t: Array,
  rho_t: Array,
  lambda_: float | Array,
) -> Array:
  """Returns whose trace depends on the start of the return.

      c_s = λ_s min(1 / (c_{t+1} ... c_{s-1}), ρ_s),    that is
      C_s = c_{t+1} ... c_s = λ_s min(1, C_{s-1} ρ_s),  C_t = 1,

      G_t = r_{t+1} + γ_{t+1} v_{t+1}
            + Σ_{s>t} (Π_{i=t+1}^s γ_i) C_s (r_{s+1} + γ_{s+1} v_{s+1} − q_s(a_s))

  Source: Munos et al. 2016, equation 10. A large ratio can make up for a small one
  before it, unlike in Retrace. Policy evaluation converges; for control this is not
  known. Time grows with T², memory with T.

  Args:
    q_a_t, v_t, r_t, discount_t: as in `off_policy_returns`. Float `[T]`.
    rho_t: π(a_t|x_t)/μ(a_t|x_t) at times [1, ..., T]. Float `[T]`.
    lambda_: λ, for all times or at times [1, ..., T]. `[]` or `[T]`.

  Returns:
    G at times [0, ..., T − 1]. Float `[T]`.
  """
  q_a_t, v_t, r_t, discount_t, rho_t, lambda_ = of_one_dtype(
    q_a_t, v_t, r_t, discount_t, rho_t, lambda_
  )
  one_step = r_t + discount_t * v_t
  num_steps = one_step.shape[0]
  starts = jnp.arange(num_steps)

  def step(
    carry: tuple[Array, Array, Array], inputs: tuple[Array, ...]
  ) -> tuple[tuple[Array, Array, Array], None]:
    """Adds the TD error at time s to the returns of all earlier starts."""
    returns, discounts, products = carry
    s, td_s, discount_s, rho_s, lambda_s = inputs
    before = starts < s
    discounts = jnp.where(before, discounts * discount_s, 1.0)
    products = jnp.where(before, lambda_s * jnp.minimum(1.0, products * rho_s), 1.0)
    weights = jnp.where(before, discounts * products, 0.0)
    # A trace of 0 also cuts infinite values.
    returns = returns + jnp.where(weights == 0, 0.0, weights * td_s)
    return (returns, discounts, products), None

  ones = jnp.ones_like(one_step)
  (returns, _, _), _ = jax.lax.scan(
    step,
    (one_step, ones, ones),
    (
      starts[1:],
      one_step[1:] - q_a_t[:-1],
      discount_t[:-1],
      rho_t[:-1],
      (lambda_ * ones)[:-1],
    ),
  )
  return returns
