"""Paper 1's figures: what their tasks compute, against plain loops."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax.environments import deep_sea, grid_maps
from explorax.papers.ez import runs, visits, worlds

GRID = {**runs.GRIDWORLD, "rule": "epsilon", "size": 5}


@pytest.mark.parametrize(
  ("ties", "tables_decide", "keys_decide"),
  [("first", False, False), ("fixed", True, False), ("random", False, True)],
)
def test_actions_where_nothing_is_learned(ties, tables_decide, keys_decide):
  settings = {**GRID, "ties": ties, "epsilon": 0.0}
  learner, rule = runs.problem(settings).learner, runs.make_rule(settings)

  def act(of_table, key):
    q = learner.q_values(learner.init(of_table), jnp.int32(0))[None]
    return rule.select(key, q, rule.init(key, 1, 4), jnp.int32(0))[0]

  keys = jax.random.split(jax.random.key(0), 20)
  actions = jax.jit(jax.vmap(jax.vmap(act, (None, 0)), (0, None)))(keys, keys)
  assert np.any(np.ptp(actions, axis=0) > 0) == tables_decide
  assert np.any(np.ptp(actions, axis=1) > 0) == keys_decide


def _plain_deep_sea(size: int, rule: str, rng: np.random.Generator):
  """Episodes to the first treasure and until greedy is optimal, random ties."""
  q, epsilon, first, episode = np.zeros((size, size, 2)), 1 / (size + 1), None, 0
  while True:
    episode += 1
    column = left_of_repeat = repeated = 0
    for row in range(size):
      if left_of_repeat == 0 and rng.random() < epsilon:
        repeated = rng.integers(2)
        left_of_repeat = rng.zipf(2.0) if rule == "ez" else 1
      if left_of_repeat:
        left_of_repeat -= 1
        action = repeated
      else:
        values = q[row, column]
        action = rng.integers(2) if values[0] == values[1] else values.argmax()
      reward = -0.01 / size if action else 0.0
      to = column + 1 if action else max(column - 1, 0)
      if action and column == size - 1:
        reward, first = reward + 1.0, first or episode
      future = q[row + 1, min(to, size - 1)].max() if row < size - 1 else 0.0
      q[row, column, action] = reward + 0.99 * future
      column = min(to, size - 1)
    if all(q[i, i, 1] > q[i, i, 0] for i in range(size)):
      return first, episode


def test_the_deep_sea_against_plain_loops():
  rng = np.random.default_rng(0)
  expected = np.array([_plain_deep_sea(4, "ez", rng) for _ in range(200)])
  results = runs.learn(
    {**runs.DEEP_SEA, "size": 4, "rule": "ez", "seeds": [*range(200)]}
  )
  assert results["first_treasure"].all() and results["optimal"].all()
  for name, column in zip(("first_treasure", "optimal"), expected.T, strict=True):
    ours = results[name]
    error = np.sqrt((column.var() + ours.var()) / 200)
    assert abs(ours.mean() - column.mean()) < 4 * error
  # That the two are told apart.
  assert expected[:, 1].mean() > 1.5 * expected[:, 0].mean()


def test_first_visits_of_straight_walks():
  # ε = 0: straight down from the top centre, and never anywhere else.
  settings = {"rule": "epsilon", "epsilon": 0.0, "size": 5, "steps": 9, "seeds": [0, 1]}
  results = visits.from_the_top(settings)
  expected = np.full((5, 5), 9)
  expected[1:, 2] = [0, 1, 2, 3]
  np.testing.assert_array_equal(results["first_visits"].reshape(2, 5, 5)[1], expected)
  np.testing.assert_array_equal(results["visited"][0].reshape(5, 5), expected < 9)


def test_cover_time_of_the_shortest_chain():
  # Two states: (0, down), (0, right), (1, down) and (1, right) must all be taken. An
  # episode goes down, right and down, or right and right: probabilities ½, ¼ and ¼.
  # Until all three are seen, Σ 1/p − Σ 1/(p + p') + 1 = 19/3 episodes of 1.5 steps.
  settings = {"law": "exponential", "parameter": 0.0, "size": 2, "cap": 10_000}
  settings |= {"steps": 200, "seeds": list(range(400))}
  steps = visits.cover(settings)["cover_steps"]
  assert abs(np.mean(steps) - 9.5) < 4 * np.std(steps) / 20


def test_each_seed_has_effects_and_a_world_of_its_own():
  settings = {**runs.DEEP_SEA, "size": 4, "permuted": True, "seeds": [3, 5]}
  for seed, params in zip((3, 5), runs.problem(settings).params, strict=True):
    np.testing.assert_array_equal(params.right, deep_sea.action_mapping(seed, 4))
  domain = {**GRID, "world": "traps", "size": 8, "density": 0.3, "seeds": [0, 2]}
  for seed, params in zip((0, 2), runs.problem(domain).params, strict=True):
    world = runs.draw_map(domain, seed)
    np.testing.assert_array_equal(params.cells, world.cells)
    np.testing.assert_array_equal(params.goal, world.goal)


@pytest.mark.parametrize("world", ["obstacles", "traps"])
def test_ways_through_worlds(world):
  settings = {"world": world, "density": 0.4, "size": 12, "seeds": list(range(8))}
  results = worlds.compute(settings)
  for seed in range(8):
    world = grid_maps.Map(*(results[name][seed] for name in grid_maps.Map._fields))
    is_open, lengths = world.cells == grid_maps.OPEN, worlds.path_lengths(world)
    steps = np.where(lengths < 0, np.inf, lengths)
    # One more than the nearest neighbour has: only the shortest ways are all so.
    padded = np.pad(steps, 1, constant_values=np.inf)
    near = np.min([np.roll(padded, x, (0, 1)) for x in grid_maps.MOVES], axis=0)
    expected = np.where(is_open, 1 + near[1:-1, 1:-1], np.inf)
    expected[*world.start] = 0
    np.testing.assert_array_equal(steps, expected)
    assert results["shortest"][seed] == lengths[*world.goal] > 0
    assert results["reachable"][seed] == np.isfinite(steps).sum()
    assert results["filled"][seed] == pytest.approx(1 - is_open.mean())
