"""Fixed random functions added to the members of an ensemble.

Source: Osband et al. (2018), "Randomized Prior Functions"; λ in section 4 of the TDU
paper (Flennerhag et al., 2020).
"""

import math

import jax
import jax.numpy as jnp

from explorax.networks import recurrent, types


def with_prior(
  networks: recurrent.QNetworks, scale: float, prior: recurrent.QNetworks
) -> recurrent.QNetworks:
  """Adds a fixed random function to each member: Q_k = Q_θk + scale · P_k.

  No gradient reaches the priors' parameters, and priors have no noise. They have their
  own recurrent state, appended to the trained networks' state. For R2D2,
  Flennerhag et al. (2020), appendix E.1, use priors of the same architecture with
  reduced widths.

  Args:
    networks: the trained functions, without priors.
    scale: λ; with 0, `networks` is returned unchanged.
    prior: the priors' architecture, with the same M and A. Of single one-hot indices,
      `frozen.freeze` makes an equal but cheaper one.

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
    state: jax.Array,
    key: jax.Array | None = None,
  ) -> tuple[jax.Array, jax.Array]:
    trained_state, fixed_state = jnp.split(state, [networks.state_size], axis=-1)
    q, trained_state = networks.unroll(params, (), inputs, trained_state, key)
    prior_q, fixed_state = prior.unroll(prior_params, (), inputs, fixed_state)
    q += scale * jax.lax.stop_gradient(prior_q)
    return q, jnp.concatenate([trained_state, fixed_state], axis=-1)

  return recurrent.QNetworks(
    networks.init, prior.init, networks.state_size + prior.state_size, unroll
  )


def check_scale(scale: float) -> None:
  """Refuses a scale of priors that is negative or not finite."""
  if not 0 <= scale < math.inf:
    raise ValueError(
      f"the scale of the priors is {scale}; it must be finite and not negative (0: no "
      "priors)."
    )
