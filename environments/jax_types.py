"""What an environment written in JAX is: pure functions that scan and vmap.

Timesteps are `dm_env.TimeStep`s of arrays. At an episode's start the reward is 0 and
the discount 1, where dm_env has None: this is what agents are shown anyway.
"""

from typing import Any, Protocol, runtime_checkable

import dm_env
import jax
import jax.numpy as jnp

State = Any  # A pytree of arrays.
Params = Any  # A pytree of arrays or numbers.


class Environment(Protocol):
  """One environment; `jax.vmap` makes it many.

  It is hashable and equal to its like (a frozen dataclass), since functions are
  compiled once for each: what it holds decides shapes. What only decides values, a
  time limit for one, is in `params`, which may change without compiling anew, and
  be another one for each environment of a batch.

  All shapes are fixed; nothing branches in Python on an array. Stepping beyond a
  LAST timestep is undefined: who steps resets first.
  """

  def __hash__(self) -> int:
    return super().__hash__()

  @property
  def num_actions(self) -> int: ...

  def default_params(self) -> Params: ...

  def observation_spec(self) -> dm_env.specs.Array: ...

  def reset(self, key: jax.Array, params: Params) -> tuple[State, dm_env.TimeStep]:
    """A new episode; everything random in it follows `key`."""
    ...

  def step(
    self, key: jax.Array, state: State, action: jax.Array, params: Params
  ) -> tuple[State, dm_env.TimeStep]:
    """One step; `action` is an int32 scalar in [0, num_actions)."""
    ...

  def metrics(self, state: State, params: Params) -> dict[str, jax.Array]:
    """Scalars by name about the episode so far; none by default."""
    return {}


@runtime_checkable
class Drawable(Protocol):
  """An environment that can be drawn."""

  def render(self, state: State, params: Params) -> jax.Array:
    """A picture of the state: uint8 `[H, W, 3]`."""
    ...


def one_hot(shape: tuple[int, ...], *index: jax.Array) -> jax.Array:
  """float32 `[*shape]`: 1 at the index, zeros only where that is beyond the array."""
  return jnp.zeros(shape, jnp.float32).at[index].set(1.0, mode="drop")


@jax.custom_batching.custom_vmap
def any_in_batch(flag: jax.Array) -> jax.Array:
  """Whether the flag is true anywhere in the batch, however many vmaps made it.

  Bool `[]`, the same for the whole batch: a `cond` on it remains a branch, so that
  resets are computed in those steps alone in which an episode begins.
  """
  return flag


@any_in_batch.def_vmap
def _any_of_batch(axis_size, in_batched, flags):
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
    observation: of the state arrived in.
    reward: of the step, `[]`.
    terminated: bool `[]`, whether the task has ended: LAST, discount 0.
    truncated: bool `[]`, whether the episode was cut short by a time limit: LAST,
      discount 1, unless the task ended in the same step.
  """
  mid, last = jnp.int32(dm_env.StepType.MID), jnp.int32(dm_env.StepType.LAST)
  return dm_env.TimeStep(
    step_type=jnp.where(terminated | truncated, last, mid),
    reward=jnp.asarray(reward, jnp.float32),
    discount=jnp.where(terminated, jnp.float32(0.0), jnp.float32(1.0)),
    observation=observation,
  )
