"""Tasks of MiniGrid by navix, with MiniGrid's view, time limits and rewards.

navix has the tasks in JAX, with layouts and colours of its own. Its view shows what is
behind walls and not what the agent carries, so that `view` replaces it; its time limits
and rewards are arguments.
"""

import importlib
import re
from typing import Any

import jax
import jax.numpy as jnp

from explorax.environments import jax_libraries

_SIDE = 7  # Of the view; the agent is in the middle of the last row.
_FLOOR, _WALL = (1, 0, 0), (2, 5, 0)
_CARRIED = ("key", "ball", "box")
_FORWARD = ((0, 1), (1, 0), (0, -1), (-1, 0))  # (row, column) east, south, west, north.
_PENALTY = 0.9  # A success at step t of T is worth 1 - 0.9 t / T.


def make(task: str) -> Any:
  """The environment of a task such as `DoorKey-8x8`.

  Raises:
    ValueError: if navix is not installed, with how to install it.
  """
  name = f"Navix-{task}-v0"
  jax_libraries.make("navix", name)
  navix = importlib.import_module("navix")
  usual = navix.make(name, observation_fn=navix.observations.symbolic_first_person)
  return navix.make(
    name,
    observation_fn=_view,
    observation_space=usual.observation_space,
    reward_fn=navix.rewards.on_goal_reached,
    penalty_coeff=_PENALTY,
    max_steps=_time_limit(task),
    disable_autoreset=True,
  )


def _time_limit(task: str) -> int:
  """MiniGrid's: 10 N² of DoorKey, 20 a room of MultiRoom, 30 N² of KeyCorridor."""
  size = int(re.findall(r"\d+", task)[0])
  if task.startswith("DoorKey"):
    return 10 * size**2
  return 20 * size if task.startswith("MultiRoom") else 30 * size**2


def _view(state: Any) -> jax.Array:
  """What MiniGrid's agent sees: uint8 `[7, 7, 3]`, what it carries in its cell."""
  observations = importlib.import_module("navix").observations
  grid, player = observations.symbolic(state), state.get_player()
  forward = jnp.array(_FORWARD)[player.direction]
  right = jnp.array(_FORWARD)[(player.direction + 1) % 4]
  ahead = jnp.arange(_SIDE)[::-1, None, None] * forward[None, None]
  aside = (jnp.arange(_SIDE) - _SIDE // 2)[None, :, None] * right[None, None]
  row, column = jnp.moveaxis(player.position[None, None] + ahead + aside, -1, 0)
  height, width, _ = grid.shape
  inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
  cells = grid[jnp.clip(row, 0, height - 1), jnp.clip(column, 0, width - 1)]
  cells = jnp.where(inside[..., None], cells, jnp.array([[_WALL]], jnp.uint8))
  own = jnp.array(_FLOOR, jnp.uint8)
  for kind in _CARRIED:
    if kind in state.entities:
      things = state.entities[kind]
      held = (things.id == player.pocket) & (player.pocket >= 0)
      look = jnp.stack([things.tag, things.colour, jnp.zeros_like(things.tag)], axis=-1)
      own = jnp.where(jnp.any(held), look[jnp.argmax(held)].astype(jnp.uint8), own)
  cells = cells.at[-1, _SIDE // 2].set(own)
  closed_door = (cells[..., 0] == 4) & (cells[..., 2] > 0)
  clear = (cells[..., 0] != _WALL[0]) & ~closed_door
  return jnp.where(visible(clear)[..., None], cells, 0).astype(jnp.uint8)


# The adapter knows cells of categories by the name of navix's function.
_view.__name__ = "symbolic_first_person"


def visible(clear: jax.Array) -> jax.Array:
  """MiniGrid's rule of what is seen through clear cells (`Grid.process_vis`).

  From the agent's row on, each visible clear cell shows its neighbours in its row, to
  the right and then to the left, and those in the next row.

  Args:
    clear: bool `[7, 7]`; the agent is in the middle of the last row.

  Returns:
    bool `[7, 7]`.
  """
  seen = [[jnp.bool_(False)] * _SIDE for _ in range(_SIDE)]
  seen[-1][_SIDE // 2] = jnp.bool_(True)
  to_right, to_left = range(_SIDE - 1), range(_SIDE - 1, 0, -1)
  for row in reversed(range(_SIDE)):
    for columns, side in ((to_right, 1), (to_left, -1)):
      for column in columns:
        through = seen[row][column] & clear[row, column]
        seen[row][column + side] |= through
        if row > 0:
          seen[row - 1][column] |= through
          seen[row - 1][column + side] |= through
  return jnp.array(seen)
