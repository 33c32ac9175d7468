"""Random mazes, made within jitted functions."""

import jax
import jax.numpy as jnp
import numpy as np

from explorax.environments import grid_maps


def num_open(size: int) -> int:
  """The number of open positions of a `perfect_maze`: 2·((size − 1)/2)² − 1."""
  return 2 * ((size - 1) // 2) ** 2 - 1


def perfect_maze(key: jax.Array, size: int) -> jax.Array:
  """A random maze with exactly one path between any two open positions.

  Rooms are the positions with two odd coordinates. A depth-first search walks from room
  to room, through a random wall among those that lead to unvisited rooms, and back if
  there are none. Each of the C rooms but the first is entered once and left once, so
  the walk always takes 2(C − 1) moves: a loop of fixed length.

  Args:
    key: a random key.
    size: odd, at least 5 (smaller mazes have a single room).

  Returns:
    Bool `[size, size]`, true for open positions. The border is wall.
  """
  rooms, near, doors = _plan(size)
  num_rooms = len(rooms)
  start_key, choice_key = jax.random.split(key)
  start = jax.random.randint(start_key, (), 0, num_rooms, jnp.int32)
  preference = jax.random.uniform(choice_key, (2 * (num_rooms - 1), 4), jnp.float32)

  def move(i: jax.Array, walk: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
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
