"""Fixed random functions added to the members of an ensemble.

Source: Osband et al. (2018), "Randomized Prior Functions"; λ in section 4 of the TDU
paper (Flennerhag et al., 2020).
"""

import math
from typing import Any

import jax
import jax.numpy as jnp

from explorax.networks import recurrent, types


def with_prior(
  networks: types.Ensemble, scale: float, prior: types.Ensemble | None = None
) -> types.PriorEnsemble:
  """Adds a fixed random function to each member: Q_k = Q_θk + scale · P_k.

  No gradient reaches the priors' parameters, and priors have no noise. With a scale of
  0 there are no priors: they have no parameters and are not evaluated.

  Args:
    networks: the trained functions.
    scale: λ.
    prior: the architecture of the priors, with the same K and A; by default that of
      `networks`. For one-hot indices, `frozen.freeze` makes an equal but cheaper one.

  Raises:
    ValueError: if the scale is negative or not finite.
  """
  check_scale(scale)
  if scale == 0:
    return types.PriorEnsemble(
      init=networks.init,
      init_prior=lambda key: (),
      apply=lambda params, prior_params, x, key=None: networks.apply(params, x, key),
    )
  fixed = networks if prior is None else prior

  def apply(
    params: types.Params,
    prior_params: types.Params,
    observation: jax.Array,
    key: jax.Array | None = None,
  ) -> jax.Array:
    prior_q = fixed.apply(prior_params, observation, None)
    return _add(networks.apply(params, observation, key), scale, prior_q)

  return types.PriorEnsemble(networks.init, fixed.init, apply)


def with_sequence_prior(
  networks: recurrent.SequenceQNetworks,
  scale: float,
  prior: recurrent.SequenceQNetworks,
) -> recurrent.SequenceQNetworks:
  """The same for functions of histories.

  The priors have a separate recurrent state, which is appended to that of the trained
  network. For R2D2, Flennerhag et al. (2020), appendix E.1, use priors of the same
  architecture with reduced widths.

  Args:
    networks: the trained functions, without priors.
    scale: λ; with 0, `networks` is returned unchanged.
    prior: the priors' architecture, with the same M and A.

  Raises:
    ValueError: if the scale is negative or not finite.
  """
  check_scale(scale)
  if scale == 0:
    return networks

  def unroll(
    params: types.Params,
    prior_params: types.Params,
    inputs: recurrent.StepInputs,
    state: Any,
  ) -> tuple[jax.Array, jax.Array]:
    trained, priors = jnp.split(state, [networks.state_size], axis=-1)
    q, trained = networks.unroll(params, (), inputs, trained)
    prior_q, priors = prior.unroll(prior_params, (), inputs, priors)
    return _add(q, scale, prior_q), jnp.concatenate([trained, priors], axis=-1)

  return recurrent.SequenceQNetworks(
    networks.init, prior.init, networks.state_size + prior.state_size, unroll
  )


def _add(q: jax.Array, scale: float, prior_q: jax.Array) -> jax.Array:
  return q + scale * jax.lax.stop_gradient(prior_q)


def check_scale(scale: float) -> None:
  """Refuses a scale of priors that is negative or not finite."""
  if not 0 <= scale < math.inf:
    raise ValueError(
      f"the scale of the priors is {scale}; it must be finite and not negative (0: no "
      "priors)."
    )
