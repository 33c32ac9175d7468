"""Tabular Q-learning with one or several tables."""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from explorax import losses, ranges
from explorax.papers.tabular import types


class Params(NamedTuple):
  """Scalars, float32 `[]`.

  Attributes:
    step_size: α, in (0, 1].
    discount: γ, in [0, 1].
    mask_prob: ρ, the probability that a member learns from a step.
    initial_mean: mean of the initial values.
    initial_std: standard deviation of the initial values, at least 0.
  """

  step_size: jax.Array | float
  discount: jax.Array | float
  mask_prob: jax.Array | float = 1.0
  initial_mean: jax.Array | float = 0.0
  initial_std: jax.Array | float = 0.0


class State(NamedTuple):
  """The tables, float32 `[K, S, A]`; the key of the masks; and the parameters."""

  table: jax.Array
  key: jax.Array
  params: Params


@dataclasses.dataclass(frozen=True)
class QLearning(ranges.Checked):
  """K tables that learn by Q-learning (Watkins, 1989).

    Q_k(s, a) ← Q_k(s, a) + m_k·α·(r + γ·max_b Q_k(s', b) − Q_k(s, a))

  The masks m_k ~ Bernoulli(ρ) are drawn at each step for each member (Osband et al.,
  2016). The members have independent initial values, ~ N(mean, std²). A single member
  is plain Q-learning and has no mask.

  Observations are states, int32 `[]`, or arrays of any other shape, such as one-hot
  positions; the state is then the index of the greatest element.

  Dabney et al. (2021), appendix B, use it in DeepSea and GridWorld. They give neither γ
  nor the initial values: the caller chooses them.
  """

  num_states: ranges.PositiveInt  # S.
  num_actions: ranges.PositiveInt  # A.
  num_members: ranges.PositiveInt = 1  # K.

  on_policy = False

  def init(self, key: jax.Array, params: Params) -> State:
    values_key, mask_key = jax.random.split(key)
    shape = self.num_members, self.num_states, self.num_actions
    noise = jax.random.normal(values_key, shape, jnp.float32)
    return State(params.initial_mean + params.initial_std * noise, mask_key, params)

  def begin_episode(self, state: State) -> State:
    return state

  def encode(self, observation: jax.Array) -> jax.Array:
    return state_index(observation)

  def q_values(self, state: State, encoded: jax.Array) -> jax.Array:
    return state.table[:, encoded]

  def update(self, state: State, transition: types.Transition) -> State:
    params = state.params
    td_errors = jax.vmap(losses.q_learning, (0, None, None, None, 0))(
      self.q_values(state, transition.source),
      transition.action,
      transition.reward,
      params.discount * transition.discount,
      self.q_values(state, transition.destination),
    )
    step_sizes = jnp.full((self.num_members,), params.step_size, jnp.float32)
    key, learns = state.key, transition.learns
    if self.num_members > 1:
      next_key, mask_key = jax.random.split(key)
      key = jax.tree.map(lambda a, b: jnp.where(learns, a, b), next_key, key)
      mask = jax.random.bernoulli(mask_key, params.mask_prob, (self.num_members,))
      step_sizes = jnp.where(mask, step_sizes, 0.0)
    changes = jnp.where(learns, step_sizes * td_errors, 0.0)
    table = _add(state.table, transition.source, transition.action, changes)
    return State(table, key, params)


@jax.custom_batching.custom_vmap
def _add(
  table: jax.Array, state: jax.Array, action: jax.Array, changes: jax.Array
) -> jax.Array:
  """Adds `[K]` to the entry of a state and an action, in a table `[K, S, A]`."""
  at = (jnp.int32(0), state, action)
  old = jax.lax.dynamic_slice(table, at, (table.shape[0], 1, 1))
  return jax.lax.dynamic_update_slice(table, old + changes[:, None, None], at)


@_add.def_vmap
def _add_in_batch(
  axis_size: int,
  in_batched: Sequence[bool],
  table: jax.Array,
  state: jax.Array,
  action: jax.Array,
  changes: jax.Array,
) -> tuple[jax.Array, bool]:
  """The same as a sum over whole tables: many times faster than a scatter on a CPU."""
  arrays = (
    x if batched else jnp.broadcast_to(x, (axis_size, *x.shape))
    for x, batched in zip((table, state, action, changes), in_batched, strict=True)
  )
  table, state, action, changes = arrays
  states = jnp.arange(table.shape[2], dtype=jnp.int32)[None, None, :, None]
  actions = jnp.arange(table.shape[3], dtype=jnp.int32)[None, None, None, :]
  here = (states == state[:, None, None, None]) & (
    actions == action[:, None, None, None]
  )
  return table + jnp.where(here, changes[:, :, None, None], 0.0), True


def state_index(observation: jax.Array) -> jax.Array:
  """The observed state, int32 `[]` (see `QLearning`)."""
  observation = jnp.asarray(observation)
  if observation.ndim:
    return jnp.argmax(observation.reshape(-1)).astype(jnp.int32)
  return observation.astype(jnp.int32)
