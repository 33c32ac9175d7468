"""Running means and deviations that normalise a novelty signal (RND's error).

`update_moments` weights all values equally (the running mean and deviation of Never
Give Up and of RND in papers 1 and 2); `update_ema_moments` decays them (RND on bsuite
in "Temporal Difference Uncertainties", Flennerhag et al., 2020, appendix D.1, with
decays of 0.9, 0.99 and 0.999). Both start from `init_moments`, and `normalise` uses
them.
"""

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

from explorax.exploration import sums
from explorax.losses import checks


class Moments(NamedTuple):
  """A mean and a variance, and their total weight.

  Attributes:
    mean: float32 `[]`.
    variance: float32 `[]`, the population's (not the sample's).
    weight: float32 `[]`: the number of values, or the decayed number of batches; 0
      before the first.
    rest: float32 `[]`, what rounding took away from a number of values; see `sums`.
  """

  mean: jax.Array
  variance: jax.Array
  weight: jax.Array
  rest: jax.Array


def init_moments() -> Moments:
  """Moments without data."""
  return Moments(*(jnp.zeros((), jnp.float32) for _ in range(4)))


def _merge(
  moments: Moments,
  values: jax.Array,
  kept: sums.Sum,
  added: chex.Numeric,
  mask: jax.Array | None,
) -> Moments:
  """The moments of the mixture of the earlier data (weight `kept`) and `values`.

  They do not change if no value counts.
  """
  where = None if mask is None else mask > 0
  values = jnp.asarray(jax.lax.stop_gradient(values), jnp.float32)
  weight = sums.add(kept, added)
  share = added / weight.value
  batch_mean = jnp.mean(values, where=where)
  shift = batch_mean - moments.mean
  batch_variance = jnp.var(values, where=where)
  # The joint deviation: the deviations from both means, plus a term for their gap.
  gap = share * (1.0 - share) * jnp.square(shift)
  variance = (1.0 - share) * moments.variance + share * batch_variance + gap
  merged = Moments(moments.mean + share * shift, jnp.asarray(variance), *weight)
  if where is None:
    return merged
  some = jnp.any(where)
  return jax.tree.map(lambda new, old: jnp.where(some, new, old), merged, moments)


@checks.arguments(values="float [...]", mask="mask [...]")
def update_moments(
  moments: Moments, values: jax.Array, mask: jax.Array | None = None
) -> Moments:
  """Adds a batch to the moments of all values since the start.

  Args:
    moments: of the earlier values.
    values: float, of any shape, not empty.
    mask: as in `update_ema_moments`.

  Returns:
    The moments including `values`.

  Raises:
    ValueError: if `values` is empty.
  """
  added = float(jnp.size(values)) if mask is None else jnp.sum(mask > 0)
  return _merge(moments, values, sums.Sum(*moments[2:]), added, mask)


@checks.arguments(values="float [...]", decay="number []", mask="mask [...]")
def update_ema_moments(
  moments: Moments,
  values: jax.Array,
  decay: chex.Numeric,
  mask: jax.Array | None = None,
) -> Moments:
  """Adds a batch; a batch from t updates ago has the weight `decay`ᵗ.

  The weights are divided by their sum, so that the first moments are not biased
  towards 0, but are the first batch's.

  Args:
    moments: of the earlier batches.
    values: float, of any shape, not empty: one batch.
    decay: scalar in [0, 1], per update; 0 keeps only the last batch.
    mask: of the shape of `values`; values with mask 0 (padding) do not count. By
      default all count; if none counts, the moments do not change.

  Returns:
    The moments including `values`.

  Raises:
    ValueError: if `values` is empty.
  """
  checks.check_in_range("update_ema_moments", "decay", decay, 0, 1)
  # A decayed weight stays small; without decay it is a count.
  rest = jnp.where(jnp.asarray(decay) == 1.0, moments.rest, 0.0)
  kept = sums.Sum(jnp.asarray(decay * moments.weight), rest)
  return _merge(moments, values, kept, 1.0, mask)


def over_deviation(moments: Moments, values: jax.Array, power: int = 1) -> jax.Array:
  """`values / std^power`; 0 where all values so far are equal, as a single one is.

  Args:
    moments: of the values, these ones included.
    values: float, of any shape.
    power: 1, or 2 for the variance.

  Returns:
    float, of the shape of `values`.
  """
  deviation = jnp.sqrt(moments.variance)
  differ = deviation > 1e-4 * jnp.abs(moments.mean)
  return jnp.where(differ, values / jnp.where(differ, deviation, 1.0) ** power, 0.0)


@checks.arguments(values="float [...]")
def normalise(
  moments: Moments, values: jax.Array, *, centre: bool = True, min_std: float = 1e-8
) -> jax.Array:
  """`(values − mean) / std`, or `values / std` where `centre` is False.

  Args:
    moments: of either update.
    values: float, of any shape.
    centre: whether to subtract the mean. Never Give Up's α is 1 plus the centred
      value; dividing only, as in the original RND, keeps a bonus positive.
    min_std: a lower bound of the deviation, so that the result is never NaN. Centred
      values are 0 where all so far have been equal, up to rounding.

  Returns:
    float, of the shape of `values`, without a gradient through the moments.
  """
  checks.check_positive("normalise", "min_std", min_std)
  mean, variance, *_ = jax.lax.stop_gradient(moments)
  deviation = jnp.sqrt(variance)
  if centre:  # The mean of equal values differs from them by rounding.
    values = jnp.where(deviation > 1e-6 * jnp.abs(mean), values - mean, 0.0)
  return values / jnp.maximum(deviation, min_std)
