"""The interface of environments written in JAX: pure functions to scan and vmap.

Timesteps are `dm_env.TimeStep`s of arrays. At an episode's start the reward is 0 and
the discount 1 instead of dm_env's None, as agents see them.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import dm_env
import jax
import jax.numpy as jnp

from explorax import ranges

State = Any  # A pytree of arrays.
Params = Any  # A pytree of arrays or numbers.


class TimeLimit(NamedTuple):
  """Parameters of environments with a time limit alone.

  Attributes:
    time_limit: steps after which an episode is truncated, int32 `[]`.
  """

  time_limit: jax.Array | ranges.PositiveInt


class Environment(Protocol):
  """One environment; use `jax.vmap` for several.

  It is hashable and compares by value (a frozen dataclass), since functions are
  compiled once for each environment: its fields determine shapes. Values such as a time
  limit are in `params`, which may change without recompilation and differ between the
  environments of a batch.

  All shapes are fixed, and Python code never branches on an array. Stepping after a
  LAST timestep is undefined: callers must reset first. A method
  `render(state, params)`, if there is one, returns a picture, uint8 `[H, W, 3]`.
  """

  def __hash__(self) -> int:
    return super().__hash__()

  @property
  def num_actions(self) -> int: ...

  def default_params(self) -> Params: ...

  def observation_spec(self) -> dm_env.specs.Array: ...

  def reset(self, key: jax.Array, params: Params) -> tuple[State, dm_env.TimeStep]:
    """A new episode; all its randomness follows `key`."""

  def step(
    self, key: jax.Array, state: State, action: jax.Array, params: Params
  ) -> tuple[State, dm_env.TimeStep]:
    """One step; `action` is an int32 scalar in [0, num_actions)."""

  def metrics(self, state: State, params: Params) -> dict[str, jax.Array]:
    """Scalars by name about the episode so far; none by default."""
    return {}


class Simulation(Environment, Protocol):
  """An environment whose observations are functions of its states.

  A subclass has the three functions below. If its parameters have a `time_limit`, its
  states have a `time`, and an episode is truncated after so many steps.
  """

  def begin(self, key: jax.Array, params: Params) -> State:
    """The first state of an episode."""

  def advance(
    self, key: jax.Array, state: State, action: jax.Array, params: Params
  ) -> tuple[State, jax.Array, jax.Array | bool]:
    """The next state, the reward, and whether the task has ended."""

  def observe(self, state: State) -> jax.Array:
    """What the agent sees of a state."""

  def reset(self, key: jax.Array, params: Params) -> tuple[State, dm_env.TimeStep]:
    """A new episode."""
    state = self.begin(key, params)
    return state, restart(self.observe(state))

  def step(
    self, key: jax.Array, state: State, action: jax.Array, params: Params
  ) -> tuple[State, dm_env.TimeStep]:
    """One step."""
    state, reward, terminated = self.advance(key, state, action, params)
    has_limit = hasattr(params, "time_limit")
    return state, transition(
      self.observe(state),
      reward,
      terminated=terminated,
      truncated=state.time >= params.time_limit if has_limit else False,
    )


def one_hot(shape: tuple[int, ...], *index: jax.Array) -> jax.Array:
  """float32 `[*shape]`: 1 at the index; all zeros if it is outside the array."""
  return jnp.zeros(shape, jnp.float32).at[index].set(1.0, mode="drop")


@jax.custom_batching.custom_vmap
def any_in_batch(flag: jax.Array) -> jax.Array:
  """Whether the flag is true anywhere in the batch, under any number of vmaps.

  Bool `[]`, the same for the whole batch: a `cond` on it remains a branch, so that
  resets are computed only in steps in which an episode starts.
  """
  return flag


@any_in_batch.def_vmap
def _any_of_batch(
  axis_size: int, in_batched: Sequence[bool], flags: jax.Array
) -> tuple[jax.Array, bool]:
  del axis_size, in_batched
  return any_in_batch(jnp.any(flags, axis=0)), False


def restart(observation: jax.Array) -> dm_env.TimeStep:
  """The first timestep of an episode."""
  return dm_env.TimeStep(
    step_type=jnp.int32(dm_env.StepType.FIRST),
    reward=jnp.float32(0.0),
    discount=jnp.float32(1.0),
    observation=observation,
  )


def transition(
  observation: jax.Array,
  reward: jax.Array | float,
  *,
  terminated: jax.Array | bool = False,
  truncated: jax.Array | bool = False,
) -> dm_env.TimeStep:
  """A timestep after a step.

  Args:
    observation: of the new state.
    reward: of the step, `[]`.
    terminated: bool `[]`, whether the task has ended: LAST, discount 0.
    truncated: bool `[]`, whether a time limit ended the episode: LAST, discount 1,
      unless the task ended in the same step.
  """
  mid, last = jnp.int32(dm_env.StepType.MID), jnp.int32(dm_env.StepType.LAST)
  return dm_env.TimeStep(
    step_type=jnp.where(terminated | truncated, last, mid),
    reward=jnp.asarray(reward, jnp.float32),
    discount=jnp.where(terminated, jnp.float32(0.0), jnp.float32(1.0)),
    observation=observation,
  )
