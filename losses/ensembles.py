"""Losses and bonuses of ensembles of K members."""

import jax
import jax.numpy as jnp

from explorax.losses import checks

Array = jax.Array


@checks.arguments(td="float [K]", mask="mask [K]")
def bootstrapped_td(td: Array, mask: Array) -> Array:
  """Squared TD errors of one transition, over the members that learn from it.

      Σ_k m_k δ_k² / (2K)

  Source: Flennerhag et al. 2020 (TDU), algorithm 2; its K counts all members,
  exploiters and explorers. A masked member contributes no loss and no gradient, even
  if its error is NaN.

  Args:
    td: δ, TD errors of a transition. Float `[K]`.
    mask: m, 1 for the members that learn from the transition, else 0. `[K]`.

  Returns:
    The loss. `[]`.
  """
  mask = jax.lax.stop_gradient(jnp.asarray(mask, jnp.result_type(td)))
  td = jnp.where(mask != 0, td, 0.0)
  return jnp.sum(mask * jnp.square(td)) / (2 * td.shape[0])


def _deviation(values: Array) -> Array:
  values = jax.lax.stop_gradient(jnp.asarray(values))
  num_members = values.shape[0]
  if num_members < 2:
    raise ValueError(
      f"a standard deviation over {num_members} member is not possible; use at least 2."
    )
  # Relative to the first member, so that equal members give exactly 0.
  values = values - values[:1]
  deviations = values - jnp.mean(values, axis=0, keepdims=True)
  return jnp.sqrt(jnp.sum(jnp.square(deviations), axis=0) / (num_members - 1))


@checks.arguments(td="float [K, ...]")
def tdu_bonus(td: Array) -> Array:
  """σ(τ), the deviation of the members' TD errors.

      sqrt( Σ_k (δ_k − δ̄)² / (K − 1) )

  Source: Flennerhag et al. 2020 (TDU), equation 11.

  Args:
    td: δ, TD errors of the members. Float `[K, ...]`; K = 1 is refused.

  Returns:
    The bonus, with no gradient. `[...]`.
  """
  return _deviation(td)


@checks.arguments(q="float [K, ...]")
def q_uncertainty(q: Array) -> Array:
  """σ(Q), the deviation of the members' values.

      sqrt( Σ_k (Q_k − Q̄)² / (K − 1) )

  Source: Flennerhag et al. 2020 (TDU), appendix D.2, which replaces TDU's bonus by
  σ(Q), the standard deviation over value estimates; we use the denominator K − 1, as
  in TDU.

  Args:
    q: Q, values of the members, of one action or of all. Float `[K, ...]`; K = 1 is
      refused.

  Returns:
    The deviation, with no gradient. `[...]`.
  """
  return _deviation(q)


@checks.arguments(q="float [K, A]", temperature="number []")
def infogain_bonus(q: Array, temperature: float | Array) -> Array:
  """b_T, how much the members' Boltzmann policies differ from their mean.

      (1/K) Σ_k KL(P_k ‖ P̄),    P_k = softmax(q_k / T),    P̄ = (1/K) Σ_k P_k

  0 if all members agree, at most log min(K, A). Computed in log space: any finite q and
  positive T give a finite bonus.

  Source: Chen et al. 2017 (UCB exploration via Q-ensembles), algorithm 3.

  Args:
    q: values of the members at a state. Float `[K, A]`.
    temperature: T; refused if it is not positive, unless it is traced. `[]`.

  Returns:
    The bonus, with no gradient. `[]`.
  """
  checks.check_positive("infogain_bonus", "temperature", temperature)
  q, temperature = jax.lax.stop_gradient((jnp.asarray(q), temperature))
  # Subtract the largest first: a small T may make the others −inf, but not inf.
  logits = (q - jnp.max(q, axis=-1, keepdims=True)) / temperature
  log_p = jax.nn.log_softmax(logits, axis=-1)
  log_mean = jax.nn.logsumexp(log_p, axis=0, keepdims=True) - jnp.log(q.shape[0])
  p = jnp.exp(log_p)
  terms = jnp.where(p == 0, 0.0, p * (log_p - log_mean))
  # Rounding may make the mean of the divergences slightly negative.
  return jnp.maximum(jnp.sum(terms) / q.shape[0], 0.0)
