"""Paper 1's figures: what their tasks compute, against plain loops."""

import collections
from typing import Any

import numpy as np
import pytest

from explorax.environments import deep_sea, grid_maps
from explorax.papers.ez import runs, visits, worlds

GRID = {**runs.GRIDWORLD, "size": 5, "episodes": 4, "time_limit": 50, "ties": "fixed"}


def learn(domain: dict[str, Any], seeds: Any, rule: str = "epsilon") -> Any:
  return runs.learn({**domain, "rule": rule, "seeds": [*seeds]})


def _plain_q_learning(domain, rng: np.random.Generator):
  """Mean discounted return of ε-greedy Q-learning, in plain loops and float64."""
  size, goal = domain["size"], (domain["size"] - 2, domain["size"] - 2)
  spread = 1e-6 if domain["ties"] == "fixed" else 0.0
  q = spread * rng.standard_normal((size, size, 4))
  returns = []
  for _ in range(domain["episodes"]):
    row, column = 1, size // 2
    earned = 0.0
    for step in range(domain["time_limit"]):
      values = list(q[row, column])
      best = [a for a in range(4) if values[a] == max(values)]
      greedy = best[rng.integers(len(best))] if domain["ties"] == "random" else best[0]
      action = rng.integers(4) if rng.random() < domain["epsilon"] else greedy
      down, right = grid_maps.MOVES[action]
      to = (min(max(row + down, 0), size - 1), min(max(column + right, 0), size - 1))
      target = 1.0 if to == goal else domain["discount"] * q[to].max()
      q[row, column, action] += domain["step_size"] * (target - q[row, column, action])
      row, column = to
      if to == goal:
        earned = domain["discount"] ** step
        break
    returns.append(earned)
  return np.mean(returns)


@pytest.mark.parametrize("ties", runs.TIES)
def test_ties_against_plain_loops(ties):
  domain = {**GRID, "ties": ties, "epsilon": 0.3, "episodes": 10, "time_limit": 30}
  rng = np.random.default_rng(0)
  expected = np.array([_plain_q_learning(domain, rng) for _ in range(300)])
  ours = learn(domain, range(300))["discounted_returns"].mean(axis=1)
  error = np.hypot(expected.std(), ours.std()) / np.sqrt(300)
  assert abs(ours.mean() - expected.mean()) < 4 * error
  # What tells the readings apart.
  low, high = {"first": (0, 0.02), "fixed": (0.3, 0.5), "random": (0.6, 0.8)}[ties]
  assert low < ours.mean() < high


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
  rng, domain = np.random.default_rng(0), {**runs.DEEP_SEA, "size": 4}
  expected = np.array([_plain_deep_sea(4, "ez", rng) for _ in range(200)])
  results = learn(domain, range(400), "ez")
  assert results["first_treasure"].all() and results["optimal"].all()
  for name, column in zip(("first_treasure", "optimal"), expected.T, strict=True):
    ours = results[name]
    error = np.sqrt(column.var() / 200 + ours.var() / 400)
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
  settings = {"law": "exponential", "parameter": 0.0, "size": 2, "cap": 10_000}
  settings |= {"steps": 200, "seeds": list(range(400))}
  steps = visits.cover(settings)["cover_steps"]
  rng = np.random.default_rng(0)
  expected = []
  for _ in range(4000):
    missing, taken = {0, 1, 2}, 0
    while missing:
      kind = rng.choice(3, p=[0.5, 0.25, 0.25])
      missing.discard(kind)
      taken += 1 if kind == 0 else 2
    expected.append(taken)
  assert abs(np.mean(steps) - np.mean(expected)) < 4 * np.std(expected) / 20


def test_each_seed_has_effects_and_a_world_of_its_own():
  settings = {**runs.DEEP_SEA, "size": 4, "permuted": True, "seeds": [3, 5]}
  for seed, params in zip((3, 5), runs.problem(settings).params, strict=True):
    np.testing.assert_array_equal(params.right, deep_sea.action_mapping(seed, 4))
  domain = {**GRID, "world": "traps", "size": 8, "density": 0.3}
  problem = runs.problem({**domain, "seeds": [0, 2]})
  for seed, params in zip((0, 2), problem.params, strict=True):
    world = runs.draw_map(domain, seed)
    np.testing.assert_array_equal(params.cells, world.cells)
    np.testing.assert_array_equal(params.goal, world.goal)
  alone, beside = (learn(domain, seeds)["returns"] for seeds in ([2], [1, 2]))
  np.testing.assert_array_equal(alone[0], beside[1])


def count_steps(world: grid_maps.Map) -> dict[tuple[int, int], int]:
  """The steps from the start to each position that can be reached."""
  start = tuple(world.start.tolist())
  steps, queue = {start: 0}, collections.deque([start])
  while queue:
    row, column = queue.popleft()
    for down, right in grid_maps.MOVES:
      near = row + down, column + right
      inside = min(near) >= 0 and max(near) < len(world.cells)
      if inside and near not in steps and world.cells[near] == grid_maps.OPEN:
        steps[near] = steps[row, column] + 1
        queue.append(near)
  return steps


@pytest.mark.parametrize("world", ["obstacles", "traps"])
def test_ways_through_worlds(world):
  settings = {"world": world, "density": 0.4, "size": 12, "seeds": list(range(8))}
  results = worlds.compute(settings)
  for seed in range(8):
    world = grid_maps.Map(*(results[name][seed] for name in grid_maps.Map._fields))
    steps = count_steps(world)
    for position, length in np.ndenumerate(worlds.path_lengths(world)):
      assert length == steps.get(position, -1)
    assert results["shortest"][seed] == steps[tuple(world.goal.tolist())]
    assert results["reachable"][seed] == len(steps)
    filled = sum(cell != grid_maps.OPEN for cell in world.cells.flat) / 144
    assert results["filled"][seed] == pytest.approx(filled)
