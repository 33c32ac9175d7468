"""Running means and deviations that bring a novelty signal (RND's error) to scale.

Two ways to forget: `update_moments` never does (Never Give Up's life-long novelty);
`update_ema_moments` decays (RND on bsuite in "Temporal Difference Uncertainties",
Flennerhag et al., 2020, appendix D.1, with decays of 0.9, 0.99 and 0.999). Both
start from `init_moments` and are read by `normalise`.
"""

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

from explorax.losses import checks


class Moments(NamedTuple):
  """A mean and a variance, and how much they rest on.

  Attributes:
    mean: float32 `[]`.
    variance: float32 `[]`, the population's (not the sample's).
    weight: float32 `[]`: the number of values seen, or the decayed number of
      batches; 0 before the first.
  """

  mean: jax.Array
  variance: jax.Array
  weight: jax.Array


def init_moments() -> Moments:
  """Nothing seen yet."""
  return Moments(*(jnp.zeros((), jnp.float32) for _ in range(3)))


def _merge(
  moments: Moments,
  values: jax.Array,
  kept: chex.Numeric,
  added: chex.Numeric,
  where: jax.Array | None = None,
) -> Moments:
  """The moments of the mixture of what was seen (weight `kept`) and `values`."""
  values = jnp.asarray(jax.lax.stop_gradient(values), jnp.float32)
  weight = jnp.asarray(kept + added, jnp.float32)
  share = added / weight
  batch_mean = jnp.mean(values, where=where)
  shift = batch_mean - moments.mean
  batch_variance = jnp.var(values, where=where)
  # Deviations from two means are deviations from the joint one and a term for the gap.
  gap = share * (1.0 - share) * jnp.square(shift)
  variance = (1.0 - share) * moments.variance + share * batch_variance + gap
  return Moments(moments.mean + share * shift, jnp.asarray(variance), weight)


def update_moments(moments: Moments, values: jax.Array) -> Moments:
  """Takes in a batch: the moments of all values seen since the start.

  Args:
    moments: of what was seen so far.
    values: float, of any shape, not empty.

  Returns:
    The moments with `values` taken in.

  Raises:
    ValueError: if `values` is empty.
  """
  checks.check("update_moments", values=(values, "float [...]"))
  return _merge(moments, values, moments.weight, float(jnp.size(values)))


def update_ema_moments(
  moments: Moments,
  values: jax.Array,
  decay: chex.Numeric,
  mask: jax.Array | None = None,
) -> Moments:
  """Takes in a batch: a batch seen t updates ago weighs `decay`ᵗ.

  The weights are divided by their sum, so that the first batches are not drawn
  towards 0: the first one's moments are taken as they are.

  Args:
    moments: of what was seen so far.
    values: float, of any shape, not empty: one batch.
    decay: scalar in [0, 1], per update; 0 remembers the last batch only.
    mask: of the shape of `values`; those where it is 0 (padding) do not count. All
      count unless it is given; where none does, the moments stay as they were.

  Returns:
    The moments with `values` taken in.

  Raises:
    ValueError: if `values` is empty.
  """
  checks.check(
    "update_ema_moments",
    values=(values, "float [...]"),
    decay=(decay, "number []"),
    **({} if mask is None else {"mask": (mask, "mask [...]")}),
  )
  checks.check_in_range("update_ema_moments", "decay", decay, 0, 1)
  kept = decay * moments.weight
  if mask is None:
    return _merge(moments, values, kept, 1.0)
  merged = _merge(moments, values, kept, 1.0, mask > 0)
  some = jnp.any(mask > 0)
  return jax.tree.map(lambda new, old: jnp.where(some, new, old), merged, moments)


def normalise(
  moments: Moments,
  values: jax.Array,
  *,
  centre: bool = True,
  min_std: float = 1e-8,
) -> jax.Array:
  """`(values − mean) / std`, or `values / std` where `centre` is False.

  Args:
    moments: from the updates above.
    values: float, of any shape.
    centre: whether the mean is subtracted. Never Give Up's α is 1 plus the centred
      value; dividing only, as the original RND does, keeps a bonus positive.
    min_std: the deviation is taken to be at least that, so that constant values
      give 0 (centred), never NaN.

  Returns:
    float, of the shape of `values`, without a gradient through the moments.
  """
  checks.check("normalise", values=(values, "float [...]"))
  checks.check_positive("normalise", "min_std", min_std)
  mean, variance, _ = jax.lax.stop_gradient(moments)
  std = jnp.maximum(jnp.sqrt(variance), min_std)
  return (values - mean if centre else values) / std
