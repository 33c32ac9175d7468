"""Paper 1's small figures: runs of smoke size, and findings of made-up results."""

import dataclasses

import numpy as np
import pytest

from explorax.environments import chain, gridworld
from explorax.experiments.figures import (
  ez_cartpole,
  ez_chain,
  ez_cover,
  ez_domains,
  ez_first_visits,
  ez_noise,
  ez_r_max,
  ez_runs,
  ez_small,
  types,
)

FIGURES = {
  figure.name: figure
  for module in (
    ez_first_visits,
    ez_chain,
    ez_small,
    ez_cartpole,
    ez_noise,
    ez_cover,
    ez_r_max,
  )
  for figure in module.FIGURES
}
# Smaller yet than the quick versions: what is tested is that the parts fit.
TINY_GRID = ez_domains.GridWorld(size=5, episodes=4, time_limit=50, map_steps=40)
TINY_CAR = ez_domains.MountainCar(episodes=2, order=1, time_limit=50, map_steps=50)
TINY = {
  "ez/fig1": ez_first_visits.Config(epsilons=(1.0,), size=5, steps=20, num_seeds=3),
  "ez/fig2": ez_chain.Config(
    zeta=(1.0, 2.0), exponential=(0.5,), uniform=(1,), size=5, episodes=5, num_seeds=3
  ),
  "ez/fig3": ez_small.Config(
    sizes=(3,),
    deep_sea=ez_domains.DeepSea(size=3, episodes=20, map_steps=20),
    gridworld=TINY_GRID,
    mountain_car=TINY_CAR,
    num_seeds=2,
  ),
  "ez/fig3_cartpole": ez_cartpole.Config(
    cartpole=ez_cartpole.Cartpole(order=1, time_limit=20, map_steps=40),
    episodes=2,
    total=ez_cartpole.Cartpole(basis="total", order=1, time_limit=20),
    total_episodes=2,
    num_seeds=3,
  ),
  "ez/fig7": ez_noise.GridWorldConfig(
    noises=(0.0, 0.5), shown=(0.0,), gridworld=TINY_GRID, num_seeds=2
  ),
  "ez/fig8": ez_noise.MountainCarConfig(
    noises=(0.0, 1.0), shown=(0.0, 1.0), mountain_car=TINY_CAR, num_seeds=2
  ),
  "ez/cover": ez_cover.Config(sizes=(2, 3, 4), steps=200, num_seeds=3),
  "ez/fig15": ez_r_max.Config(gridworld=TINY_GRID, num_seeds=2),
}


# One task is run of those that differ in these alone: each costs a compilation.
ALIKE = {"rule", "epsilon", "law", "parameter", "noise", "shown", "seeds", "agent"}
ALIKE_TOO = {"ez/cover": {"size"}}


def compute(figure: types.Figure, config) -> list[types.Done]:
  """The results of all tasks, most of them borrowed from those alike."""
  ran: dict[str, types.Results] = {}
  done = []
  for task in figure.tasks(config):
    alike = ALIKE | ALIKE_TOO.get(figure.name, set())
    kept = {k: v for k, v in task.settings.items() if k not in alike}
    if "setup" in kept:
      kept["setup"] = {k: v for k, v in kept["setup"].items() if k != "ties"}
    if "threshold" in task.settings:
      kept["threshold"] = "any"
    key = repr(kept)
    if key not in ran:
      ran[key] = figure.run(task.settings, lambda share: None)
    done.append(types.Done(task.settings, ran[key], 0.0))
  return done


@pytest.mark.parametrize("name", sorted(FIGURES))
def test_goes_from_tasks_to_a_drawing(name):
  pytest.importorskip("matplotlib")
  figure = FIGURES[name]
  for config in (figure.config, figure.quick):
    names = [task.name for task in figure.tasks(config)]
    assert len(set(names)) == len(names) > 1
  done = compute(figure, TINY[name])
  assert figure.draw(done).axes
  findings = figure.judge(done)
  assert findings and all(f.claim and f.measured for f in findings)
  assert all(f.held in (True, False, None) for f in findings)


def test_every_figure_has_a_test():
  assert set(FIGURES) == set(TINY)


# -- what is run ------------------------------------------------------------------


def test_a_seed_gives_the_same_beside_others():
  def learn(seeds):
    return TINY_GRID.learn("epsilon", seeds)["lengths"]

  np.testing.assert_array_equal(learn((0, 2))[1], learn((1, 3))[0])


def test_first_visits_of_straight_walks():
  # ε = 0: straight down from the top centre, and never anywhere else.
  environment = gridworld.GridWorld(5)
  params = environment.default_params()._replace(goal=np.array([-1, -1]))
  results = ez_runs.wander(
    environment,
    ez_runs.make_rule("epsilon", 0.0),
    ez_runs.GridCell(5),
    25,
    num_seeds=2,
    num_steps=9,
    shortest_episode=9,
    greedy_action=3,
    environment_params=params,
  )
  expected = np.full((5, 5), 9)
  expected[1:, 2] = [0, 1, 2, 3]
  np.testing.assert_array_equal(results["first_visits"].reshape(2, 5, 5)[1], expected)
  np.testing.assert_array_equal(results["visited"][0].reshape(5, 5), expected < 9)


def test_cover_time_of_the_shortest_chain():
  # Two states: (0, down), (0, right), (1, down) and (1, right) must all be taken. An
  # episode goes down, right and down, or right and right: probabilities ½, ¼ and ¼.
  figure = FIGURES["ez/cover"]
  config = ez_cover.Config(sizes=(2, 3, 4), steps=200, num_seeds=400)
  tasks = [t for t in figure.tasks(config) if t.settings["size"] == 2]
  (task,) = [t for t in tasks if t.settings["parameter"] == 0.0]
  steps = figure.run(task.settings, lambda share: None)["cover_steps"]
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
  bound = ez_cover._bound("zeta", 2.0, sizes)
  np.testing.assert_allclose(bound, 2 * sizes**2 * np.pi**2 / 6, rtol=1e-6)
  geometric = ez_cover._bound("exponential", 0.5, sizes)
  np.testing.assert_allclose(geometric, 4 * 2.0 ** (sizes - 1))


def test_cells_of_the_continuous_states():
  @dataclasses.dataclass
  class State:
    position: object
    velocity: float = 0.0

  car = ez_domains.MountainCarCell(4)
  assert car(State(-1.2, -0.07), None) == 0
  assert car(State(0.5, 0.07), None) == 15
  assert car(State(-0.3, 0.01), None) == 2 * 4 + 2
  pole = ez_cartpole.CartpoleCell(4)
  # Angles are wrapped: 2π + 0.1 is just beyond upright, in the third row.
  assert pole(State(np.array([0.1, 2 * np.pi + 0.1])), None) == 2 * 4 + 2
  assert pole(State(np.array([9.0, -3.0])), None) == 3


def test_blocks_of_episodes():
  x, means = ez_runs.blocks(np.array([[1.0, 3.0, 5.0, 7.0]]), 2)
  np.testing.assert_allclose(x, [1.5, 3.5])
  np.testing.assert_allclose(means, [[2.0, 6.0]])


def test_laws_of_the_chain():
  assert ez_chain.make_rule("uniform", 4, epsilon=0.1, cap=99).cap == 4
  assert ez_chain.make_rule("zeta", 3.0, epsilon=0.1, cap=99).mu == 3.0
  rule = ez_chain.make_rule("exponential", 0.5, epsilon=0.1, cap=99)
  assert (rule.decay, rule.cap, rule.epsilon) == (0.5, 99, 0.1)


def test_the_default_chain_pays_the_most_where_its_config_says():
  config = ez_chain.Config()
  worth = config.discount ** np.arange(config.size) * chain.make_rewards(config.size)
  assert np.argmax(worth) == 53
  assert worth[53] == pytest.approx(5.28, abs=0.005)


# -- findings ---------------------------------------------------------------------


def around(mean: float, seeds: int = 20, episodes: int = 4) -> np.ndarray:
  """`[S, E]`, of a narrow spread."""
  rng = np.random.default_rng(1)
  return mean + 0.01 * rng.standard_normal((seeds, episodes))


def first_visits(early: bool) -> types.Results:
  visits = around(10.0 if early else 90.0)
  # The last cell cannot be reached, and must not count.
  visits[:, -1] = 0.0 if not early else 1000.0
  return {"first_visits": visits, "visited": np.arange(4) < np.full((20, 1), 3)}


def made_up(figure, config, results) -> list[types.Done]:
  """Every task with what `results` says of its settings."""
  return [
    types.Done(t.settings, results(t.settings), 0.0) for t in figure.tasks(config)
  ]


def verdicts(figure, config, results) -> list[bool | None]:
  return [f.held for f in figure.judge(made_up(figure, config, results))]


def test_findings_of_first_visits():
  figure, config = FIGURES["ez/fig1"], ez_first_visits.Config(size=8)

  def results(early, reach):
    def of(settings):
      first = np.full((10, 64), 5 if settings["rule"] == early else 90)
      visited = np.full((10, 64), settings["rule"] != "epsilon" or reach)
      return {"first_visits": first, "visited": visited}

    return of

  assert verdicts(figure, config, results("ez", False)) == [True] * 6
  assert verdicts(figure, config, results("epsilon", True)) == [False] * 6


def test_findings_of_the_chain():
  figure, config = FIGURES["ez/fig2"], ez_chain.Config()

  def results(settings, shape):
    law, x = settings["law"], settings["parameter"]
    return {"discounted_returns": around(shape(law, x))}

  def inverted_u(law, x):
    return 3 - abs(x - 2) if law == "zeta" else 1.0

  def rising(law, x):
    return {"zeta": x, "uniform": 8.0, "exponential": 9.0}[law]

  good = verdicts(figure, config, lambda s: results(s, inverted_u))
  assert good == [True, True, True, True]
  bad = verdicts(figure, config, lambda s: results(s, rising))
  assert bad == [False, False, False, False]


def test_findings_of_the_small_domains():
  figure, config = FIGURES["ez/fig3"], ez_small.Config()
  per_size = {"ez": lambda n: n**2, "epsilon": lambda n: min(2**n, 20_000)}

  def results(better):
    worse = "epsilon" if better == "ez" else "ez"
    names = {better: "ez", worse: "epsilon"}

    def of(settings):
      name = names[settings["rule"]]
      if settings["what"] == "map":
        return first_visits(name == "ez")
      if settings["domain"] == "deep_sea":
        episodes = per_size[name](settings["setup"]["size"])
        return {"episodes": np.full(20, episodes)}
      return {"discounted_returns": around(0.28 if name == "ez" else 0.1)}

    return of

  assert verdicts(figure, config, results("ez")) == [True] * 9
  assert verdicts(figure, config, results("epsilon")) == [False] * 9


@pytest.mark.parametrize(("better", "held"), [("ez", True), ("epsilon", False)])
def test_findings_of_cartpole(better, held):
  def results(settings):
    good = settings["rule"] == better
    if settings["what"] == "map":
      return first_visits(good)
    return {"returns": around(100.0 if good else 1.0, seeds=2)}

  figure = FIGURES["ez/fig3_cartpole"]
  config = ez_cartpole.Config(num_seeds=5)
  learning = [t for t in figure.tasks(config) if t.settings["what"] == "learning"]
  seeds = [
    (t.settings["setup"]["basis"], *t.settings["seeds"])
    for t in learning
    if t.settings["rule"] == "ez"
  ]
  assert seeds == [("full", 0, 2), ("full", 2, 4), ("full", 4, 5), ("total", 0, 5)]
  assert verdicts(figure, config, results) == [held, held, held]


def test_findings_of_noise():
  def results(shape):
    return lambda s: {"discounted_returns": around(shape(s["rule"], s["noise"]))}

  def as_the_paper(rule, noise):
    best = 0.1 if rule == "ez" else 0.3
    return (0.7 if rule == "ez" else 0.5) - abs(noise - best)

  def rising(rule, noise):
    return noise + (0 if rule == "ez" else 0.5)

  def falling(rule, noise):
    return (0.7 if rule == "ez" else 0.9) - 0.3 * noise

  figure, config = FIGURES["ez/fig7"], ez_noise.GridWorldConfig()
  assert verdicts(figure, config, results(as_the_paper)) == [True] * 4
  assert verdicts(figure, config, results(rising)) == [False, True, False, False]
  assert verdicts(figure, config, results(falling)) == [False, False, True, False]
  figure, config = FIGURES["ez/fig8"], ez_noise.MountainCarConfig()
  assert verdicts(figure, config, results(falling)) == [True, True]
  assert verdicts(figure, config, results(rising)) == [False, False]


def test_findings_of_cover_times():
  figure, config = FIGURES["ez/cover"], ez_cover.Config()

  def results(shape):
    def of(settings):
      law = "zeta" if settings["law"] == "zeta" else "other"
      steps = min(shape(law, settings["size"]), settings["steps"])
      return {"cover_steps": np.full(5, steps)}

    return of

  def as_the_theory(law, n):
    return 4 * n**2 if law == "zeta" else 2**n

  def the_other_way(law, n):
    return 4 * n**2 if law != "zeta" else 2**n

  assert verdicts(figure, config, results(as_the_theory)) == [True] * 3
  assert verdicts(figure, config, results(the_other_way)) == [False] * 3
  assert verdicts(figure, config, results(lambda law, n: 10**9)) == [None] * 3


def test_findings_of_r_max():
  figure, config = FIGURES["ez/fig15"], ez_r_max.Config()

  def results(good):
    def of(settings):
      r_max = "threshold" in settings
      return {"discounted_returns": around(0.7 if r_max == good else 0.2)}

    return of

  assert verdicts(figure, config, results(True)) == [True, None]
  assert verdicts(figure, config, results(False)) == [False, None]


# -- refusals ---------------------------------------------------------------------


@pytest.mark.parametrize(
  ("make", "message"),
  [
    (lambda: ez_first_visits.Config(epsilons=()), "epsilons is"),
    (lambda: ez_first_visits.Config(epsilons=(1.5,)), "from 0 to 1"),
    (lambda: ez_first_visits.Config(size=4), "size has 4"),
    (lambda: ez_chain.Config(exponential=(1.0,)), "below 1"),
    (lambda: ez_chain.Config(uniform=(0,)), "uniform has 0"),
    (lambda: ez_small.Config(domains=("cartpole",)), "ez/fig3_cartpole"),
    (lambda: ez_small.Config(sizes=(1, 2)), "sizes has 1"),
    (lambda: ez_domains.GridWorld(ties="first"), "ties is 'first'"),
    (lambda: ez_domains.MountainCar(trace_decay=2.0), "trace_decay has 2.0"),
    (lambda: ez_cartpole.Config(seeds_per_task=0), "seeds_per_task has 0"),
    (lambda: ez_cartpole.Cartpole(basis="half"), "use 'full' or 'total'"),
    (
      lambda: ez_cartpole.Config(total=ez_cartpole.Cartpole()),
      "both have basis 'full'",
    ),
    (lambda: ez_noise.GridWorldConfig(noises=(0.1, 0.2)), "rising order"),
    (lambda: ez_noise.GridWorldConfig(shown=(0.15,)), "some of the noises"),
    (lambda: ez_noise.GridWorldConfig(noises=(0.0, 0.1, 0.3, 0.7, 2.0)), "0 to 1"),
    (lambda: ez_cover.Config(sizes=(4, 8)), "at least 3"),
    (lambda: ez_cover.Config(mu=1.0), "mu above 1"),
    (lambda: ez_r_max.Config(tolerance=0.0), "tolerance is 0"),
    (
      lambda: ez_r_max.Config(gridworld=ez_domains.GridWorld(discount=1.0)),
      "below 1",
    ),
  ],
)
def test_impossible_settings_are_refused(make, message):
  with pytest.raises(ValueError, match=message):
    make()
