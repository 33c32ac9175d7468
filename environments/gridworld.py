"""A grid with one rewarded position: an open room, or a room of obstacles and traps."""

import dataclasses
from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from explorax import accelerators, ranges
from explorax.environments import drawing, grid_maps, jax_types, specs

MOVES = grid_maps.MOVES
# In the order of `grid_maps.OPEN`, OBSTACLE and TRAP.
COLOURS = (drawing.LIGHT, drawing.DARK, drawing.RED)


class Params(NamedTuple):
  """Parameters that may change without recompilation, including the map.

  Attributes:
    time_limit: steps after which an episode is truncated, int32 `[]`.
    noise: probability of a step in a random direction, float32 `[]`.
    cells: int32 `[rows, columns]`, see `grid_maps.Map`.
    start: int32 `[2]`, row and column.
    goal: int32 `[2]`.
  """

  time_limit: jax.Array | ranges.PositiveInt
  noise: jax.Array | ranges.Probability
  cells: jax.Array | np.ndarray
  start: jax.Array | np.ndarray
  goal: jax.Array | np.ndarray


class State(NamedTuple):
  """The agent's row and column, int32 `[2]`, and the steps taken, int32 `[]`."""

  position: jax.Array
  time: jax.Array


@dataclasses.dataclass(frozen=True)
class GridWorld(ranges.Checked, jax_types.Simulation):
  """The GridWorlds of paper 1 (Dabney et al., 2021, figures 1, 3, 7, and 11 to 13).

  The agent moves left, right, up or down; at a wall or an obstacle it stays in place.
  The goal earns 1 and ends the episode, a trap ends the episode and earns nothing. All
  other rewards are 0; an episode is truncated after 1000 steps.
  Observations are one-hot positions.

  - World 0 is the open room of figures 1 and 3, `grid_maps.make_room`.
  - Worlds from 1 on are drawn by `grid_maps.draw`, including start and goal. They
    depend only on their number, the size and the densities: every agent and every
    episode has the same one. Densities of 0 leave an open room.

  The map is part of the parameters. It can be replaced by any map of this size, also by
  a different one for each environment of a batch.

  With probability `Params.noise`, figure 7's noise scale, a step leads to a random
  neighbouring position for any action. The paper says "a random neighboring state":
  here all positions that the agent can enter have the same probability, including traps
  and the goal, but not obstacles and walls.
  """

  num_actions = len(MOVES)

  # Rows and columns; an open room has at least 5. Figures 11 to 13.
  size: Annotated[int, ranges.Range(ge=2)] = 20
  obstacles: ranges.BelowOne = 0.0  # Density. Figure 12.
  traps: ranges.BelowOne = 0.0  # Density. Figure 13.
  world: ranges.Seed = 0  # 0: the open room; otherwise the seed of a random world.

  def __post_init__(self) -> None:
    super().__post_init__()
    if (self.obstacles or self.traps) and not self.world:
      raise ValueError(
        f"obstacles at {self.obstacles} and traps at {self.traps} need a world; choose "
        "one from 1 on, as in world=1."
      )
    self._make_map()  # Refuses a setting without a map.

  def default_params(self) -> Params:
    return Params(1000, 0.0, *self._make_map())

  @property
  def shape(self) -> tuple[int, int]:
    """Rows and columns."""
    return self.size, self.size

  def observation_spec(self) -> specs.OneHotArray:
    return specs.OneHotArray(self.shape, "position")

  def begin(self, key: jax.Array, params: Params) -> State:
    return State(jnp.asarray(params.start, jnp.int32), jnp.int32(0))

  def advance(
    self, key: jax.Array, state: State, action: jax.Array, params: Params
  ) -> tuple[State, jax.Array, jax.Array]:
    cells = jnp.asarray(params.cells)
    targets = state.position[None] + jnp.asarray(MOVES, jnp.int32)
    inside = ((targets >= 0) & (targets < jnp.asarray(self.shape)[None])).all(axis=1)
    # `inside` checks the walls, beyond which there is no cell.
    free = inside & (
      cells.at[targets[:, 0], targets[:, 1]].get(mode="clip") != grid_maps.OBSTACLE
    )

    def disturb() -> jax.Array:
      noise_key, direction_key = jax.random.split(key)
      preference = jax.random.uniform(direction_key, (len(MOVES),), jnp.float32)
      anywhere = jnp.argmax(jnp.where(free, preference, -1.0))
      noisy = jax.random.bernoulli(noise_key, params.noise)
      return jnp.where(noisy, anywhere, action).astype(jnp.int32)

    # Without noise nothing is drawn: drawing takes most of a step's time.
    is_noisy = jax_types.any_in_batch(jnp.asarray(params.noise) > 0.0)
    direction = accelerators.branch(
      is_noisy, disturb, lambda: jnp.asarray(action, jnp.int32)
    )
    position = jnp.where(free[direction], targets[direction], state.position)
    at_goal = jnp.all(position == jnp.asarray(params.goal, jnp.int32))
    trapped = cells[position[0], position[1]] == grid_maps.TRAP
    return State(position, state.time + 1), at_goal, at_goal | trapped

  def observe(self, state: State) -> jax.Array:
    return jax_types.one_hot(self.shape, *state.position)

  def render(self, state: State, params: Params) -> jax.Array:
    """The map, the goal and the agent."""
    cells = jnp.asarray(COLOURS, jnp.uint8)[jnp.asarray(params.cells)]
    goal, agent = tuple(params.goal), tuple(state.position)
    return drawing.picture(
      self.shape, cells, (goal, drawing.GREEN), (agent, drawing.BLUE)
    )

  def _make_map(self) -> grid_maps.Map:
    if not self.world:
      return grid_maps.make_room(self.size)
    return grid_maps.draw(
      self.size, obstacles=self.obstacles, traps=self.traps, world=self.world
    )
