"""Any network lifted to an ensemble, with or without a shared torso and priors.

What fits every architecture is here; `ensemble_mlp` is the same thing done faster for
perceptrons.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import dm_env
import haiku as hk
import jax
import numpy as np

from explorax.networks import types

# Builds a Haiku module (or any function that uses modules): arrays in, an array out.
MakeModule = Callable[[], Callable[[Any], Any]]


class SharedTorsoParams(NamedTuple):
  """Parameters of an ensemble of heads on one torso.

  Attributes:
    torso: the torso's.
    heads: the heads', every leaf with the members leading, `[K, ...]`.
  """

  torso: types.Params
  heads: types.Params


def from_haiku(
  make_module: MakeModule, observation_spec: dm_env.specs.Array
) -> types.Network:
  """A single network out of a Haiku module.

  Args:
    make_module: builds the module, which maps encoded observations `[B, ...]` to
      `[B, F]` (`inputs.make_inputs(spec).dense` turns any of them into vectors).
    observation_spec: of the encoded observations.
  """
  network = _transform(make_module)
  batch = example(observation_spec)
  return types.Network(init=lambda key: network.init(key, batch), apply=network.apply)


def lift(network: types.Network, num_members: int) -> types.QNetworks:
  """K members that share nothing, each a copy of `network` with its own parameters.

  Args:
    network: of one member: (params, `[B, ...]`) → q `[B, A]`.
    num_members: K.

  Returns:
    Networks whose parameters are the member's with a leading axis, `[K, ...]`.

  Raises:
    ValueError: if K is less than 1.
  """
  _check_num_members(num_members)
  return types.QNetworks(
    init=lambda key: jax.vmap(network.init)(jax.random.split(key, num_members)),
    apply=jax.vmap(network.apply, in_axes=(0, None)),
  )


def with_shared_torso(
  make_torso: MakeModule,
  make_head: MakeModule,
  observation_spec: dm_env.specs.Array,
  num_members: int,
) -> types.QNetworks:
  """K heads on one torso (Bootstrapped DQN; the UCB ensembles of Chen et al., 2017).

  The torso's gradient is the sum of all heads'; whoever wants their mean, as Osband
  et al. (2016) do, divides by K.

  Args:
    make_torso: builds a module: observations `[B, ...]` → features.
    make_head: builds a module: features → q `[B, A]`.
    observation_spec: of the encoded observations.
    num_members: K.

  Returns:
    Networks whose parameters are a `SharedTorsoParams`.

  Raises:
    ValueError: if K is less than 1.
  """
  _check_num_members(num_members)
  torso, head = _transform(make_torso), _transform(make_head)
  batch = example(observation_spec)

  def init(key: jax.Array) -> SharedTorsoParams:
    torso_key, heads_key = jax.random.split(key)
    torso_params = torso.init(torso_key, batch)
    features = torso.apply(torso_params, batch)
    heads_params = jax.vmap(head.init, in_axes=(0, None))(
      jax.random.split(heads_key, num_members), features
    )
    return SharedTorsoParams(torso_params, heads_params)

  def apply(params: SharedTorsoParams, observation: jax.Array) -> jax.Array:
    features = torso.apply(params.torso, observation)
    return jax.vmap(head.apply, in_axes=(0, None))(params.heads, features)

  return types.QNetworks(init, apply)


def with_prior(
  networks: types.QNetworks, scale: float, prior: types.QNetworks | None = None
) -> types.PriorQNetworks:
  """Adds a fixed random function to each member: Q_k = Q_θk + scale · P_k.

  No gradient reaches the priors' parameters. A scale of 0 means no priors: they
  have no parameters then, and are not evaluated.

  Source: Osband et al. (2018), "Randomized Prior Functions"; λ in section 4 of the
  paper of TDU.

  Args:
    networks: the trained functions.
    scale: λ.
    prior: the architecture of the priors, with the same K and A; by default that of
      `networks`. Where observations are one-hot indices, `frozen.freeze` makes an
      equal one that is cheaper to evaluate.

  Raises:
    ValueError: if the scale is negative or not finite.
  """
  if not (math.isfinite(scale) and scale >= 0):
    raise ValueError(
      f"the scale of the priors is {scale}; it must be finite and not negative (0: "
      "no priors)."
    )
  if scale == 0:
    return types.PriorQNetworks(
      init=networks.init,
      init_prior=lambda key: (),
      apply=lambda params, prior_params, x: networks.apply(params, x),
    )
  fixed = networks if prior is None else prior

  def apply(
    params: types.Params, prior_params: types.Params, observation: jax.Array
  ) -> jax.Array:
    prior_q = jax.lax.stop_gradient(fixed.apply(prior_params, observation))
    return networks.apply(params, observation) + scale * prior_q

  return types.PriorQNetworks(networks.init, fixed.init, apply)


def _transform(make_module: MakeModule) -> hk.Transformed:
  return hk.without_apply_rng(hk.transform(lambda x: make_module()(x)))


def example(spec: dm_env.specs.Array) -> np.ndarray:
  """A batch of one observation, for the shapes of the parameters."""
  return np.zeros((1, *spec.shape), spec.dtype)


def _check_num_members(num_members: int) -> None:
  if num_members < 1:
    raise ValueError(f"num_members is {num_members}; an ensemble needs at least 1.")
