"""An open room with one rewarded position, far from where the agent starts."""

import dataclasses
from typing import NamedTuple

import dm_env
import jax
import jax.numpy as jnp

from explorax.environments import jax_types, specs

# Left, right, up, down, as (row, column).
MOVES = ((0, -1), (0, 1), (-1, 0), (1, 0))
RENDERED_PIXELS = 12
COLOURS = {"floor": (230, 230, 230), "goal": (40, 160, 60), "agent": (30, 60, 200)}


class Params(NamedTuple):
  """What may change without another compilation.

  Attributes:
    time_limit: steps after which an episode is truncated, int32 `[]`.
  """

  time_limit: jax.Array | int


class State(NamedTuple):
  """The agent's row and column, int32 `[2]`, and the steps taken, int32 `[]`."""

  position: jax.Array
  time: jax.Array


@dataclasses.dataclass(frozen=True)
class GridWorld:
  """The open GridWorld of paper 1 (Dabney et al., 2021, figures 1 and 3).

  The agent moves left, right, up or down in a room of size × size positions; against
  a wall it stays. It starts at the top centre, one row off the wall; the goal, where
  it earns 1 and the episode ends, lies diagonally across, one row and one column off
  the walls: the bottom right (the paper does not say which side). All other rewards
  are 0; an episode is truncated after 1000 steps. Observations are one-hot positions.
  """

  size: int = 20  # Positions along a side (the size of figures 11 to 13).

  def __post_init__(self):
    if self.size < 5:
      raise ValueError(
        f"the size of the gridworld is {self.size}; it must be at least 5, so that the "
        "start and the goal are apart and off the walls."
      )

  def default_params(self) -> Params:
    return Params(time_limit=1000)

  @property
  def num_actions(self) -> int:
    return len(MOVES)

  @property
  def start(self) -> tuple[int, int]:
    return 1, self.size // 2

  @property
  def goal(self) -> tuple[int, int]:
    return self.size - 2, self.size - 2

  def observation_spec(self) -> specs.OneHotArray:
    return specs.OneHotArray((self.size, self.size), "position")

  def reset(self, key: jax.Array, params: Params) -> tuple[State, dm_env.TimeStep]:
    """The agent at the start; nothing is random."""
    del key, params
    state = State(jnp.asarray(self.start, jnp.int32), jnp.int32(0))
    return state, jax_types.restart(self._observe(state))

  def step(
    self, key: jax.Array, state: State, action: jax.Array, params: Params
  ) -> tuple[State, dm_env.TimeStep]:
    """Moves the agent."""
    del key
    target = state.position + jnp.asarray(MOVES, jnp.int32)[action]
    state = State(jnp.clip(target, 0, self.size - 1), state.time + 1)
    at_goal = jnp.all(state.position == jnp.asarray(self.goal, jnp.int32))
    return state, jax_types.transition(
      self._observe(state),
      at_goal,
      terminated=at_goal,
      truncated=state.time >= params.time_limit,
    )

  def metrics(self, state: State, params: Params) -> dict[str, jax.Array]:
    """None."""
    del state, params
    return {}

  def render(self, state: State, params: Params) -> jax.Array:
    """uint8 `[RENDERED_PIXELS · size, RENDERED_PIXELS · size, 3]`."""
    del params
    colours = {name: jnp.asarray(c, jnp.uint8) for name, c in COLOURS.items()}
    image = jnp.broadcast_to(colours["floor"], (self.size, self.size, 3))
    image = image.at[self.goal].set(colours["goal"])
    image = image.at[state.position[0], state.position[1]].set(colours["agent"])
    return image.repeat(RENDERED_PIXELS, axis=0).repeat(RENDERED_PIXELS, axis=1)

  def _observe(self, state: State) -> jax.Array:
    observation = jnp.zeros((self.size, self.size), jnp.float32)
    return observation.at[state.position[0], state.position[1]].set(1.0)
