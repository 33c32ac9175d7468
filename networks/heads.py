"""K heads on torsos, shared or not, whose layers may be noisy."""

from collections.abc import Callable
from typing import NamedTuple

import dm_env
import haiku as hk
import jax

from explorax.networks import ensemble, types


class HeadNetworks(NamedTuple):
  """K functions of observations, evaluated together, with noise if asked for.

  Attributes:
    init: (key) → params of all members, each initialised independently.
    apply: (params, observation `[B, ...]`, key) → `[K, B, ...]`, members leading. A
      member draws its noise once for the batch; with None for a key there is none.
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

  Unlike `ensemble.lift` and `with_shared_torso`, the head may draw random numbers,
  and may end in more than one number per action.

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
    keys = jax.random.split(key, num_members)
    return jax.vmap(member.init, in_axes=(0, None))(keys, example)

  def apply(
    params: types.Params, observation: jax.Array, key: jax.Array | None
  ) -> jax.Array:
    return _over_members(member, num_members)(params, key, observation)

  return HeadNetworks(init, apply)


def _on_shared_torso(
  make_torso: ensemble.MakeModule,
  make_head: ensemble.MakeModule,
  observation_spec: dm_env.specs.Array,
  num_members: int,
) -> HeadNetworks:
  torso = hk.without_apply_rng(hk.transform(lambda x: make_torso()(x)))
  head = hk.transform(lambda x: make_head()(x))
  example = ensemble.example(observation_spec)

  def init(key: jax.Array) -> ensemble.SharedTorsoParams:
    torso_key, heads_key = jax.random.split(key)
    torso_params = torso.init(torso_key, example)
    features = torso.apply(torso_params, example)
    keys = jax.random.split(heads_key, num_members)
    heads = jax.vmap(head.init, in_axes=(0, None))(keys, features)
    return ensemble.SharedTorsoParams(torso_params, heads)

  def apply(
    params: ensemble.SharedTorsoParams, observation: jax.Array, key: jax.Array | None
  ) -> jax.Array:
    features = torso.apply(params.torso, observation)
    return _over_members(head, num_members)(params.heads, key, features)

  return HeadNetworks(init, apply)


def _over_members(
  network: hk.Transformed, num_members: int
) -> Callable[[types.Params, jax.Array | None, jax.Array], jax.Array]:
  """(params `[K, ...]`, key or None, inputs `[B, ...]`) → outputs `[K, B, ...]`."""

  def apply(
    params: types.Params, key: jax.Array | None, inputs: jax.Array
  ) -> jax.Array:
    if key is None:
      return jax.vmap(network.apply, in_axes=(0, None, None))(params, None, inputs)
    keys = jax.random.split(key, num_members)
    return jax.vmap(network.apply, in_axes=(0, 0, None))(params, keys, inputs)

  return apply
