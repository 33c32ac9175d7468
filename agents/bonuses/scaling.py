"""Scales bonuses by β, and adds them to rewards.

The rule: r + β r_int replaces r in every transition. A multi-step return therefore sums
the bonuses of its transitions as it sums their rewards, for bonuses of actors and of
learners. This follows the papers: TDU augments the reward of each
transition τ, under Peng's Q(λ) too (Flennerhag et al., 2020, algorithm 2, appendix E);
Chen et al. (2017, algorithm 3) store r + ρ b_T(s) as the reward; NGU's Retrace sums
r^e + β r^i (Badia et al., 2020, appendix E); Rainbow-CTS adds its bonus to the rewards
of 5-step returns (Dabney et al., 2021, appendix C).
"""

import jax
import jax.numpy as jnp
import numpy as np

Array = jax.Array


def scaled_bonus(
  r_int: Array, beta: float | Array, sees_bonus: Array | np.ndarray
) -> Array:
  """β r_int for the members that see the bonus, 0 for the others.

  Args:
    r_int: float32 `[B, ...]`.
    beta: β, a scalar or, in a mixture of policies, one per window `[B]`.
    sees_bonus: bool `[M]`.

  Returns:
    `[M, B, ...]`, to be added to the members' rewards.
  """
  beta = jnp.asarray(beta, r_int.dtype)
  beta = jnp.reshape(beta, beta.shape + (1,) * (r_int.ndim - beta.ndim))
  sees_bonus = jnp.reshape(sees_bonus, (-1,) + (1,) * r_int.ndim)
  return jnp.where(sees_bonus, (beta * r_int)[None], 0.0)


def align(r_int: Array, end: str) -> Array:
  """Assigns the bonus that an actor stored with each row to a transition.

  Row t's bonus refers to x_t. A `source` or `transition` bonus rewards the transition
  out of x_t; a `destination` bonus (NGU's novelty, known on arrival) rewards the
  transition into x_t, like the reward r_t.

  Args:
    r_int: `[T + 1, ...]`, one per row.
    end: `source`, `transition` or `destination`.

  Returns:
    `[T, ...]`, the bonus of transition t, the one from x_t to x_{t+1}.
  """
  return r_int[1:] if end == "destination" else r_int[:-1]
