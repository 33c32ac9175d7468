"""R-MAX: optimistic values for state-action pairs with few visits."""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp

from explorax import ranges
from explorax.papers.tabular import q_learning, types


class Params(NamedTuple):
  """Scalars, float32 `[]`.

  Attributes:
    reward_max: R_max, the greatest reward of a step.
    discount: γ, in [0, 1).
    tolerance: positive; value iteration stops when no state's value changes by more.
  """

  reward_max: jax.Array | float
  discount: jax.Array | float
  tolerance: jax.Array | float = 1e-4


class State(NamedTuple):
  """The data of each state and action, and the values computed from them.

  Attributes:
    table: float32 `[S, A]`, action values.
    counts: int32 `[S, A]`, visits, up to the threshold m.
    rewards: float32 `[S, A]`, the sum of the rewards of these visits.
    successors: int32 `[m, S, A]`, the next states of these visits.
    discounts: float32 `[m, S, A]`, the environment's discounts at these visits.
    params: the parameters.
  """

  table: jax.Array
  counts: jax.Array
  rewards: jax.Array
  successors: jax.Array
  discounts: jax.Array
  params: Params


@dataclasses.dataclass(frozen=True)
class RMax(ranges.Checked):
  """R-MAX (Brafman and Tennenholtz, 2002) with discounted values.

  A state-action pair is known after m visits; later visits change nothing. The values
  solve

    Q(s, a) = mean over the m visits of r + γ·d·max_b Q(s', b)  if known,
              R_max/(1 − γ)                                     otherwise,

  where d is 0 if the episode terminated. An unknown pair has the value of receiving
  R_max at every step. When a pair becomes known, value iteration starts from the old
  values, which are at least the new ones, up to the tolerance. Act with
  `exploration.Greedy`.

  Dabney et al. (2021), figure 15, compare it on GridWorld with thresholds of 1 and 10.
  They give neither γ nor R_max. The original uses undiscounted values of a finite
  horizon; the discounted form is that of Strehl and Littman.

  Observations are as in `q_learning.QLearning`. In a batch, value iteration runs for
  all seeds whenever one of them needs it, so that sequential runs are faster
  (`training.run_seeds` with sequential=True).
  """

  num_states: ranges.PositiveInt  # S.
  num_actions: ranges.PositiveInt  # A.
  threshold: ranges.PositiveInt  # m, visits.

  num_members = 1
  on_policy = False

  def init(self, key: jax.Array, params: Params) -> State:
    del key
    shape = self.num_states, self.num_actions
    samples = self.threshold, *shape
    return State(
      table=jnp.full(shape, _optimism(params), jnp.float32),
      counts=jnp.zeros(shape, jnp.int32),
      rewards=jnp.zeros(shape, jnp.float32),
      successors=jnp.zeros(samples, jnp.int32),
      discounts=jnp.zeros(samples, jnp.float32),
      params=params,
    )

  def begin_episode(self, state: State) -> State:
    return state

  def encode(self, observation: jax.Array) -> jax.Array:
    return q_learning.state_index(observation)

  def q_values(self, state: State, encoded: jax.Array) -> jax.Array:
    return state.table[encoded][None]

  def update(self, state: State, transition: types.Transition) -> State:
    place = transition.source, transition.action
    count = state.counts[place]
    new = (count < self.threshold) & transition.learns
    # A visit beyond m has an index out of bounds, so that nothing is written.
    visit = jnp.where(new, count, self.threshold), *place
    state = state._replace(
      counts=state.counts.at[place].add(new.astype(jnp.int32)),
      rewards=state.rewards.at[place].add(jnp.where(new, transition.reward, 0.0)),
      successors=state.successors.at[visit].set(transition.destination, mode="drop"),
      discounts=state.discounts.at[visit].set(transition.discount, mode="drop"),
    )
    table = jax.lax.cond(
      new & (count + 1 == self.threshold),
      self._solve,
      lambda state: state.table,
      state,
    )
    return state._replace(table=table)

  def _solve(self, state: State) -> jax.Array:
    """Value iteration: the action values, float32 `[S, A]`."""
    params = state.params
    known = state.counts == self.threshold
    rewards = state.rewards / self.threshold
    weights = params.discount * state.discounts / self.threshold

    def backup(table: jax.Array) -> jax.Array:
      values = jnp.max(table, axis=1)
      following = jnp.sum(weights * values[state.successors], axis=0)
      return jnp.where(known, rewards + following, _optimism(params))

    def improve(carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
      table, _ = carry
      better = backup(table)
      change = jnp.abs(jnp.max(better, axis=1) - jnp.max(table, axis=1))
      return better, jnp.max(change)

    start = state.table, jnp.float32(0.0)
    table, _ = jax.lax.while_loop(
      lambda carry: carry[1] > params.tolerance, improve, improve(start)
    )
    return table


def _optimism(params: Params) -> jax.Array:
  return jnp.float32(params.reward_max / (1.0 - params.discount))
