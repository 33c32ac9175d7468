"""Action-value networks over windows of steps: R2D2's, or a feed-forward network."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import dm_env
import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np

from explorax.networks import ensemble, heads, lstm, types


class StepInputs(NamedTuple):
  """A network's inputs at step t, including the previous action and rewards.

  Attributes:
    observation: `[B, T, ...]`, x_t, encoded.
    previous_action: int32 `[B, T]`, a_{t−1}; −1 at an episode's start.
    previous_reward: float32 `[B, T]`, r_t; 0 at an episode's start.
    previous_r_int: float32 `[B, T]`, r^i_{t−1}; 0 at an episode's start.
    policy: int32 `[B, T]`, the index of the policy in a mixture.
  """

  observation: Any
  previous_action: Any
  previous_reward: Any
  previous_r_int: Any
  policy: Any


class SequenceQNetworks(NamedTuple):
  """M action-value functions of histories, evaluated together.

  Attributes:
    init: (key) → params, the trained ones.
    init_prior: (key) → prior_params, never trained; `()` without priors.
    state_size: S, of the recurrent state; 0 for a feed-forward network.
    unroll: (params, prior_params, StepInputs `[B, T, ...]`, state `[B, S]`) →
      (q `[M, B, T, A]`, state `[B, S]` after the last step).
  """

  init: Callable[[jax.Array], types.Params]
  init_prior: Callable[[jax.Array], types.Params]
  state_size: int
  unroll: Callable[
    [types.Params, types.Params, StepInputs, jax.Array], tuple[jax.Array, jax.Array]
  ]


def make_sequence_q_networks(
  make_torso: ensemble.MakeModule,
  observation_spec: dm_env.specs.Array,
  num_actions: int,
  *,
  num_members: int = 1,
  lstm_size: int = 512,
  head_size: int = 512,
  num_policies: int = 1,
  sees_r_int: bool = False,
) -> SequenceQNetworks:
  """Heads on one torso and one LSTM (Kapturowski et al., 2019; Badia et al., 2020).

  The LSTM's input is the torso's output joined with a_{t−1} (one-hot), r_t and,
  optionally, r^i_{t−1} and the one-hot index of the policy. Without an LSTM the network
  is feed-forward: its inputs are x_t and, if there are several, the policy.

  Args:
    make_torso: builds a module: observations `[N, ...]` → features `[N, F]`.
    observation_spec: of the encoded observations.
    num_actions: A.
    num_members: M heads with separate parameters.
    lstm_size: units; 0: no LSTM.
    head_size: hidden units of the duelling heads; 0: linear heads without duelling.
    num_policies: of the mixture.
    sees_r_int: whether r^i_{t−1} is an input.

  Raises:
    ValueError: if a size is negative, or there are no members or policies.
  """
  for name, value, least in (
    ("lstm_size", lstm_size, 0),
    ("head_size", head_size, 0),
    ("num_policies", num_policies, 1),
  ):
    if value < least:
      raise ValueError(f"{name} is {value}; it must be at least {least}.")

  def make_trunk(inputs: StepInputs, state: jax.Array) -> tuple[jax.Array, jax.Array]:
    size = inputs.previous_action.shape
    observation = jnp.asarray(inputs.observation)
    flat = jnp.reshape(observation, (math.prod(size), *observation.shape[2:]))
    features = [jnp.reshape(make_torso()(flat), (*size, -1))]
    if lstm_size:
      features.append(jax.nn.one_hot(inputs.previous_action, num_actions))
      features.append(inputs.previous_reward[..., None])
      if sees_r_int:
        features.append(inputs.previous_r_int[..., None])
    if num_policies > 1:
      features.append(jax.nn.one_hot(inputs.policy, num_policies))
    joined = jnp.concatenate(features, axis=-1)
    if not lstm_size:
      return joined, state
    return lstm.LSTM(lstm_size)(joined, state)

  trunk: hk.Transformed = hk.without_apply_rng(hk.transform(make_trunk))
  members = ensemble.Members(
    lambda: heads.make_head(num_actions, head_size), num_members
  )
  state_size = 2 * lstm_size
  example = _example(observation_spec)

  def init(key: jax.Array) -> types.EnsembleParams:
    trunk_key, heads_key = jax.random.split(key)
    state = jnp.zeros((1, state_size))
    trunk_params = trunk.init(trunk_key, example, state)
    features, _ = trunk.apply(trunk_params, example, state)
    flat = jnp.reshape(features, (-1, features.shape[-1]))
    return types.EnsembleParams(trunk_params, members.init(heads_key, flat))

  def unroll(
    params: types.EnsembleParams,
    prior_params: types.Params,
    inputs: StepInputs,
    state: jax.Array,
  ) -> tuple[jax.Array, jax.Array]:
    del prior_params
    features, state = trunk.apply(params.torso, inputs, state)
    flat = jnp.reshape(features, (-1, features.shape[-1]))
    num_rows = flat.shape[0]
    if num_rows == 1:
      flat = jnp.concatenate([flat, flat])  # Faster on a CPU, as in `ensemble.lift`.
    q = members.apply(params.heads, flat, None)[:, :num_rows]
    return jnp.reshape(q, (num_members, *features.shape[:2], num_actions)), state

  return SequenceQNetworks(init, lambda key: (), state_size, unroll)


def _example(spec: dm_env.specs.Array) -> StepInputs:
  """One step of one window, for the shapes of the parameters."""
  zero = np.zeros((1, 1), np.float32)
  index = np.zeros((1, 1), np.int32)
  observation = np.zeros((1, 1, *spec.shape), spec.dtype)
  return StepInputs(observation, index, zero, zero, index)
