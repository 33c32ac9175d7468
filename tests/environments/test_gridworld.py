"""The GridWorld and its maps, against a few lines of plain Python."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax import environments
from explorax.environments import gridworld

WALLED = (
  "S.#G.",
  ".....",
  ".x#..",
  ".....",
  "....#",
)
ROOM = gridworld.GridWorld(5)


def _drawn(lines):
  """Parameters with the map that the lines show."""
  cells = [[".#x".find(c) if c in ".#x" else 0 for c in line] for line in lines]
  text = "".join(lines)
  start, goal = (np.array(divmod(text.index(c), len(lines[0])), np.int32) for c in "SG")
  return gridworld.Params(1000, 0.0, np.array(cells, np.int32), start, goal)


@pytest.fixture(scope="module")
def small():
  return environments.make("jax:gridworld/6,time_limit=30", seed=0)


def test_walks_as_a_plain_loop_does(small):
  rng = np.random.default_rng(0)
  ends = set()
  for episode in range(30):
    timestep = small.reset()
    row, column = 1, 3
    for time in range(1, 31):
      assert timestep.observation[row, column] == 1.0
      assert timestep.observation.sum() == 1.0
      # Some episodes go straight to the goal, three steps down and one to the right.
      action = (3, 3, 3, 1)[(time - 1) % 4] if episode % 3 == 0 else rng.integers(4)
      down, right = gridworld.MOVES[action]
      row, column = min(max(row + down, 0), 5), min(max(column + right, 0), 5)
      timestep = small.step(action)
      at_goal = (row, column) == (4, 4)
      assert timestep.reward == float(at_goal)
      assert timestep.last() == (at_goal or time == 30)
      if timestep.last():
        assert timestep.discount == (0.0 if at_goal else 1.0)
        ends.add(at_goal)
        break
  assert ends == {True, False}


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


@pytest.mark.parametrize(
  ("position", "free"),
  [((0, 0), (1, 3)), ((2, 0), (1, 2, 3)), ((0, 4), (0, 3))],
)
def test_noise_leads_to_each_neighbour_equally_often(position, free):
  """Frequencies of where a step leads, for one action that is free and one not."""
  params = _drawn(WALLED)
  num = 6000
  keys = jax.random.split(jax.random.PRNGKey(sum(position)), num)
  state = gridworld.State(jnp.asarray(position, jnp.int32), jnp.int32(0))

  @jax.jit
  @jax.vmap
  def arrive(key, action, noise):
    return ROOM.step(key, state, action, params._replace(noise=noise))[0].position

  blocked = next(action for action in range(4) if action not in free)
  for action, noise in itertools.product((free[0], blocked), (0.0, 0.4, 1.0)):
    arrived = arrive(keys, np.full(num, action, np.int32), np.full(num, noise))
    expected = {}
    intended = gridworld.MOVES[action] if action in free else (0, 0)
    for move, probability in [
      (intended, 1 - noise),
      *((gridworld.MOVES[one], noise / len(free)) for one in free),
    ]:
      target = (position[0] + move[0], position[1] + move[1])
      expected[target] = expected.get(target, 0.0) + probability
    counted = dict.fromkeys(expected, 0)
    for target in np.asarray(arrived).tolist():
      counted[tuple(target)] += 1  # A KeyError: where it may not lead.
    for target, probability in expected.items():
      # Within 5 standard errors; exact where nothing is random.
      margin = 5 * (probability * (1 - probability) / num) ** 0.5
      assert abs(counted[target] / num - probability) <= margin + 1e-9


def test_a_world_stays_what_it_was():
  """A world as it was first drawn: reports of worlds by number stay comparable."""
  params = gridworld.GridWorld(5, obstacles=0.2, traps=0.2, world=1).default_params()
  rows = ["".join(".#x"[cell] for cell in row) for row in params.cells]
  assert rows == ["..#x#", "##xx.", "..x.#", "...##", "..x.."]
  assert (params.start.tolist(), params.goal.tolist()) == ([3, 1], [3, 0])
