"""TD errors of successor features."""

import jax
import jax.numpy as jnp

from explorax.losses import checks, indexing

Array = jax.Array


@checks.arguments(
  psi_tm1="float [A, D]",
  a_tm1="int []",
  phi_tm1="float [D]",
  discount_t="float []",
  psi_t="float [A, D]",
  pi_t="float [A]",
)
def successor_features(
  psi_tm1: Array,
  a_tm1: Array,
  phi_tm1: Array,
  discount_t: float | Array,
  psi_t: Array,
  pi_t: Array,
) -> Array:
  """TD error of successor features ψ, the discounted sums of future features φ.

      φ_tm1 + γ_t Σ_a π_t(a) ψ_t(a) − ψ_tm1(a_tm1)

  Source: Dayan 1993; Barreto et al. 2017; Janz et al. 2019 (Successor Uncertainties),
  section 4. The expectation over π is as in expected SARSA.

  Args:
    psi_tm1: online network's successor features at time 0. Float `[A, D]`.
    a_tm1: action taken at time 0. Int `[]`.
    phi_tm1: features of that state and action; no gradient. Float `[D]`.
    discount_t: the factor of the bootstrap: γ times the environment's discount. `[]`.
    psi_t: target network's successor features at time 1; no gradient. Float `[A, D]`.
    pi_t: probabilities of the policy that is followed; no gradient. Float `[A]`.

  Returns:
    The TD error. `[D]`.
  """
  target = jnp.asarray(phi_tm1) + discount_t * (jnp.asarray(pi_t) @ psi_t)
  return jax.lax.stop_gradient(target) - indexing.index(psi_tm1, a_tm1)
