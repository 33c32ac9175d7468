"""Bayesian linear regression on changing features: the posterior of its weights.

Successor Uncertainties (Janz et al., 2019) acts by weights drawn from such a posterior.
`update_regression` updates moving means over batches, `weight_posterior` computes the
posterior from them, and `sample_weights` draws.
"""

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

from explorax.exploration import sums
from explorax.losses import checks

# This share of the precision's trace is added to its diagonal: about ten roundings of
# its greatest eigenvalue. Otherwise, in float32, the evidence, which may be 10⁷ times
# the prior's, would hide the term that makes the matrix positive definite.
_JITTER = 1e-6


class Regression(NamedTuple):
  """Moving means over batches of features φ and targets y.

  Attributes:
    features: float32 `[D, D]`, of φ φᵀ.
    products: float32 `[D]`, of y φ.
    weight: the decayed number of batches; 0 before the first.
  """

  features: jax.Array
  products: jax.Array
  weight: sums.Sum


class WeightPosterior(NamedTuple):
  """A normal distribution of weights.

  Attributes:
    mean: float32 `[D]`.
    scale: float32 `[D, D]`; the covariance is scale scaleᵀ.
  """

  mean: jax.Array
  scale: jax.Array


def init_regression(num_features: int) -> Regression:
  """A regression without data, for D features."""
  if num_features < 1:
    raise ValueError(f"num_features is {num_features}; a regression needs at least 1.")
  return Regression(
    jnp.zeros((num_features, num_features), jnp.float32),
    jnp.zeros((num_features,), jnp.float32),
    sums.zero(),
  )


def update_regression(
  regression: Regression, features: jax.Array, targets: jax.Array, decay: chex.Numeric
) -> Regression:
  """Adds a batch; a batch from t updates ago has the weight `decay`ᵗ.

  The weights are divided by their sum, so that the first batch has the weight 1.

  Args:
    regression: of the earlier batches.
    features: φ, float `[N, D]`: one batch.
    targets: y, float `[N]`.
    decay: scalar in [0, 1], per update; 0 keeps only the last batch.

  Returns:
    The regression including the batch; no gradient passes.
  """
  checks.check(
    "update_regression",
    products=(regression.products, "float [D]"),
    features=(features, "float [N, D]"),
    targets=(targets, "float [N]"),
    decay=(decay, "number []"),
  )
  checks.check_in_range("update_regression", "decay", decay, 0, 1)
  features, targets = jax.lax.stop_gradient((features, targets))
  # A decayed weight stays small; without decay it is a count.
  rest = jnp.where(jnp.asarray(decay) == 1.0, regression.weight.rest, 0.0)
  weight = sums.add(sums.Sum(jnp.asarray(decay * regression.weight.value), rest), 1.0)

  def merge(old: jax.Array, batch: jax.Array) -> jax.Array:
    return old + (batch - old) / weight.value

  num_rows = features.shape[0]
  return Regression(
    merge(regression.features, features.T @ features / num_rows),
    merge(regression.products, targets @ features / num_rows),
    weight,
  )


def weight_posterior(
  regression: Regression,
  count: chex.Numeric,
  prior_variance: chex.Numeric,
  likelihood_variance: chex.Numeric,
) -> WeightPosterior:
  """The posterior of w in y = φᵀw + noise after `count` observations.

      Λ = I / θ + (n / β) E[φ φᵀ],    mean = Λ⁻¹ (n / β) E[y φ],    covariance = Λ⁻¹

  with θ the prior's variance, β the noise's, n the count, and E the regression's moving
  means. If these are the means over the n observations, it is the exact posterior. One
  millionth of Λ's trace is added to its diagonal, so that its Cholesky factor is finite
  in float32. Therefore no variance exceeds 10⁶ / trace(Λ), about 10⁶ β / (n E[‖φ‖²]):
  if n / β is large, this is below θ in directions without data.

  Args:
    regression: the data.
    count: n, the number of observations that it represents. `[]`.
    prior_variance: θ, positive. `[]`.
    likelihood_variance: β, positive. `[]`.

  Returns:
    The posterior.
  """
  for name, variance in (
    ("prior_variance", prior_variance),
    ("likelihood_variance", likelihood_variance),
  ):
    checks.check_positive("weight_posterior", name, variance)
  num_features = regression.products.shape[0]
  evidence = count / likelihood_variance
  identity = jnp.eye(num_features, dtype=jnp.float32)
  precision = identity / prior_variance + evidence * regression.features
  precision += _JITTER * jnp.trace(precision) * identity
  factor = jnp.linalg.cholesky(precision)
  # Λ = L Lᵀ, so that Λ⁻¹ = S Sᵀ with S = L⁻ᵀ.
  scale = jax.scipy.linalg.solve_triangular(factor, identity, lower=True).T
  mean = scale @ (scale.T @ (evidence * regression.products))
  return WeightPosterior(mean, scale)


def sample_weights(
  key: jax.Array, posterior: WeightPosterior, shape: tuple[int, ...] = ()
) -> jax.Array:
  """Draws weights, float32 `[*shape, D]`, independently."""
  noise = jax.random.normal(key, (*shape, *posterior.mean.shape), posterior.mean.dtype)
  mean = jnp.broadcast_to(posterior.mean, noise.shape)
  return mean + noise @ posterior.scale.T
