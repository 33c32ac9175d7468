"""Random mazes, made within jitted functions."""

import jax
import jax.numpy as jnp
import numpy as np

from explorax.environments import grid_maps


def num_open(size: int) -> int:
  """How many positions of a `perfect_maze` are open: 2·((size − 1)/2)² − 1."""
  return 2 * ((size - 1) // 2) ** 2 - 1


def perfect_maze(key: jax.Array, size: int) -> jax.Array:
  """A random maze in which exactly one path leads from any open position to another.

  Rooms lie at the positions whose coordinates are both odd. A depth-first search
  walks from room to room, through a wall chosen at random among those that lead to
  rooms not yet seen, and back where there are none. Each of the C rooms but the
  first is entered once and left once, so that the walk takes 2(C − 1) moves,
  whatever the maze: a loop of fixed length.

  Args:
    key: of everything random.
    size: odd, at least 5 (smaller mazes hold a single room).

  Returns:
    Bool `[size, size]`, true where it is open. The border is wall.
  """
  if size < 5 or size % 2 == 0:
    raise ValueError(f"the maze's size is {size}; it must be odd and at least 5.")
  rooms, near, doors = _plan(size)
  num_rooms = len(rooms)
  start_key, choice_key = jax.random.split(key)
  start = jax.random.randint(start_key, (), 0, num_rooms)
  preference = jax.random.uniform(choice_key, (2 * (num_rooms - 1), 4))

  def move(i, walk):
    room, seen, parent, is_open = walk
    unseen = (near[room] >= 0) & ~seen[near[room]]
    direction = jnp.argmax(jnp.where(unseen, preference[i], -1.0))
    onward = unseen.any()
    to = jnp.where(onward, near[room, direction], parent[room])
    door = doors[room, direction]
    return (
      to,
      seen.at[to].set(True),
      parent.at[to].set(jnp.where(onward, room, parent[to])),
      is_open.at[door].set(is_open[door] | onward),
    )

  walk = (
    start,
    jnp.zeros(num_rooms, bool).at[start].set(True),
    jnp.zeros(num_rooms, jnp.int32),
    jnp.zeros(size * size, bool).at[rooms].set(True),
  )
  _, _, _, is_open = jax.lax.fori_loop(0, 2 * (num_rooms - 1), move, walk)
  return is_open.reshape(size, size)


def _plan(size: int) -> tuple[jax.Array, jax.Array, jax.Array]:
  """Rooms `[C]` as flat positions, and each one's neighbours and doors `[C, 4]`.

  A neighbour is a room's number, −1 beyond the border; a door the flat position of
  the wall in between.
  """
  side = (size - 1) // 2
  row, column = np.divmod(np.arange(side * side, dtype=np.int32), side)
  steps = np.array(grid_maps.MOVES, np.int32)
  near_row = row[:, None] + steps[None, :, 0]
  near_column = column[:, None] + steps[None, :, 1]
  inside = (
    (near_row >= 0) & (near_row < side) & (near_column >= 0) & (near_column < side)
  )
  near = np.where(inside, near_row * side + near_column, -1)
  rooms = (2 * row + 1) * size + 2 * column + 1
  doors = rooms[:, None] + steps[None, :, 0] * size + steps[None, :, 1]
  return jnp.asarray(rooms), jnp.asarray(near), jnp.asarray(doors)
