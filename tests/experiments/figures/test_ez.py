"""Paper 1's figures: runs of smoke size, oracles, and findings of made-up results."""

import collections
import dataclasses
from collections.abc import Sequence

import jax
import numpy as np
import pytest

from explorax.agents.tabular import training
from explorax.environments import chain as chain_lib
from explorax.environments import deep_sea, grid_maps
from explorax.experiments.figures import registry, types
from explorax.experiments.figures.ez import (
  adversarial,
  cartpole,
  chain,
  comparisons,
  cover,
  domains,
  first_visits,
  runs,
  worlds,
)

GRID = domains.GridWorld(size=5, episodes=4, time_limit=50, map_steps=40)
TRAPS = dataclasses.replace(GRID, world="traps")
# Tasks that differ in these alone trace the same functions.
ALIKE = {"epsilon", "parameter", "noise", "density", "ties", "threshold"}


@pytest.mark.parametrize("name", [x for x in registry.FIGURES if x.startswith("ez/")])
def test_a_figure_goes_from_tasks_to_a_drawing(name, monkeypatch):
  """Every kind of task is traced, not compiled; what is drawn are ones."""
  pytest.importorskip("matplotlib")
  figure = registry.FIGURES[name]
  for chosen in (figure.config, figure.quick):
    names = [task.name for task in figure.tasks(chosen)]
    assert len(set(names)) == len(names) > 1

  def trace(*args, **kwargs):
    static = {k: kwargs.pop(k) for k in list(kwargs) if k != "max_steps"}
    shapes = jax.eval_shape(
      lambda *arrays, **more: run_seeds(*args[:3], *arrays, **static, **more),
      *args[3:],
      **kwargs,
    )
    return jax.tree.map(
      lambda x: np.ones(x.shape, x.dtype), shapes._replace(learner=())
    )

  run_seeds = training.run_seeds
  monkeypatch.setattr(training, "run_seeds", trace)
  config = figure.quick
  if name == "ez/fig3":
    config = dataclasses.replace(config, domains=figure.config.domains)
  traced: dict[str, types.Results] = {}
  table = []
  for task in figure.tasks(config):
    kind = repr({k: v for k, v in task.settings.items() if k not in ALIKE})
    if kind not in traced:
      traced[kind] = figure.run(task.settings, types.Tick())
    table.append(types.Done(task.name, task.settings, traced[kind], 0.0, {}))
  assert figure.draw(config, types.Table(table)).axes
  findings = figure.judge(config, types.Table(table))
  assert findings and all(f.claim and f.measured for f in findings)
  assert all(f.held in (True, False, None) for f in findings)


# -- what is run ------------------------------------------------------------------


def learn(domain: domains.Domain, seeds: Sequence[int]) -> types.Results:
  """By ε-greedy."""
  task = domains.task("task", domain, "epsilon", seeds)
  return domains.run(task.settings, types.Tick())


def test_a_seed_gives_the_same_beside_others():
  a, b = (learn(GRID, seeds)["returns"] for seeds in ([0, 1], [1, 2]))
  np.testing.assert_array_equal(a[1], b[0])


def test_a_task_s_settings_are_the_domain_s():
  task = domains.task("name", TRAPS, "ez", range(3))
  assert domains.of(task.settings) == TRAPS and task.settings["seeds"] == [0, 1, 2]


def test_first_visits_of_straight_walks():
  # ε = 0: straight down from the top centre, and never anywhere else.
  problem = GRID.problem()
  params = problem.params._replace(goal=np.array([-1, -1]))
  results = runs.wander(
    problem._replace(params=params, shortest_episode=9),
    runs.make_rule("epsilon", 0.0),
    [0, 1],
    9,
    greedy_action=3,
  )
  expected = np.full((5, 5), 9)
  expected[1:, 2] = [0, 1, 2, 3]
  np.testing.assert_array_equal(results["first_visits"].reshape(2, 5, 5)[1], expected)
  np.testing.assert_array_equal(results["visited"][0].reshape(5, 5), expected < 9)


def test_cover_time_of_the_shortest_chain():
  # Two states: (0, down), (0, right), (1, down) and (1, right) must all be taken. An
  # episode goes down, right and down, or right and right: probabilities ½, ¼ and ¼.
  settings = {"law": "exponential", "parameter": 0.0, "size": 2, "cap": 10_000}
  settings |= {"steps": 200, "seeds": list(range(400))}
  steps = cover._run(settings, types.Tick())["cover_steps"]
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


def test_the_bound_of_the_zeta_law():
  sizes = np.array([4, 10])
  # ζ(2) = π²/6; |A| = 2.
  bound = cover._bound("zeta", 2.0, sizes)
  np.testing.assert_allclose(bound, 2 * sizes**2 * np.pi**2 / 6, rtol=1e-6)
  geometric = cover._bound("exponential", 0.5, sizes)
  np.testing.assert_allclose(geometric, 4 * 2.0 ** (sizes - 1))


def test_cells_of_the_continuous_states():
  @dataclasses.dataclass
  class State:
    position: object
    velocity: float = 0.0

  car = runs.Cell(domains.in_mountain_car, 4)
  assert car(State(-1.2, -0.07), None) == 0
  assert car(State(0.5, 0.07), None) == 15
  assert car(State(-0.3, 0.01), None) == 2 * 4 + 2
  pole = runs.Cell(domains.in_cartpole, 4)
  # Angles are wrapped: 2π + 0.1 is just beyond upright, in the third row.
  assert pole(State(np.array([0.1, 2 * np.pi + 0.1])), None) == 2 * 4 + 2
  assert pole(State(np.array([9.0, -3.0])), None) == 3


def test_blocks_of_episodes():
  x, means = comparisons.blocks(np.array([[1.0, 3.0, 5.0, 7.0]]), 2)
  np.testing.assert_allclose(x, [1.5, 3.5])
  np.testing.assert_allclose(means, [[2.0, 6.0]])


def test_the_default_chain_pays_the_most_where_its_config_says():
  config = chain.Config()
  worth = config.discount ** np.arange(config.size)
  worth = worth * chain_lib.make_rewards(config.size)
  assert np.argmax(worth) == 53
  assert worth[53] == pytest.approx(5.28, abs=0.005)


def test_each_seed_has_effects_of_its_own():
  plain = domains.DeepSea(size=2, episodes=200)
  permuted = dataclasses.replace(plain, permuted=True)
  one, other = (learn(sea, range(64))["episodes"] for sea in (plain, permuted))
  # Those positions that can be reached, of two rows.
  right = np.stack([deep_sea.action_mapping(seed, 2) for seed in range(64)])
  same = right[:, [0, 1, 1], [0, 0, 1]].all(axis=1)
  assert 0 < same.sum() < 64
  np.testing.assert_array_equal(other[same], one[same])
  assert (other[~same] != one[~same]).any()
  # Seeds of another range are the same seeds.
  later = learn(permuted, range(32, 96))["episodes"]
  np.testing.assert_array_equal(later[:32], other[32:])


# -- worlds -----------------------------------------------------------------------


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


@pytest.mark.parametrize("kind", domains.WORLDS)
def test_ways_through_worlds(kind):
  settings = {"kind": kind, "density": 0.4, "size": 12, "seeds": list(range(8))}
  results = worlds._run(settings, types.Tick())
  for seed in range(8):
    world = grid_maps.Map(*(results[name][seed] for name in grid_maps.Map._fields))
    steps = count_steps(world)
    assert results["shortest"][seed] == steps[tuple(world.goal.tolist())]
    assert results["reachable"][seed] == len(steps)
    filled = sum(cell != grid_maps.OPEN for cell in world.cells.flat) / 144
    assert results["filled"][seed] == pytest.approx(filled)


def written(lines: list[str]) -> grid_maps.Map:
  """A map as it is written: open, obstacles and traps, the start and the goal."""
  text = "".join(lines)
  cells = np.reshape([max(".#x".find(c), 0) for c in text], (len(lines), -1))
  start, goal = (np.divmod(text.index(c), len(lines[0])) for c in "SG")
  return grid_maps.Map(cells, np.array(start), np.array(goal))


def test_no_way_is_seen():
  cut = written(["S.#..", "..#..", "..#..", "..#..", "G.#.."])
  cut = cut._replace(goal=np.array([0, 4]))
  expected = -np.ones((5, 5), int)
  expected[:, :2] = np.arange(5)[:, None] + np.arange(2)
  np.testing.assert_array_equal(worlds._distances(cut), expected)


def test_a_denser_world_has_all_that_the_thinner_one_has():
  thin, dense = (domains.draw_map("traps", d, 10, seed=3) for d in (0.1, 0.3))
  assert (dense.cells[thin.cells == grid_maps.TRAP] == grid_maps.TRAP).all()
  assert (dense.cells == grid_maps.TRAP).sum() > (thin.cells == grid_maps.TRAP).sum()


def test_each_seed_learns_in_its_own_world(monkeypatch):
  walls = ["#####"] * 4
  rows = ("SG###", "S...G", "Sx###")
  maps = [written([row, *walls]) for row in rows[:2]]
  # A trap is all there is beside the start; the goal is out of reach.
  trap = written(["Sx###", "G####", *walls[:3]])
  maps.append(trap._replace(goal=np.array([4, 4])))
  asked = []

  def draw_map(world, density, size, seed):
    asked.append((world, density, size))
    return maps[seed]

  monkeypatch.setattr(domains, "draw_map", draw_map)
  domain = dataclasses.replace(TRAPS, density=0.3, episodes=40, time_limit=500)
  returns = learn(domain, range(3))["returns"]
  assert asked == [("traps", 0.3, 5)] * 3
  assert (returns[:2, -1] == 1).all() and (returns[2] == 0).all()


# -- findings ---------------------------------------------------------------------


def first_visits_of(visits: np.ndarray, early: bool) -> types.Results:
  # The last cell cannot be reached, and must not count.
  visits[:, -1] = 0.0 if not early else 1000.0
  return {"first_visits": visits, "visited": np.arange(4) < np.full((20, 1), 3)}


def test_findings_of_first_visits(verdicts):
  def results(early, reach):
    def of(settings):
      first = np.full((10, 64), 5 if settings["rule"] == early else 90)
      visited = np.full((10, 64), settings["rule"] != "epsilon" or reach)
      return {"first_visits": first, "visited": visited}

    return of

  config = first_visits.Config(size=8)
  assert verdicts("ez/fig1", results("ez", False), config) == [True] * 6
  assert verdicts("ez/fig1", results("epsilon", True), config) == [False] * 6


def test_findings_of_the_chain(verdicts, around):
  def results(shape):
    return lambda s: {"discounted_returns": around(shape(s["law"], s["parameter"]))}

  def inverted_u(law, x):
    return 3 - abs(x - 2) if law == "zeta" else 1.0

  def rising(law, x):
    return {"zeta": x, "uniform": 8.0, "exponential": 9.0}[law]

  assert verdicts("ez/fig2", results(inverted_u)) == [True] * 4
  assert verdicts("ez/fig2", results(rising)) == [False] * 4


@pytest.mark.parametrize(("better", "held"), [("ez", True), ("epsilon", False)])
def test_findings_of_the_small_domains(verdicts, around, better, held):
  per_size = {True: lambda n: n**2, False: lambda n: min(2**n, 20_000)}

  def results(settings):
    good = settings["rule"] == better
    if settings["what"] == "map":
      return first_visits_of(around(10.0 if good else 90.0), good)
    if settings["domain"] == "deep_sea":
      return {"episodes": np.full(20, per_size[good](settings["size"]))}
    return {"discounted_returns": around(0.28 if good else 0.1)}

  assert verdicts("ez/fig3", results) == [held] * 9


@pytest.mark.parametrize(("better", "held"), [("ez", True), ("epsilon", False)])
def test_findings_of_cartpole(verdicts, make_up, around, better, held):
  def results(settings):
    good = settings["rule"] == better
    if settings["what"] == "map":
      return first_visits_of(around(10.0 if good else 90.0), good)
    return {"returns": around(100.0 if good else 1.0, seeds=len(settings["seeds"]))}

  config = cartpole.Config(num_seeds=5)
  learning = make_up("ez/fig3_cartpole", results, config).where(what="learning")
  seeds = [
    (t.settings["basis"], t.settings["seeds"]) for t in learning.where(rule="ez")
  ]
  full, total = ("full", [0, 1]), ("total", [0, 1, 2, 3, 4])
  assert seeds == [full, ("full", [2, 3]), ("full", [4]), total]
  assert verdicts("ez/fig3_cartpole", results, config) == [held] * 3


def test_findings_of_noise(verdicts, around):
  def results(shape):
    return lambda s: {"discounted_returns": around(shape(s["rule"], s["noise"]))}

  def as_the_paper(rule, noise):
    best = 0.1 if rule == "ez" else 0.3
    return (0.7 if rule == "ez" else 0.5) - abs(noise - best)

  def rising(rule, noise):
    return noise + (0 if rule == "ez" else 0.5)

  def falling(rule, noise):
    return (0.7 if rule == "ez" else 0.9) - 0.3 * noise

  assert verdicts("ez/fig7", results(as_the_paper)) == [True] * 4
  assert verdicts("ez/fig7", results(rising)) == [False, True, False, False]
  assert verdicts("ez/fig7", results(falling)) == [False, False, True, False]
  assert verdicts("ez/fig8", results(falling)) == [True, True]
  assert verdicts("ez/fig8", results(rising)) == [False, False]


@pytest.mark.parametrize("name", ["ez/fig12", "ez/fig13"])
def test_findings_of_density(verdicts, around, name):
  # A world's own difficulty is much greater than what density does.
  difficulty = np.linspace(-0.3, 0.3, 20)[:, None]

  def results(shape):
    return lambda s: {
      "discounted_returns": around(shape(s["rule"], s["density"])) + difficulty
    }

  def as_the_paper(rule, density):
    return 0.9 - 0.9 * density if rule == "ez" else 0.5 - 0.1 * density

  def the_other_way(rule, density):
    return 0.5 + 0.1 * density if rule == "ez" else 0.9 - 0.5 * density

  assert verdicts(name, results(as_the_paper)) == [True] * 4
  assert verdicts(name, results(the_other_way)) == [False] * 4


def test_findings_of_worlds(verdicts):
  config = worlds.Config(densities=(0.1, 0.3))

  def results(offset, reachable, shortest):
    return lambda s: {
      "cells": np.zeros((30, 20, 20)),
      "filled": np.full(30, s["density"] + offset),
      "reachable": np.full(30, reachable(s["density"])),
      "shortest": np.array([shortest] + [9] * 29),
    }

  good = results(0.005, lambda density: 400 - 300 * density, 1)
  assert verdicts("ez/fig11", good, config) == [True] * 5
  bad = results(0.03, lambda density: 300, -1)
  assert verdicts("ez/fig11", bad, config) == [False] * 5


def test_findings_of_the_adversarial_sea(verdicts):
  def results(episodes):
    def of(settings):
      number = episodes(settings["rule"], settings["permuted"], settings["size"])
      found = np.full(20, number < 20_000)
      # Half of the seeds need a few more with one rule, half with the other.
      odd = np.arange(20) % 2 == (settings["rule"] == "ez")
      number = np.where(found & odd, number + 1, min(number, 20_000))
      return {"episodes": number, "stopped": found}

    return of

  def as_the_paper(rule, permuted, size):
    return 10 * size**2 if rule == "ez" and not permuted else 12**size

  def the_other_way(rule, permuted, size):
    return 10 * size**2 if rule == "ez" and permuted else 12**size

  config = adversarial.Config(num_seeds=20)
  assert verdicts("ez/fig14", results(as_the_paper), config) == [True] * 3
  assert verdicts("ez/fig14", results(the_other_way), config) == [False] * 3
  never = results(lambda rule, permuted, size: 10**9)
  assert verdicts("ez/fig14", never, config) == [None, None, False]


def test_findings_of_cover_times(verdicts):
  def results(shape):
    def of(settings):
      steps = min(shape(settings["law"] == "zeta", settings["size"]), settings["steps"])
      return {"cover_steps": np.full(5, steps)}

    return of

  as_the_theory = results(lambda zeta, n: 4 * n**2 if zeta else 2**n)
  the_other_way = results(lambda zeta, n: 2**n if zeta else 4 * n**2)
  assert verdicts("ez/cover", as_the_theory) == [True] * 3
  assert verdicts("ez/cover", the_other_way) == [False] * 3
  assert verdicts("ez/cover", results(lambda zeta, n: 10**9)) == [None] * 3


@pytest.mark.parametrize("good", [True, False])
def test_findings_of_r_max(verdicts, around, good):
  def results(settings):
    is_r_max = settings["rule"] == "r_max"
    return {"discounted_returns": around(0.7 if is_r_max == good else 0.2)}

  assert verdicts("ez/fig15", results) == [good, None]
