"""Maps of gridworlds: an open room, or random obstacles and traps."""

from typing import NamedTuple

import numpy as np
from scipy import ndimage

OPEN, OBSTACLE, TRAP = range(3)
# Left, right, up, down, as (row, column): the effects of actions 0 to 3 on every grid.
MOVES = ((0, -1), (0, 1), (-1, 0), (1, 0))


class Map(NamedTuple):
  """A map; positions are (row, column).

  Attributes:
    cells: int32 `[rows, columns]` of OPEN, OBSTACLE and TRAP.
    start: int32 `[2]`, the first position of episodes.
    goal: int32 `[2]`, which earns 1 and ends an episode.
  """

  cells: np.ndarray
  start: np.ndarray
  goal: np.ndarray


def make_room(size: int) -> Map:
  """An open room of size × size, the goal diagonally across from the start.

  The start is at the top centre, one row off the wall; the goal is at the bottom right,
  one row and one column off the walls (paper 1, figures 1 and 3; Dabney et al., 2021,
  do not say on which side).
  """
  if size < 5:
    raise ValueError(
      f"the size of the gridworld is {size}; it must be at least 5, so that the "
      "start and the goal are apart and off the walls."
    )
  cells = np.full((size, size), OPEN, np.int32)
  start, goal = np.array([[1, size // 2], [size - 2, size - 2]], np.int32)
  return Map(cells, start, goal)


def draw(size: int, *, obstacles: float, traps: float, world: int) -> Map:
  """A random world, as in figures 11 to 13 of paper 1 (Dabney et al., 2021).

  Each position is an obstacle with probability `obstacles` and a trap with probability
  `traps` (a world in the paper has only one of them). The start and the goal are drawn
  without replacement from the largest connected component of open positions, so that
  there is a path between them; of several equal components, from the first in reading
  order. The comparison u < density uses the same u for every density: a denser world
  with the same number contains all obstacles of a sparser one.

  Args:
    size: positions along a side, at least 2.
    obstacles: probability.
    traps: probability.
    world: the seed.

  Raises:
    ValueError: if no two open positions are neighbours.
  """
  rng = np.random.RandomState(world)  # The same numbers in every numpy version.
  drawn = rng.random_sample((size, size))
  cells = np.full((size, size), OPEN, np.int32)
  cells[drawn < obstacles + traps] = TRAP
  cells[drawn < obstacles] = OBSTACLE
  parts, _ = ndimage.label(cells == OPEN)  # Numbers the parts in reading order.
  sizes = np.bincount(parts.ravel(), minlength=2)
  component = np.argwhere(parts == 1 + np.argmax(sizes[1:]))
  if len(component) < 2:
    raise ValueError(
      f"world {world} of size {size} with obstacles at a density of {obstacles} and "
      f"traps at {traps} has no path from one open position to another; lower the "
      "density, or choose another world."
    )
  start, goal = rng.choice(len(component), 2, replace=False)
  return Map(cells, *component[[start, goal]].astype(np.int32))
