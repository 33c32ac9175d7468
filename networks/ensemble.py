"""Lifts any network to an ensemble of K members, with or without a shared torso.

There is one layout of parameters (`types.EnsembleParams`): a member's own arrays have a
leading axis `[K, ...]`. `perceptrons` initialises them differently; `priors` adds fixed
random functions.
"""

from collections.abc import Callable
from typing import Any

import dm_env
import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np

from explorax.networks import types

# Builds a Haiku module (or any function that uses modules): arrays in, an array out.
MakeModule = Callable[[], Callable[[Any], Any]]

# Folded into a key; larger than any index in a split for K heads.
OF_TORSO = 1 << 30


def from_haiku(
  make_module: MakeModule, observation_spec: dm_env.specs.Array
) -> types.Network:
  """A single network from a Haiku module.

  Args:
    make_module: builds the module, which maps encoded observations `[B, ...]` to
      `[B, F]` (`inputs.make_inputs(spec).dense` turns any of them into vectors).
    observation_spec: of the encoded observations.
  """
  network: hk.Transformed = hk.without_apply_rng(
    hk.transform(lambda x: make_module()(x))
  )
  batch = example(observation_spec)
  return types.Network(init=lambda key: network.init(key, batch), apply=network.apply)


class Members:
  """K copies of a module with separate parameters and noise."""

  def __init__(self, make_module: MakeModule, num_members: int):
    """Lifts a module.

    Args:
      make_module: builds the module; it may draw random numbers.
      num_members: K.

    Raises:
      ValueError: if K is less than 1.
    """
    if num_members < 1:
      raise ValueError(f"num_members is {num_members}; an ensemble needs at least 1.")
    self._num_members = num_members
    self._network = hk.transform(lambda x: make_module()(x))

  def init(self, key: jax.Array, x: Any, *, apart: bool = False) -> types.Params:
    """Independent parameters, `[K, ...]`, for inputs like x; see `apply`."""
    keys = jax.random.split(key, self._num_members)
    return jax.vmap(self._network.init, (0, 0 if apart else None))(keys, x)

  def apply(
    self, params: types.Params, x: Any, key: jax.Array | None, *, apart: bool = False
  ) -> jax.Array:
    """Evaluates all members.

    Args:
      params: `[K, ...]`.
      x: `[B, ...]`, the input of all members; or `[K, B, ...]`, one input per member.
      key: members draw their noise from it, once for the batch; None: without noise.
      apart: whether each member has its own input.

    Returns:
      `[K, B, ...]`.
    """
    if not apart and (x.ndim == 2 or not jax.tree.leaves(params)):
      # Repeated vectors make the products with the members' weights a batch; a product
      # of one matrix with all weights would transpose them first.
      x, apart = jnp.broadcast_to(x[None], (self._num_members, *x.shape)), True
    x_axis = 0 if apart else None
    if key is None:
      return jax.vmap(self._network.apply, (0, None, x_axis))(params, None, x)
    keys = jax.random.split(key, self._num_members)
    return jax.vmap(self._network.apply, (0, 0, x_axis))(params, keys, x)


def lift(
  make_torso: MakeModule,
  make_head: MakeModule,
  observation_spec: dm_env.specs.Array,
  num_members: int,
  shared_torso: bool,
) -> types.Ensemble:
  """K networks, each a head on its own torso or on a shared one.

  Bootstrapped DQN and the UCB ensembles of Chen et al. (2017) have heads on one torso.
  The torso's gradient is the sum of all heads'; a learner that needs their mean divides
  it by K (`agents.updates.with_torso_divided`).

  Args:
    make_torso: builds a module: observations `[B, ...]` → features `[B, F]`.
    make_head: builds a module: features → `[B, ...]`.
    observation_spec: of the encoded observations.
    num_members: K.
    shared_torso: whether all members share a torso.

  Raises:
    ValueError: if K is less than 1.
  """
  heads = Members(make_head, num_members)
  batch = example(observation_spec)
  if shared_torso:
    torso = hk.transform(lambda x: make_torso()(x))
    init_torso, apply_torso = torso.init, torso.apply
  else:
    torsos = Members(make_torso, num_members)
    init_torso = torsos.init

    def apply_torso(params: Any, key: jax.Array | None, x: jax.Array) -> jax.Array:
      return torsos.apply(params, x, key)

  def init(key: jax.Array) -> types.EnsembleParams:
    torso_key, heads_key = jax.random.split(key)
    torso_params = init_torso(torso_key, batch)
    features = apply_torso(torso_params, None, batch)
    heads_params = heads.init(heads_key, features, apart=not shared_torso)
    return types.EnsembleParams(torso_params, heads_params)

  def apply(
    params: types.EnsembleParams, observation: jax.Array, key: jax.Array | None = None
  ) -> jax.Array:
    num_rows = observation.shape[0]
    if num_rows == 1:
      # On a CPU, the product with a single row is a plain loop over the weights, ten
      # times slower than with two rows.
      observation = jnp.concatenate([observation, observation])
    torso_key = None if key is None else jax.random.fold_in(key, OF_TORSO)
    features = apply_torso(params.torso, torso_key, observation)
    return heads.apply(params.heads, features, key, apart=not shared_torso)[
      :, :num_rows
    ]

  return types.Ensemble(init, apply)


def example(spec: dm_env.specs.Array) -> np.ndarray:
  """A batch of one observation, for the shapes of the parameters."""
  return np.zeros((1, *spec.shape), spec.dtype)
