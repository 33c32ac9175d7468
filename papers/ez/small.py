"""Paper 1's figure 3: learning and exploration in DeepSea, GridWorld, MountainCar."""

import dataclasses

import numpy as np

from explorax.agents import ranges
from explorax.experiments.recording import drawing
from explorax.papers import claims, panels, types
from explorax.papers.ez import comparisons, runs
from explorax.papers.ez import domains as domains_lib

_DOMAINS = ("deep_sea", "gridworld", "mountain_car")
NEAR_OPTIMAL = 0.29  # Discounted return in MountainCar (appendix B).


@dataclasses.dataclass(frozen=True)
class Config:
  """Settings of the figure; those of each domain are in `domains.py`."""

  domains: tuple[str, ...] = _DOMAINS  # CartPole is the figure ez/fig3_cartpole.
  sizes: tuple[int, ...] = (5, 8, 10, 12, 15, 20)  # N; not in figure 3.
  # Its own size is the map's (appendix B).
  deep_sea: domains_lib.DeepSea = dataclasses.field(default_factory=domains_lib.DeepSea)
  # Learnt with all readings of ties.
  gridworld: domains_lib.GridWorld = dataclasses.field(
    default_factory=domains_lib.GridWorld
  )
  # Its runs: the paper's 30 cannot distinguish the rules, since most find no goal.
  gridworld_seeds: int = 200
  # Of the map: in a room of 20, most repeats end at a wall.
  map_room: domains_lib.GridWorld = dataclasses.field(
    default_factory=lambda: domains_lib.GridWorld(size=50, map_steps=10_000)
  )
  mountain_car: domains_lib.MountainCar = dataclasses.field(
    default_factory=domains_lib.MountainCar
  )
  num_seeds: int = 30  # Appendix B.

  def __post_init__(self) -> None:
    ranges.distinct(self, "domains", "sizes")
    ranges.one_of(self, "domains", _DOMAINS)
    ranges.at_least(self, 2, "sizes")
    ranges.at_least(self, 1, "num_seeds", "gridworld_seeds")

  @property
  def ordered(self) -> list[str]:
    return [name for name in _DOMAINS if name in self.domains]


def _tasks(config: Config) -> list[types.Task]:
  replace, tasks = dataclasses.replace, []
  for name in config.domains:
    # What is learnt, and its weight.
    by_domain: dict[str, list[tuple[domains_lib.Domain, int]]] = {
      "deep_sea": [(replace(config.deep_sea, size=n), n) for n in config.sizes],
      "gridworld": [
        (replace(config.gridworld, ties=ties), 20) for ties in domains_lib.TIES
      ],
      "mountain_car": [(config.mountain_car, 400)],
    }
    of_map = config.map_room if name == "gridworld" else getattr(config, name)
    num_seeds = config.gridworld_seeds if name == "gridworld" else config.num_seeds
    for rule in runs.RULES:
      tasks += [
        domains_lib.task(f"{name}_{i}", one, rule, range(num_seeds), weight=weight)
        for i, (one, weight) in enumerate(by_domain[name])
      ]
      tasks.append(
        domains_lib.task(
          f"{name}_map", of_map, rule, range(config.num_seeds), weight=100, what="map"
        )
      )
  return tasks


def _draw(config: Config, table: types.Table) -> types.Drawing:
  fig, axes = drawing.new(len(config.ordered), 3, width=3.9, height=2.9)
  for row, name in zip(axes, config.ordered, strict=True):
    learning = table.where(domain=name, what="learning")
    title = getattr(config, name).label
    if name == "deep_sea":
      comparisons.draw_deep_sea(row[0], learning, title)
    else:
      _draw_curves(row[0], learning, name, title)
    comparisons.draw_first_visits(row[1:], table.where(domain=name, what="map"))
  return fig


def _draw_curves(
  axes: types.Axes, learning: types.Table, name: str, title: str
) -> None:
  curves = {}
  for task in learning:
    ties = f", {task.settings['ties']} ties" if name == "gridworld" else ""
    label = runs.LABELS[task.settings["rule"]] + ties
    curves[label] = task.results["discounted_returns"]
  comparisons.draw_curves(axes, curves, title=title)
  if name == "mountain_car":
    axes.axhline(
      NEAR_OPTIMAL, color=panels.GREY, linestyle=":", linewidth=1, label="near-optimal"
    )
  axes.legend(fontsize="small", loc="upper left")


def _judge(config: Config, table: types.Table) -> list[types.Finding]:
  findings, learning = [], table.where(what="learning")
  if "deep_sea" in config.domains:
    findings += _judge_deep_sea(config, learning.where(domain="deep_sea"))
  if "gridworld" in config.domains:
    findings += [
      comparisons.earns_more(
        f"GridWorld, {ties} ties", learning.where(domain="gridworld", ties=ties)
      )
      for ties in domains_lib.TIES
    ]
  if "mountain_car" in config.domains:
    car = learning.where(domain="mountain_car")
    results = car.joined("discounted_returns", rule="ez")
    last = results[:, -max(1, results.shape[1] // 10) :].mean()
    findings += [
      comparisons.earns_more("MountainCar", car),
      types.Finding(
        "MountainCar: εz-greedy gets near the near-optimal 0.29 (0.2 at least)",
        f"{last:.3f} in the last tenth of the episodes",
        bool(last >= 0.2),
      ),
    ]
  return findings + [
    comparisons.visits_earlier(
      getattr(config, name).label, table.where(domain=name, what="map")
    )
    for name in config.ordered
  ]


def _judge_deep_sea(config: Config, learning: types.Table) -> list[types.Finding]:
  sizes, most = np.array(config.sizes), config.deep_sea.episodes
  episodes = comparisons.of_rules(learning, "episodes")
  means = {rule: x.mean(axis=0) for rule, x in episodes.items()}
  ratio = means["ez"] / 2.0**sizes
  grows = means["epsilon"] >= np.minimum(2.0**sizes, most) / 4
  return [
    claims.compare(
      "DeepSea: εz-greedy finds the goal in fewer expected episodes than ε-greedy at "
      "the largest N",
      episodes["ez"][:, -1],
      episodes["epsilon"][:, -1],
      f"{comparisons.deep_sea_episodes(learning)}; at N = {sizes[-1]} {{gap}}",
      less=True,
    ),
    types.Finding(
      "DeepSea: the episodes of ε-greedy grow as 2^N at least (within a factor of 4, "
      "or given up), those of εz-greedy slower",
      f"εz-greedy needs {ratio[0]:.2g} · 2^N at N = {sizes[0]}, {ratio[-1]:.2g} · 2^N "
      f"at N = {sizes[-1]}",
      bool(grows.all() and ratio[-1] < ratio[0] / 4 and means["ez"][-1] < most),
    ),
  ]


FIGURES = (
  types.Figure(
    name="ez/fig3",
    title="ε-greedy and εz-greedy in DeepSea, GridWorld and MountainCar",
    source=f"{runs.PAPER}, figure 3a to c",
    claim="εz-greedy performs significantly better in these domains, and covers the "
    "states significantly better in pure exploration.",
    config=Config(),
    quick=Config(
      sizes=(4, 6),
      domains=("deep_sea", "gridworld"),
      deep_sea=domains_lib.DeepSea(size=8, episodes=300, map_steps=1000),
      gridworld=domains_lib.GridWorld(size=8, episodes=20),
      gridworld_seeds=5,
      map_room=domains_lib.GridWorld(size=8, map_steps=500),
      mountain_car=domains_lib.MountainCar(episodes=2, map_steps=500),
      num_seeds=5,
    ),
    tasks=_tasks,
    run=domains_lib.run,
    draw=_draw,
    judge=_judge,
  ),
)
