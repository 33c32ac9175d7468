"""Paper 1's figures 11 to 13: the worlds, and learning in them."""

import collections

import numpy as np
import pytest

from explorax.environments import grid_maps
from explorax.experiments.figures import (
  ez_domains,
  ez_obstacles,
  ez_worlds,
  types,
)

FIGURES = {f.name: f for m in (ez_worlds, ez_obstacles) for f in m.FIGURES}
TINY_GRID = ez_domains.GridWorld(size=5, episodes=4, time_limit=50)
TINY = {
  "ez/fig11": ez_worlds.Config(densities=(0.1, 0.3), size=6, num_seeds=2),
  "ez/fig12": ez_obstacles.Config((0.0, 0.3), (0.3,), TINY_GRID, num_seeds=2),
  "ez/fig13": ez_obstacles.Config((0.0, 0.3), (0.0, 0.3), TINY_GRID, num_seeds=2),
}


@pytest.mark.parametrize("name", sorted(TINY))
def test_goes_from_tasks_to_a_drawing(name):
  pytest.importorskip("matplotlib")
  figure = FIGURES[name]
  for config in (figure.config, figure.quick):
    names = [task.name for task in figure.tasks(config)]
    assert len(set(names)) == len(names) > 1
  done = [
    types.Done(t.settings, figure.run(t.settings, lambda share: None), 0.0)
    for t in figure.tasks(TINY[name])
  ]
  assert figure.draw(done).axes
  findings = figure.judge(done)
  assert findings and all(f.claim and f.measured for f in findings)


# -- what is run ------------------------------------------------------------------


def count_steps(world: grid_maps.Map) -> dict[tuple[int, int], int]:
  """The steps from the start to each position that can be reached."""
  start = tuple(world.start.tolist())
  steps, queue = {start: 0}, collections.deque([start])
  while queue:
    row, column = queue.popleft()
    for near in (
      (row - 1, column),
      (row + 1, column),
      (row, column - 1),
      (row, column + 1),
    ):
      inside = min(near) >= 0 and max(near) < len(world.cells)
      if inside and near not in steps and world.cells[near] == grid_maps.OPEN:
        steps[near] = steps[row, column] + 1
        queue.append(near)
  return steps


@pytest.mark.parametrize("kind", ez_worlds.KINDS)
def test_ways_through_worlds(kind):
  settings = {"kind": kind, "density": 0.4, "size": 12, "num_seeds": 8}
  results = ez_worlds._run(settings, lambda share: None)
  for seed in range(8):
    world = grid_maps.Map(*(results[name][seed] for name in grid_maps.Map._fields))
    steps = count_steps(world)
    assert results["shortest"][seed] == steps[tuple(world.goal.tolist())]
    assert results["reachable"][seed] == len(steps)
    filled = sum(cell != grid_maps.OPEN for cell in world.cells.flat) / 144
    assert results["filled"][seed] == pytest.approx(filled)


def test_no_way_is_seen():
  cut = grid_maps.parse(["S.#..", "..#..", "..#..", "..#..", "G.#.."])
  cut = cut._replace(goal=np.array([0, 4]))
  expected = -np.ones((5, 5), int)
  expected[:, :2] = np.arange(5)[:, None] + np.arange(2)
  np.testing.assert_array_equal(ez_worlds._distances(cut), expected)


def test_a_denser_world_has_all_that_the_thinner_one_has():
  thin, dense = (ez_worlds.draw_map("traps", d, 10, seed=3) for d in (0.1, 0.3))
  assert (dense.cells[thin.cells == grid_maps.TRAP] == grid_maps.TRAP).all()
  assert (dense.cells == grid_maps.TRAP).sum() > (thin.cells == grid_maps.TRAP).sum()


def test_each_seed_learns_in_its_own_world():
  walls = ["#####"] * 4
  rows = ("SG###", "S...G", "Sx###")
  maps = [grid_maps.parse([row, *walls]) for row in rows[:2]]
  # A trap is all there is beside the start; the goal is out of reach.
  trap = grid_maps.parse(["Sx###", "G####", *walls[:3]])
  maps.append(trap._replace(goal=np.array([4, 4])))
  setup = ez_domains.GridWorld(size=5, episodes=40, time_limit=500)
  results = setup.learn("epsilon", (0, 3), maps=maps)
  returns, lengths = results["returns"], results["lengths"]
  np.testing.assert_array_equal(lengths.min(axis=1)[:2], [1, 4])
  assert (returns[:2, -1] == 1).all() and (returns[2] == 0).all()
  assert (lengths[2] < 500).any()


def test_both_agents_are_given_the_same_worlds(monkeypatch):
  given = []

  def learn(self, rule, seeds, maps):
    given.append((rule, maps))
    return {}

  monkeypatch.setattr(ez_domains.GridWorld, "learn", learn)
  figure = FIGURES["ez/fig13"]
  for task in figure.tasks(TINY["ez/fig13"]):
    figure.run(task.settings, lambda share: None)
  assert [rule for rule, _ in given] == ["epsilon", "ez"] * 2
  for (_, one), (_, other) in (given[:2], given[2:]):
    assert len(one) == len(other) == 2
    for a, b in zip(one, other, strict=True):
      for x, y in zip(a, b, strict=True):
        np.testing.assert_array_equal(x, y)
  cells = [world.cells for _, maps in given for world in maps]
  assert (cells[0] == grid_maps.OPEN).all()
  # No obstacles among the traps, and another world for the other seed.
  assert {*np.unique(cells[-1]).tolist()} == {grid_maps.OPEN, grid_maps.TRAP}
  assert (cells[-1] != cells[-2]).any()


# -- findings ---------------------------------------------------------------------


def verdicts(figure, config, results) -> list[bool | None]:
  done = [
    types.Done(t.settings, results(t.settings), 0.0) for t in figure.tasks(config)
  ]
  return [f.held for f in figure.judge(done)]


@pytest.mark.parametrize("name", ["ez/fig12", "ez/fig13"])
def test_findings_of_density(name):
  # A world's own difficulty is much greater than what density does.
  difficulty = np.linspace(-0.3, 0.3, 20)[:, None]

  def results(shape):
    return lambda s: {
      "discounted_returns": shape(s["rule"], s["density"])
      + difficulty
      + 0.01 * np.random.default_rng(1).standard_normal((20, 4))
    }

  def as_the_paper(rule, density):
    return 0.9 - 0.9 * density if rule == "ez" else 0.5 - 0.1 * density

  def the_other_way(rule, density):
    return 0.5 + 0.1 * density if rule == "ez" else 0.9 - 0.5 * density

  figure, config = FIGURES[name], ez_obstacles.Config()
  assert verdicts(figure, config, results(as_the_paper)) == [True] * 4
  assert verdicts(figure, config, results(the_other_way)) == [False] * 4


def test_findings_of_worlds():
  figure, config = FIGURES["ez/fig11"], ez_worlds.Config(densities=(0.1, 0.3))

  def results(offset, reachable, shortest):
    return lambda s: {
      "cells": np.zeros((30, 20, 20)),
      "filled": np.full(30, s["density"] + offset),
      "reachable": np.full(30, reachable(s["density"])),
      "shortest": np.array([shortest] + [9] * 29),
    }

  good = results(0.005, lambda density: 400 - 300 * density, 1)
  assert verdicts(figure, config, good) == [True] * 5
  bad = results(0.03, lambda density: 300, -1)
  assert verdicts(figure, config, bad) == [False] * 5


# -- refusals ---------------------------------------------------------------------


@pytest.mark.parametrize("config", [ez_worlds.Config, ez_obstacles.Config])
@pytest.mark.parametrize(
  ("densities", "message"),
  [
    ((0.1,), "two or more"),
    ((0.2, 0.1), "rising order"),
    ((0.1, 0.1), "each once"),
    ((-0.1, 0.1), "at least 0"),
    ((0.0, 1.0), "has no path"),
    ((0.0, 0.97), "lower the density"),
  ],
)
def test_impossible_densities_are_refused(config, densities, message):
  shown = {} if config is ez_worlds.Config else {"shown": densities[:1]}
  with pytest.raises(ValueError, match=message):
    config(densities=densities, **shown)


def test_other_impossible_settings_are_refused():
  with pytest.raises(ValueError, match="some of the densities"):
    ez_obstacles.Config(shown=(0.12,))
  with pytest.raises(ValueError, match="shown is"):
    ez_obstacles.Config(shown=())
  with pytest.raises(ValueError, match="num_seeds has 0"):
    ez_obstacles.Config(num_seeds=0)
  with pytest.raises(ValueError, match="size has 4"):
    ez_worlds.Config(size=4)
