"""Paper 1's figures: runs of smoke size, oracles, and findings of made-up results."""

import collections
import dataclasses
from collections.abc import Sequence

import jax
import numpy as np
import pytest

from explorax.environments import chain as chain_lib
from explorax.environments import deep_sea, grid_maps
from explorax.experiments import overrides
from explorax.papers import registry, types
from explorax.papers.ez import (
  cartpole,
  chain,
  comparisons,
  cover,
  domains,
  runs,
  worlds,
)
from explorax.papers.tabular import training


def around(mean: float, seeds: int = 20, episodes: int = 4) -> np.ndarray:
  """`[S, E]` of a narrow spread."""
  rng = np.random.default_rng(1)
  return mean + 0.01 * rng.standard_normal((seeds, episodes))


GRID = domains.GridWorld(size=5, episodes=4, time_limit=50, map_steps=40)
TRAPS = dataclasses.replace(GRID, world="traps")
# Tasks that differ in these alone trace the same functions.
ALIKE = {"epsilon", "parameter", "noise", "density", "ties", "threshold"}


@pytest.mark.parametrize("name", [x for x in registry.FIGURES if x.startswith("ez/")])
def test_a_figure_goes_from_tasks_to_a_drawing(name, monkeypatch):
  """Every kind of task is traced, not compiled; what is drawn are ones."""
  pytest.importorskip("matplotlib")
  figure = registry.FIGURES[name]

  def trace(parts, options, sequential, per_seed, *_):
    function = training._of_seeds(parts, dict(options), sequential, per_seed)

    def ones(*arrays):
      shapes = jax.eval_shape(function, *arrays)._replace(learner=())
      return jax.tree.map(lambda x: np.ones(x.shape, x.dtype), shapes)

    return ones

  monkeypatch.setattr(training, "_compile", trace)
  config = figure.quick
  if name == "ez/fig3":
    config = dataclasses.replace(config, domains=figure.config.domains)
  traced: dict[str, types.Results] = {}
  table = []
  for task in figure.tasks(config):
    kind = repr({k: v for k, v in task.settings.items() if k not in ALIKE})
    if kind not in traced:
      traced[kind] = figure.run(task.settings, types.TaskContext())
    table.append(types.CompletedTask(task.name, task.settings, traced[kind], 0.0, {}))
  assert figure.draw(config, types.Table(table)).axes
  findings = figure.judge(config, types.Table(table))
  assert findings and all(f.claim and f.measured for f in findings)
  assert all(f.held in (True, False, None) for f in findings)


# -- what is run ------------------------------------------------------------------


def learn(domain: domains.Domain, seeds: Sequence[int]) -> types.Results:
  """By ε-greedy."""
  task = domains.task("task", domain, "epsilon", seeds)
  return domains.run(task.settings, types.TaskContext())


def test_a_seed_gives_the_same_beside_others():
  a, b = (learn(GRID, seeds)["returns"] for seeds in ([0, 1], [1, 2]))
  np.testing.assert_array_equal(a[1], b[0])


def _plain_q_learning(domain: domains.GridWorld, rng: np.random.Generator):
  """Mean discounted return of ε-greedy Q-learning, in plain loops and float64."""
  size, goal = domain.size, (domain.size - 2, domain.size - 2)
  moves = ((0, -1), (0, 1), (-1, 0), (1, 0))
  spread = 1e-6 if domain.ties == "fixed" else 0.0
  q = spread * rng.standard_normal((size, size, 4))
  returns = []
  for _ in range(domain.episodes):
    row, column = 1, size // 2
    earned = 0.0
    for step in range(domain.time_limit):
      values = list(q[row, column])
      best = [a for a in range(4) if values[a] == max(values)]
      greedy = best[rng.integers(len(best))] if domain.ties == "random" else best[0]
      action = rng.integers(4) if rng.random() < domain.epsilon else greedy
      down, right = moves[action]
      to = (min(max(row + down, 0), size - 1), min(max(column + right, 0), size - 1))
      target = 1.0 if to == goal else domain.discount * q[to].max()
      q[row, column, action] += domain.step_size * (target - q[row, column, action])
      row, column = to
      if to == goal:
        earned = domain.discount**step
        break
    returns.append(earned)
  return np.mean(returns)


@pytest.mark.parametrize("ties", domains.TIES)
def test_ties_against_plain_loops(ties):
  domain = dataclasses.replace(GRID, ties=ties, epsilon=0.3, episodes=10, time_limit=30)
  rng = np.random.default_rng(0)
  expected = np.array([_plain_q_learning(domain, rng) for _ in range(300)])
  ours = learn(domain, range(300))["discounted_returns"].mean(axis=1)
  error = np.hypot(expected.std(), ours.std()) / np.sqrt(300)
  assert abs(ours.mean() - expected.mean()) < 4 * error
  # What tells the readings apart.
  low, high = {"first": (0, 0.02), "fixed": (0.3, 0.5), "random": (0.6, 0.8)}[ties]
  assert low < ours.mean() < high


def test_the_deep_sea_with_first_ties_takes_what_exploration_takes():
  """The greedy action is left: N draws of ε/2 in a row, 8³ = 512 episodes at N = 3."""
  domain = domains.DeepSea(size=3, ties="first")
  episodes = learn(domain, range(100))["episodes"]
  assert abs(episodes.mean() - 512) < 4 * 512 / np.sqrt(100)


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
  steps = cover._run(settings, types.TaskContext())["cover_steps"]
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
  results = worlds._run(settings, types.TaskContext())
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


def test_unreachable_positions_have_no_distance():
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


def _first_visits(good: bool) -> types.Results:
  """Of 20 trials; the last cell of four cannot be reached, and must not count."""
  visits = around(10.0 if good else 90.0)
  visits[:, -1] = 1000.0 if good else 0.0
  return {"first_visits": visits, "visited": np.arange(4) < np.full((20, 1), 3)}


def _best(rule):
  """One rule is better at all that figure 3 shows."""

  def results(settings):
    good = settings["rule"] == rule
    if settings["what"] == "map":
      return _first_visits(good)
    if settings["domain"] == "deep_sea":
      n = settings["size"]
      return {"episodes": np.full(20, n**2 if good else min(2**n, 20_000))}
    value = around(0.28 if good else 0.1, seeds=len(settings["seeds"]))
    return {"discounted_returns": value, "returns": value}

  return results


def _narrow(early, reach):
  """Figure 1's: the rule that is early, and whether ε-greedy gets far."""

  def results(settings):
    first = np.full((10, 64), 5 if settings["rule"] == early else 90)
    visited = np.full((10, 64), settings["rule"] != "epsilon" or reach)
    return {"first_visits": first, "visited": visited}

  return results


def _learnt(mean):
  return lambda s: {"discounted_returns": around(mean(s.get("rule") == "ez", s))}


def _dense(mean):
  # A world's own difficulty is much greater than what density does.
  difficulty = np.linspace(-0.3, 0.3, 20)[:, None]
  return lambda s: {
    "discounted_returns": around(mean(s["rule"] == "ez", s["density"])) + difficulty
  }


def _found(episodes):
  """(whether εz-greedy, whether permuted, size) → episodes to the first goal."""

  def results(settings):
    number = episodes(settings["rule"] == "ez", settings["permuted"], settings["size"])
    found = np.full(20, number < 20_000)
    # Half of the seeds need a few more with one rule, half with the other.
    odd = np.arange(20) % 2 == (settings["rule"] == "ez")
    number = np.where(found & odd, number + 1, min(number, 20_000))
    return {"episodes": number, "stopped": found}

  return results


def _covered(steps):
  return lambda s: {
    "cover_steps": np.full(5, min(steps(s["law"] == "zeta", s["size"]), s["steps"]))
  }


def _drawn(offset, reachable, shortest):
  return lambda s: {
    "filled": np.full(30, s["density"] + offset),
    "reachable": np.full(30, reachable(s["density"])),
    "shortest": np.array([shortest] + [9] * 29),
  }


FALLING = _learnt(lambda ez, s: (0.7 if ez else 0.9) - 0.3 * s["noise"])
RISING = _learnt(lambda ez, s: s["noise"] + (0 if ez else 0.5))
T, F = True, False


@pytest.mark.parametrize(
  ("name", "changes", "results", "held"),
  [
    ("ez/fig1", ["size=8"], _narrow("ez", reach=False), [T] * 6),
    ("ez/fig1", ["size=8"], _narrow("epsilon", reach=True), [F] * 6),
    (  # An inverted U over μ, or what rises with it.
      "ez/fig2",
      [],
      _learnt(lambda _, s: 3 - abs(s["parameter"] - 2) if s["law"] == "zeta" else 1.0),
      [T] * 4,
    ),
    (
      "ez/fig2",
      [],
      _learnt(
        lambda _, s: {"zeta": s["parameter"], "uniform": 8, "exponential": 9}[s["law"]]
      ),
      [None, F, F, F],  # The best is the greatest.
    ),
    ("ez/fig3", [], _best("ez"), [T] * 10),
    ("ez/fig3", [], _best("epsilon"), [F] * 10),
    ("ez/fig3_cartpole", ["num_seeds=5"], _best("ez"), [T] * 3),
    ("ez/fig3_cartpole", ["num_seeds=5"], _best("epsilon"), [F] * 3),
    (
      "ez/fig7",
      [],
      _learnt(
        lambda ez, s: (0.7 if ez else 0.5) - abs(s["noise"] - (0.1 if ez else 0.3))
      ),
      [T] * 5,
    ),
    ("ez/fig7", [], RISING, [F, T, None, F, F]),
    ("ez/fig7", [], FALLING, [F, F, T, F, F]),
    ("ez/fig8", [], FALLING, [T, T]),
    ("ez/fig8", [], RISING, [F, F]),
    (
      "ez/fig11",
      ["densities=0.1,0.3"],
      _drawn(0.005, lambda density: 400 - 300 * density, 1),
      [T] * 5,
    ),
    ("ez/fig11", ["densities=0.1,0.3"], _drawn(0.03, lambda _: 300, -1), [F] * 5),
    (
      "ez/fig12",
      [],
      _dense(lambda ez, d: 0.9 - 0.8 * d if ez else 0.3 + d / 10),
      [T] * 5,
    ),
    (
      "ez/fig13",
      [],
      _dense(lambda ez, d: 0.5 + d / 10 if ez else 0.9 - d / 2),
      [F] * 5,
    ),
    (
      "ez/fig14",
      ["num_seeds=20"],
      _found(
        lambda ez, permuted, n: [12, 14][ez] ** n if permuted or not ez else 10 * n**2
      ),
      [T] * 3,
    ),
    (
      "ez/fig14",
      ["num_seeds=20"],
      _found(
        lambda ez, permuted, n: 10 * n**2 if ez and permuted else [12, 14][ez] ** n
      ),
      [F] * 3,
    ),
    ("ez/fig14", ["num_seeds=20"], _found(lambda *_: 10**9), [None] * 3),
    (
      "ez/fig15",
      [],
      _learnt(lambda _, s: 0.7 if s["rule"] == "r_max" else 0.2),
      [T, T],
    ),
    (
      "ez/fig15",
      [],
      _learnt(lambda _, s: 0.2 if s["rule"] == "r_max" else 0.7),
      [F, F],
    ),
    ("ez/cover", [], _covered(lambda zeta, n: 4 * n**2 if zeta else 2**n), [T] * 3),
    ("ez/cover", [], _covered(lambda zeta, n: 2**n if zeta else 4 * n**2), [F] * 3),
    ("ez/cover", [], _covered(lambda *_: 10**9), [None] * 3),
  ],
)
def test_claims_of_made_up_results(verdicts, name, changes, results, held):
  config = overrides.apply(registry.FIGURES[name].config, changes)
  assert verdicts(name, results, config) == held


def test_cartpole_s_seeds_are_in_small_tasks():
  tasks = registry.FIGURES["ez/fig3_cartpole"].tasks(cartpole.Config(num_seeds=5))
  learning = [task.settings for task in tasks if task.settings["what"] == "learning"]
  seeds = [(s["basis"], s["seeds"]) for s in learning if s["rule"] == "ez"]
  full, total = ("full", [0, 1]), ("total", [0, 1, 2, 3, 4])
  assert seeds == [full, ("full", [2, 3]), ("full", [4]), total]
