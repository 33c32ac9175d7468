"""The mixture of policies of Never Give Up: a bonus scale and a discount for each.

Policy 0 only exploits and policy n − 1 explores the most.
"""

import jax
import jax.numpy as jnp
import numpy as np


def _check_size(n: int) -> None:
  if n < 1:
    raise ValueError(f"a mixture of {n} policies is empty; use at least 1.")


def mixture_betas(n: int, beta: float) -> jax.Array:
  """The scales of the intrinsic reward (Badia et al., 2020, appendix A).

  `β_0 = 0`, `β_{n−1} = beta`, and `β_i = beta · sigmoid(10 (2i − (n−2)) / (n−2))`
  between. The printed formula divides by n − 2; n = 2 is read as {0, beta}, and n = 1,
  a single exploring policy, as {beta}.

  Args:
    n: number of policies.
    beta: the greatest scale, at least 0.

  Returns:
    float32 `[n]`, ascending.

  Raises:
    ValueError: if `n` is below 1, or `beta` is negative or not finite.
  """
  _check_size(n)
  if not 0.0 <= beta < np.inf:
    raise ValueError(f"beta is {beta}; use a finite value of at least 0.")
  betas = np.full((n,), beta, np.float64)
  if n > 1:
    betas[0] = 0.0
  i = np.arange(1, n - 1)
  if n > 2:
    betas[1:-1] = beta / (1.0 + np.exp(-10.0 * (2 * i - (n - 2)) / (n - 2)))
  return jnp.asarray(betas, jnp.float32)


def mixture_discounts(n: int, gamma_max: float, gamma_min: float) -> jax.Array:
  """The discounts (Badia et al., 2020, appendix A), long-sighted to short-sighted.

  `γ_i = 1 − exp(((n−1−i) log(1−gamma_max) + i log(1−gamma_min)) / (n−1))`: evenly
  spaced in the logarithm of the horizon. With n = 1 the formula is 0/0; a single
  policy is read as the exploring one, with gamma_min. (For a single policy that never
  explores, pass the paper's gamma_max for both.)

  Args:
    n: number of policies.
    gamma_max: of policy 0, which only exploits.
    gamma_min: of policy n − 1.

  Returns:
    float32 `[n]`, descending.

  Raises:
    ValueError: if `n` is below 1, or unless `0 ≤ gamma_min ≤ gamma_max < 1`.
  """
  _check_size(n)
  if not 0.0 <= gamma_min <= gamma_max < 1.0:
    raise ValueError(
      f"gamma_max is {gamma_max} and gamma_min {gamma_min}; discounts must satisfy "
      "0 <= gamma_min <= gamma_max < 1."
    )
  share = np.linspace(0.0, 1.0, n) if n > 1 else np.ones((1,))
  log_gap = (1.0 - share) * np.log1p(-gamma_max) + share * np.log1p(-gamma_min)
  return jnp.asarray(-np.expm1(log_gap), jnp.float32)
