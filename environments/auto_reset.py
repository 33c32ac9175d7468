"""Episodes one after another in an environment written in JAX, within a scan."""

import dataclasses
from typing import NamedTuple

import dm_env
import jax
import jax.numpy as jnp

from explorax.environments import jax_types


class State(NamedTuple):
  """Where the present episode is.

  Attributes:
    inner: the wrapped environment's state.
    ended: bool `[]`, whether its latest timestep was LAST.
  """

  inner: jax_types.State
  ended: jax.Array


@dataclasses.dataclass(frozen=True)
class AutoReset:
  """An environment whose step after a LAST timestep begins the next episode.

  That step ignores its action and returns a FIRST timestep, as those of dm_env's
  environments do: each episode's last observation is seen, and no reward or discount
  of one episode falls into the next. The new episode follows that step's key, as
  `environment.reset(key, params)` would. Everything else is the wrapped environment's;
  it is an environment itself, to be scanned and vmapped in programs of one's own (the
  device runner resets by itself):

    environment = auto_reset.AutoReset(disco_maze.DiscoMaze(21))
    state, timestep = jax.vmap(environment.reset, (0, None))(keys, params)
    state, timestep = jax.vmap(environment.step, (0, 0, 0, None))(
      step_keys, state, actions, params
    )

  Resets are computed only where they are needed. Under `jax.vmap`, where a branch
  would be computed for every environment at every step, they still are computed only
  in steps in which an episode of the batch begins (then for all of it, since a batch
  is computed as one). This holds under any number of nested vmaps.
  """

  environment: jax_types.Environment

  def default_params(self) -> jax_types.Params:
    return self.environment.default_params()

  def observation_spec(self) -> dm_env.specs.Array:
    return self.environment.observation_spec()

  @property
  def num_actions(self) -> int:
    return self.environment.num_actions

  def reset(
    self, key: jax.Array, params: jax_types.Params
  ) -> tuple[State, dm_env.TimeStep]:
    """The first episode."""
    inner, timestep = self.environment.reset(key, params)
    return State(inner, jnp.bool_(False)), timestep

  def step(
    self, key: jax.Array, state: State, action: jax.Array, params: jax_types.Params
  ) -> tuple[State, dm_env.TimeStep]:
    """One step, or the first timestep of the next episode."""
    # What a step beyond the end returns is discarded.
    stepped = self.environment.step(key, state.inner, action, params)

    def begin():
      fresh = self.environment.reset(key, params)
      return jax.tree.map(lambda a, b: jnp.where(state.ended, a, b), fresh, stepped)

    inner, timestep = jax.lax.cond(any_in_batch(state.ended), begin, lambda: stepped)
    return State(inner, timestep.last()), timestep

  def metrics(self, state: State, params: jax_types.Params) -> dict[str, jax.Array]:
    """The wrapped environment's, of the present episode."""
    return self.environment.metrics(state.inner, params)


@jax.custom_batching.custom_vmap
def any_in_batch(flag: jax.Array) -> jax.Array:
  """Whether the flag is true anywhere in the batch, however many vmaps made it.

  Bool `[]`, the same for the whole batch: a `cond` on it remains a branch.
  """
  return flag


@any_in_batch.def_vmap
def _any_of_batch(axis_size, in_batched, flags):
  del axis_size, in_batched
  return any_in_batch(jnp.any(flags, axis=0)), False
