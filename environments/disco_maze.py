"""The Random Disco Maze: pure exploration among walls whose colours change."""

import dataclasses
from typing import Annotated, NamedTuple

import dm_env
import jax
import jax.numpy as jnp
import numpy as np

from explorax import ranges
from explorax.environments import drawing, grid_maps, jax_types, mazes

MOVES = grid_maps.MOVES
PATH_COLOUR = (0, 0, 0)
AGENT_COLOUR = (0, 255, 0)
# Five colours, which the paper does not specify.
WALL_COLOURS = (
  (255, 0, 0),
  (0, 0, 255),
  (255, 255, 0),
  (255, 0, 255),
  (255, 255, 255),
)
VISITED_COLOUR = (0, 96, 0)  # In pictures.


class State(NamedTuple):
  """An episode.

  Attributes:
    is_open: bool `[size, size]`, the pathways.
    colours: int32 `[size, size]`, the current wall colour of each position (read at
      walls only).
    position: int32 `[2]`, the agent's row and column.
    visited: bool `[size, size]`, the positions visited in this episode.
    time: int32 `[]`, steps taken.
  """

  is_open: jax.Array
  colours: jax.Array
  position: jax.Array
  visited: jax.Array
  time: jax.Array


@dataclasses.dataclass(frozen=True)
class DiscoMaze(ranges.Checked, jax_types.Simulation):
  """The Random Disco Maze (Badia et al. 2020, section 4.1 and figure 2).

  Each episode has a new random maze; at every step, each wall's colour is redrawn from
  five. The agent (green) moves left, right, up or down along the pathways (black);
  stepping into a wall ends the episode. There is no reward. The observation is the
  whole maze: uint8 `[size, size, 3]`. The measure is `coverage`, the share of reachable
  positions visited in the episode, including its start.

  Where the paper is silent: mazes are perfect (`mazes.perfect_maze`), the agent starts
  on any open position with equal probability, stays in place when it steps into a wall,
  and the time limit is 2·size² steps (882 for 21 × 21). A walk through all the pathways
  and back takes (size − 1)² − 4 (396), so everything can be visited, even with detours.
  """

  num_actions = len(MOVES)

  # Positions along a side, walls included; odd. Section 4.1.
  size: Annotated[int, ranges.Range(ge=5)] = 21

  def __post_init__(self) -> None:
    super().__post_init__()
    if self.size % 2 == 0:
      raise ValueError(
        f"DiscoMaze.size is {self.size}; it must be odd, so that a wall surrounds it."
      )

  def default_params(self) -> jax_types.TimeLimit:
    return jax_types.TimeLimit(time_limit=2 * self.size**2)

  def observation_spec(self) -> dm_env.specs.Array:
    return dm_env.specs.Array((self.size, self.size, 3), np.uint8, "maze")

  def begin(self, key: jax.Array, params: jax_types.TimeLimit) -> State:
    maze_key, start_key, colour_key = jax.random.split(key, 3)
    is_open = mazes.perfect_maze(maze_key, self.size)
    noise = jax.random.uniform(start_key, is_open.shape, jnp.float32)
    start = jnp.argmax(jnp.where(is_open, noise, -1.0))
    position = jnp.stack(jnp.divmod(start, self.size)).astype(jnp.int32)
    return State(
      is_open=is_open,
      colours=self._draw_colours(colour_key),
      position=position,
      visited=jnp.zeros_like(is_open).at[position[0], position[1]].set(True),
      time=jnp.int32(0),
    )

  def advance(
    self, key: jax.Array, state: State, action: jax.Array, params: jax_types.TimeLimit
  ) -> tuple[State, jax.Array, jax.Array]:
    target = state.position + jnp.asarray(MOVES, jnp.int32)[action]
    # The agent is never on the border, so the target is always inside.
    hit = ~state.is_open[target[0], target[1]]
    position = jnp.where(hit, state.position, target)
    state = state._replace(
      colours=self._draw_colours(key),
      position=position,
      visited=state.visited.at[position[0], position[1]].set(True),
      time=state.time + 1,
    )
    return state, jnp.float32(0.0), hit

  def observe(self, state: State) -> jax.Array:
    walls = jnp.asarray(WALL_COLOURS, jnp.uint8)[state.colours]
    is_agent = jnp.zeros_like(state.is_open).at[tuple(state.position)].set(True)
    return drawing.paint(walls, (state.is_open, PATH_COLOUR), (is_agent, AGENT_COLOUR))

  def metrics(self, state: State, params: jax_types.TimeLimit) -> dict[str, jax.Array]:
    return {"coverage": state.visited.sum() / mazes.num_open(self.size)}

  def render(self, state: State, params: jax_types.TimeLimit) -> jax.Array:
    """The maze, with the positions visited in this episode."""
    visited = state.visited.at[tuple(state.position)].set(False)
    maze = self.observe(state)
    return drawing.picture((self.size, self.size), maze, (visited, VISITED_COLOUR))

  def _draw_colours(self, key: jax.Array) -> jax.Array:
    # Half the time of `randint`; its bias is below 1 in 10 000.
    bits = jax.random.bits(key, (self.size, self.size), jnp.uint16)
    return (bits % len(WALL_COLOURS)).astype(jnp.int32)
