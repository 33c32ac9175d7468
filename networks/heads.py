"""K heads on torsos, shared or not, whose layers may be noisy."""

from collections.abc import Callable
from typing import Any, NamedTuple

import dm_env
import haiku as hk
import jax
import jax.numpy as jnp

from explorax.networks import ensemble, types

# Weights `[F, K, H]`, so that what comes first in all members is one matrix product,
# `[B, F]` by `[F, K · H]`; with leading members each product would transpose them all.
_MEMBERS = -2
# Folded into a key: beyond all that splitting it for K heads counts.
_OF_TORSO = 1 << 30


class HeadParams(NamedTuple):
  """Parameters of heads on one torso.

  Attributes:
    torso: the torso's, which all members share.
    heads: the heads', with the members as the last axis but one of every array.
  """

  torso: types.Params
  heads: types.Params


class HeadNetworks(NamedTuple):
  """K functions of observations, evaluated together, with noise if asked for.

  Attributes:
    init: (key) → params of all members, each initialised independently; the members
      are the last axis but one of every array that they do not share.
    apply: (params, observation `[B, ...]`, key) → `[K, B, ...]`, members leading. A
      member draws its noise once for the batch, and so does a shared torso for all of
      them; with None for a key there is none.
  """

  init: Callable[[jax.Array], types.Params]
  apply: Callable[[types.Params, jax.Array, jax.Array | None], jax.Array]


def make_head_networks(
  make_torso: ensemble.MakeModule,
  make_head: ensemble.MakeModule,
  observation_spec: dm_env.specs.Array,
  num_members: int,
  shared_torso: bool,
) -> HeadNetworks:
  """Lifts a torso and a head to K members.

  Unlike `ensemble.lift` and `with_shared_torso`, the torso and the head may draw random
  numbers, and the head may end in more than one number per action.

  Args:
    make_torso: builds a module: observations `[B, ...]` → features.
    make_head: builds a module: features → `[B, ...]`.
    observation_spec: of the encoded observations.
    num_members: K.
    shared_torso: whether all members have one torso (and its parameters are shared).

  Raises:
    ValueError: if K is less than 1.
  """
  if num_members < 1:
    raise ValueError(f"num_members is {num_members}; an ensemble needs at least 1.")
  if shared_torso:
    return _on_shared_torso(make_torso, make_head, observation_spec, num_members)
  member = hk.transform(lambda x: make_head()(make_torso()(x)))
  example = ensemble.example(observation_spec)

  def init(key: jax.Array) -> types.Params:
    return init_members(member, key, num_members, example)

  def apply(
    params: types.Params, observation: jax.Array, key: jax.Array | None
  ) -> jax.Array:
    return apply_members(member, params, observation, key, num_members)

  return HeadNetworks(init, apply)


def _on_shared_torso(
  make_torso: ensemble.MakeModule,
  make_head: ensemble.MakeModule,
  observation_spec: dm_env.specs.Array,
  num_members: int,
) -> HeadNetworks:
  torso = hk.transform(lambda x: make_torso()(x))
  head = hk.transform(lambda x: make_head()(x))
  example = ensemble.example(observation_spec)

  def init(key: jax.Array) -> HeadParams:
    torso_key, heads_key = jax.random.split(key)
    torso_params = torso.init(torso_key, example)
    features = torso.apply(torso_params, None, example)
    heads = init_members(head, heads_key, num_members, features)
    return HeadParams(torso_params, heads)

  def apply(
    params: HeadParams, observation: jax.Array, key: jax.Array | None
  ) -> jax.Array:
    torso_key = None if key is None else jax.random.fold_in(key, _OF_TORSO)
    features = torso.apply(params.torso, torso_key, observation)
    return apply_members(head, params.heads, features, key, num_members)

  return HeadNetworks(init, apply)


def init_members(
  network: hk.Transformed, key: jax.Array, num_members: int, inputs: Any
) -> types.Params:
  """Independent parameters, the members being the last axis but one of every array."""
  keys = jax.random.split(key, num_members)
  return jax.vmap(network.init, (0, None), _MEMBERS)(keys, inputs)


def apply_members(
  network: hk.Transformed,
  params: types.Params,
  inputs: jax.Array,
  key: jax.Array | None,
  num_members: int,
) -> jax.Array:
  """Inputs `[B, ...]` → outputs `[K, B, ...]`; the key: see `HeadNetworks`."""
  num_rows = inputs.shape[0]
  if num_rows == 1:
    # On a CPU the product with a single row is a plain loop over the weights, which
    # takes ten times as long as that with two.
    inputs = jnp.concatenate([inputs, inputs])
  if key is None:
    outputs = jax.vmap(network.apply, (_MEMBERS, None, None))(params, None, inputs)
  else:
    keys = jax.random.split(key, num_members)
    outputs = jax.vmap(network.apply, (_MEMBERS, 0, None))(params, keys, inputs)
  return outputs[:, :num_rows]
