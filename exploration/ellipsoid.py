"""Elliptical novelty: a state's length in the metric of those seen before."""

import jax
import jax.numpy as jnp

from explorax.losses import checks


def init_ellipsoid(dim: int, ridge: float) -> jax.Array:
  """C⁻¹ = I / λ without data, float32 `[dim, dim]`.

  Raises:
    ValueError: if `dim` is below 1, or `ridge`, λ, is not positive.
  """
  checks.check_in_range("init_ellipsoid", "dim", dim, 1)
  checks.check_positive("init_ellipsoid", "ridge", ridge)
  return jnp.eye(dim, dtype=jnp.float32) / ridge


@checks.arguments(inverse="float [D, D]", features="float [D]")
def elliptical_bonus(
  inverse: jax.Array, features: jax.Array
) -> tuple[jax.Array, jax.Array]:
  """The bonus φᵀ C⁻¹ φ, where C = λI + Σ φ φᵀ of earlier states, and then C⁻¹ with φ.

      b = φᵀ u,    u = C⁻¹ φ,    C⁻¹ ← C⁻¹ − u uᵀ / (1 + b)

  For one-hot φ it is 1 / (λ + n) after n visits. The update (Sherman and Morrison) is
  in float32 and keeps C⁻¹ symmetric; after 2,000 states of 128 features the bonus is
  within 1e-4 of the exact one, relatively, at λ = 0.1, and within 1e-2 at λ = 0.001.

  Source: Henaff et al. 2022 (E3B).

  Args:
    inverse: C⁻¹, from `init_ellipsoid`. `[D, D]`.
    features: φ, float `[D]`.

  Returns:
    The bonus, float32 `[]`, at least 0 and without a gradient, and C⁻¹.
  """
  features = jax.lax.stop_gradient(features).astype(jnp.float32)
  u = inverse @ features
  bonus = jnp.maximum(features @ u, 0.0)  # Rounding may make it negative.
  return bonus, inverse - jnp.outer(u, u) / (1.0 + bonus)
