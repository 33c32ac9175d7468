"""Priorities of replayed sequences."""

import jax
import jax.numpy as jnp

from explorax.losses import checks

Array = jax.Array


@checks.arguments(td="float [T]", mask="mask [T]", eta="number []")
def sequence_priority(td: Array, mask: Array, eta: float | Array) -> Array:
  """Priority of a sequence, a mixture of its largest and its mean absolute TD error.

      η max_t |δ_t| + (1 − η) mean_t |δ_t|,    over the unmasked steps

  Source: Kapturowski et al. 2019 (R2D2), section 2.3, with η = 0.9.

  Args:
    td: δ, TD errors. Float `[T]`. Those of masked steps are ignored, even NaN.
    mask: 1 where a step is real, 0 where it is padding. `[T]`.
    eta: η in [0, 1]; a Python number outside this range is refused. `[]`.

  Returns:
    The priority, with no gradient; 0 if all steps are masked. `[]`.
  """
  checks.check_in_range("sequence_priority", "eta", eta, 0, 1)
  td, mask, eta = jax.lax.stop_gradient((td, mask, eta))
  real = jnp.asarray(mask) != 0
  size = jnp.where(real, jnp.abs(td), 0.0)
  mean = jnp.sum(size) / jnp.maximum(jnp.sum(real), 1)
  return eta * jnp.max(size) + (1 - eta) * mean
