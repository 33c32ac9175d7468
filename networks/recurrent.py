"""Action-value networks over windows of steps, recurrent or feed-forward."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import dm_env
import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np

from explorax.networks import ensemble, lstm, types


class StepInputs(NamedTuple):
  """A network's inputs at step t, including the previous action and rewards.

  Feed-forward networks see x_t and the policy only; the others may then be None.

  Attributes:
    observation: `[B, T, ...]`, x_t, encoded.
    policy: int32 `[B, T]`, the index of the policy in a mixture.
    previous_action: int32 `[B, T]`, a_{t−1}; −1 at an episode's start.
    previous_reward: float32 `[B, T]`, r_t; 0 at an episode's start.
    previous_r_int: float32 `[B, T]`, r^i_{t−1}; 0 at an episode's start.
  """

  observation: Any
  policy: Any
  previous_action: Any = None
  previous_reward: Any = None
  previous_r_int: Any = None


class QNetworks(NamedTuple):
  """M action-value functions of histories, evaluated together.

  Attributes:
    init: (key) → params, the trained ones.
    init_prior: (key) → prior_params, never trained; `()` without priors.
    state_size: S, of the recurrent state; 0 for feed-forward networks.
    unroll: (params, prior_params, StepInputs `[B, T, ...]`, state `[B, S]`, key=None) →
      (outputs `[M, B, T, ...]`, such as values `[M, B, T, A]`, state `[B, S]` after the
      last step). Noise, or an epinet's indices, are drawn from the key, once for all
      steps; with None there is no noise.
  """

  init: Callable[[jax.Array], types.Params]
  init_prior: Callable[[jax.Array], types.Params]
  state_size: int
  unroll: Callable[..., tuple[jax.Array, jax.Array]]


# (inputs, state `[B, S]`) → (features `[B, T, F]`, state): in `hk.transform`.
Trunk = Callable[[StepInputs, jax.Array], tuple[jax.Array, jax.Array]]


def feed_forward(members: types.Ensemble) -> QNetworks:
  """Functions of single observations as functions of histories."""

  def unroll(
    params: types.Params,
    prior_params: types.Params,
    inputs: StepInputs,
    state: jax.Array,
    key: jax.Array | None = None,
  ) -> tuple[jax.Array, jax.Array]:
    del prior_params
    observation = inputs.observation
    outputs = members.apply(params, flatten(observation), key)
    shape = (outputs.shape[0], *observation.shape[:2], *outputs.shape[2:])
    return jnp.reshape(outputs, shape), state

  return QNetworks(members.init, lambda key: (), 0, unroll)


def make_trunk(
  make_torso: ensemble.MakeModule,
  num_actions: int,
  *,
  lstm_size: int,
  num_policies: int = 1,
  sees_r_int: bool = False,
) -> Trunk:
  """A torso and an LSTM (Kapturowski et al., 2019; Badia et al., 2020).

  The LSTM's input is the torso's output joined with a_{t−1} (one-hot), r_t and,
  optionally, r^i_{t−1} and the one-hot index of the policy. Without an LSTM the inputs
  are x_t and, if there are several, the policy.

  Args:
    make_torso: builds a module: observations `[N, ...]` → features `[N, F]`.
    num_actions: A.
    lstm_size: units; 0: no LSTM.
    num_policies: of the mixture.
    sees_r_int: whether r^i_{t−1} is an input of the LSTM.

  Raises:
    ValueError: if a size is negative, or there are no policies.
  """
  if lstm_size < 0:
    raise ValueError(f"lstm_size is {lstm_size}; it must be at least 0.")
  if num_policies < 1:
    raise ValueError(f"num_policies is {num_policies}; it must be at least 1.")

  def trunk(inputs: StepInputs, state: jax.Array) -> tuple[jax.Array, jax.Array]:
    observation = jnp.asarray(inputs.observation)
    flat = make_torso()(flatten(observation))
    features = [jnp.reshape(flat, (*observation.shape[:2], -1))]
    if lstm_size:
      features.append(
        jax.nn.one_hot(inputs.previous_action, num_actions, dtype=jnp.float32)
      )
      features.append(inputs.previous_reward[..., None])
      if sees_r_int:
        features.append(inputs.previous_r_int[..., None])
    if num_policies > 1:
      features.append(jax.nn.one_hot(inputs.policy, num_policies, dtype=jnp.float32))
    joined = jnp.concatenate(features, axis=-1)
    return lstm.LSTM(lstm_size)(joined, state) if lstm_size else (joined, state)

  return trunk


def make_q_networks(
  trunk: Trunk,
  make_head: ensemble.MakeModule,
  observation_spec: dm_env.specs.Array,
  *,
  num_members: int,
  lstm_size: int,
  shared_torso: bool = True,
) -> QNetworks:
  """Heads on a trunk.

  Args:
    trunk: from `make_trunk`.
    make_head: builds a module: features `[N, F]` → `[N, ...]`, such as a `PlainHead`.
    observation_spec: of the encoded observations.
    num_members: M heads with separate parameters.
    lstm_size: the trunk's.
    shared_torso: whether all heads are on one trunk; otherwise each member has its own
      trunk and recurrent state.
  """
  network = hk.transform(trunk)
  members = ensemble.Members(make_head, num_members)
  num_trunks = 1 if shared_torso else num_members
  width = 2 * lstm_size  # Of one trunk's state.
  inputs_example = example(observation_spec)

  def apply_trunk(
    params: types.Params, key: jax.Array | None, inputs: StepInputs, state: jax.Array
  ) -> tuple[jax.Array, jax.Array]:
    """Features `[N, F]`, or `[M, N, F]` if no trunk is shared, and the state."""
    if shared_torso:
      features, state = network.apply(params, key, inputs, state)
      return flatten(features), state
    keys = None if key is None else jax.random.split(key, num_trunks)
    states = jnp.reshape(state, (state.shape[0], num_trunks, width))
    features, states = jax.vmap(
      network.apply, (0, None if key is None else 0, None, 1), (0, 1)
    )(params, keys, inputs, states)
    return jax.vmap(flatten)(features), jnp.reshape(states, state.shape)

  def init(key: jax.Array) -> types.EnsembleParams:
    trunk_key, heads_key = jax.random.split(key)
    state = jnp.zeros((1, width), jnp.float32)
    if shared_torso:
      params = network.init(trunk_key, inputs_example, state)
    else:
      keys = jax.random.split(trunk_key, num_trunks)
      params = jax.vmap(lambda k: network.init(k, inputs_example, state))(keys)
    features, _ = apply_trunk(
      params, None, inputs_example, jnp.zeros((1, num_trunks * width), jnp.float32)
    )
    heads = members.init(heads_key, features, apart=not shared_torso)
    return types.EnsembleParams(params, heads)

  def unroll(
    params: types.EnsembleParams,
    prior_params: types.Params,
    inputs: StepInputs,
    state: jax.Array,
    key: jax.Array | None = None,
  ) -> tuple[jax.Array, jax.Array]:
    del prior_params
    trunk_key = None if key is None else jax.random.fold_in(key, ensemble.OF_TORSO)
    features, state = apply_trunk(params.torso, trunk_key, inputs, state)
    num_rows = features.shape[-2]
    if num_rows == 1:  # Faster on a CPU, as in `ensemble.lift`.
      features = jnp.concatenate([features, features], axis=-2)
    outputs = members.apply(params.heads, features, key, apart=not shared_torso)
    outputs = outputs[:, :num_rows]
    shape = (num_members, *inputs.observation.shape[:2], *outputs.shape[2:])
    return jnp.reshape(outputs, shape), state

  return QNetworks(init, lambda key: (), num_trunks * width, unroll)


def side_by_side(*parts: QNetworks) -> QNetworks:
  """The members of all parts together; no parameter or state is shared."""
  splits = np.cumsum([part.state_size for part in parts])

  def init(key: jax.Array) -> list[types.Params]:
    keys = jax.random.split(key, len(parts))
    return [part.init(key) for part, key in zip(parts, keys, strict=True)]

  def init_prior(key: jax.Array) -> list[types.Params]:
    keys = jax.random.split(key, len(parts))
    return [part.init_prior(key) for part, key in zip(parts, keys, strict=True)]

  def unroll(
    params: list[types.Params],
    prior_params: list[types.Params],
    inputs: StepInputs,
    state: jax.Array,
    key: jax.Array | None = None,
  ) -> tuple[jax.Array, jax.Array]:
    states = jnp.split(state, splits[:-1], axis=-1)
    outputs = []
    for i, part in enumerate(parts):
      part_key = None if key is None else jax.random.fold_in(key, i)
      output, states[i] = part.unroll(
        params[i], prior_params[i], inputs, states[i], part_key
      )
      outputs.append(output)
    return jnp.concatenate(outputs), jnp.concatenate(states, axis=-1)

  return QNetworks(init, init_prior, int(splits[-1]), unroll)


def flatten(x: jax.Array) -> jax.Array:
  """`[B, T, ...]` → `[B · T, ...]`."""
  return jnp.reshape(x, (math.prod(x.shape[:2]), *x.shape[2:]))


def example(spec: dm_env.specs.Array) -> StepInputs:
  """One step of one window, for the shapes of the parameters."""
  zero = np.zeros((1, 1), np.float32)
  index = np.zeros((1, 1), np.int32)
  observation = np.zeros((1, 1, *spec.shape), spec.dtype)
  return StepInputs(observation, index, index, zero, zero)
