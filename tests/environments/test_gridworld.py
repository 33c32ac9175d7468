"""The GridWorld and its maps, against a few lines of plain Python."""

import collections
import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np

from explorax.environments import gridworld

WALLED = ("S.#G.", ".....", ".x#..", ".....", "....#")
ROOM = gridworld.GridWorld(5)


def _drawn(lines):
  """Parameters with the map that the lines show."""
  cells = [[".#x".find(c) if c in ".#x" else 0 for c in line] for line in lines]
  text = "".join(lines)
  start, goal = (np.array(divmod(text.index(c), len(lines[0])), np.int32) for c in "SG")
  return gridworld.Params(1000, 0.0, np.array(cells, np.int32), start, goal)


def test_an_empty_room_leads_from_the_top_to_the_bottom():
  params = gridworld.GridWorld(6).default_params()
  assert (params.start.tolist(), params.goal.tolist()) == ([1, 3], [4, 4])
  assert not params.cells.any() and params.noise == 0


def test_obstacles_stop_and_traps_end_the_episode():
  """Every action in every position of a map, against its text."""
  params = _drawn(WALLED)
  step = jax.jit(ROOM.step)
  key = jax.random.PRNGKey(0)
  state, first = jax.jit(ROOM.reset)(key, params)
  assert np.argwhere(first.observation).tolist() == [[0, 0]]
  seen = set()
  for row, column in itertools.product(range(5), range(5)):
    if WALLED[row][column] in "#xG":  # No step starts there.
      continue
    for action, (down, right) in enumerate(gridworld.MOVES):
      target = (row + down, column + right)
      inside = 0 <= target[0] < 5 and 0 <= target[1] < 5
      what = WALLED[target[0]][target[1]] if inside else "#"
      expected = (row, column) if what == "#" else target
      here = state._replace(position=jnp.asarray([row, column], jnp.int32))
      _, timestep = step(key, here, np.int32(action), params)
      assert np.argwhere(timestep.observation).tolist() == [list(expected)]
      assert timestep.observation.sum() == 1.0
      assert timestep.reward == float(what == "G")
      assert timestep.discount == float(what not in "Gx")
      assert (timestep.step_type == 2) == (what in "Gx")
      seen.add(what)
  assert seen == set(".#xGS")


def test_noise_leads_to_each_neighbour_equally_often():
  """Frequencies of where a step leads, for one action that is free and one not."""
  params, num = _drawn(WALLED), 6000

  @jax.jit
  @functools.partial(jax.vmap, in_axes=(0, None, None, None))
  def arrive(key, position, action, noise):
    state = gridworld.State(position, jnp.int32(0))
    return ROOM.step(key, state, action, params._replace(noise=noise))[0].position

  keys = jax.random.split(jax.random.PRNGKey(0), num)
  for position, free in (((0, 0), (1, 3)), ((2, 0), (1, 2, 3)), ((0, 4), (0, 3))):
    blocked = next(action for action in range(4) if action not in free)
    for action, noise in itertools.product((free[0], blocked), (0.0, 0.4, 1.0)):
      at = np.array(position, np.int32)
      arrived = np.asarray(arrive(keys, at, np.int32(action), np.float32(noise)))
      expected = collections.Counter()
      intended = gridworld.MOVES[action] if action in free else (0, 0)
      expected[intended] += 1 - noise
      for one in free:
        expected[gridworld.MOVES[one]] += noise / len(free)
      counted = collections.Counter(map(tuple, (arrived - at).tolist()))
      assert {*counted} <= {*expected}
      for move, probability in expected.items():
        # Within 5 standard errors; exact where nothing is random.
        margin = 5 * (probability * (1 - probability) / num) ** 0.5
        assert abs(counted[move] / num - probability) <= margin + 1e-9


def test_a_world_stays_what_it_was():
  """A world as it was first drawn: reports of worlds by number stay comparable."""
  params = gridworld.GridWorld(5, obstacles=0.2, traps=0.2, world=1).default_params()
  rows = ["".join(".#x"[cell] for cell in row) for row in params.cells]
  assert rows == ["..#x#", "##xx.", "..x.#", "...##", "..x.."]
  assert (params.start.tolist(), params.goal.tolist()) == ([3, 1], [3, 0])
