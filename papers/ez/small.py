"""Paper 1's figure 3: learning and exploration in DeepSea, GridWorld, MountainCar."""

import dataclasses
import functools
from typing import Annotated, Any

import numpy as np

from explorax import ranges
from explorax.papers import claims, layers, panels, significance, types
from explorax.papers.ez import comparisons, runs
from explorax.papers.ez import domains as domains_lib

_DOMAINS = ("deep_sea", "gridworld", "mountain_car")
NEAR_OPTIMAL = 0.29  # Discounted return in MountainCar (appendix B).


@dataclasses.dataclass(frozen=True)
class Config(ranges.Checked):
  """Settings of the figure; those of each domain are in `domains.py`."""

  # CartPole is the figure ez/fig3_cartpole.
  domains: types.Distinct[Annotated[str, ranges.OneOf(_DOMAINS)]] = _DOMAINS
  sizes: types.Distinct[types.Size] = (5, 8, 10, 12, 15, 20)  # N; not in figure 3.
  # Its own size is the map's (appendix B).
  deep_sea: domains_lib.DeepSea = dataclasses.field(default_factory=domains_lib.DeepSea)
  # Learnt with all readings of ties.
  gridworld: domains_lib.GridWorld = dataclasses.field(
    default_factory=domains_lib.GridWorld
  )
  # Its runs: the paper's 30 cannot distinguish the rules, since most find no goal.
  gridworld_seeds: ranges.PositiveInt = 200
  # Of the map: in a room of 20, most repeats end at a wall.
  map_room: domains_lib.GridWorld = dataclasses.field(
    default_factory=lambda: domains_lib.GridWorld(size=50, map_steps=10_000)
  )
  mountain_car: domains_lib.MountainCar = dataclasses.field(
    default_factory=domains_lib.MountainCar
  )
  num_seeds: ranges.PositiveInt = 30  # Appendix B.

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


def _learning(config: Config, name: str) -> list[panels.Panel]:
  """The panels of what is learnt in a domain."""
  where, title = {"domain": name, "what": "learning"}, getattr(config, name).label
  if name == "deep_sea":
    most = config.deep_sea.episodes
    return [
      comparisons.deep_sea(measure, config.sizes, most, where, title)
      for measure in comparisons.DEEP_SEA
    ]
  if name == "mountain_car":
    near = layers.horizontal(NEAR_OPTIMAL, "near-optimal (paper)", linestyle="--")
    return [comparisons.curves(near, where=where, title=title)]
  by_ties = {
    f"{label}, {ties} ties": {**rule, "ties": ties}
    for label, rule in comparisons.LINES.items()
    for ties in domains_lib.TIES
  }
  return [comparisons.curves(of=by_ties, where=where, title=title, legend="panel")]


def _panels(config: Config) -> list[list[Any]]:
  rows = []
  for name in config.ordered:
    domain = config.map_room if name == "gridworld" else getattr(config, name)
    maps = comparisons.first_visits(domain, {"domain": name})
    rows += [[panel, maps, maps] for panel in _learning(config, name)]
  return rows


def _fewer_episodes(measure: str, table: types.Table) -> types.Finding | None:
  if not table:
    return None
  largest = max(table.values("size"))
  label, _ = comparisons.DEEP_SEA[measure]
  finding = claims.sooner(
    f"DeepSea, {label}: εz-greedy needs fewer episodes than ε-greedy at the largest N",
    (
      comparisons.times(measure, table.where(size=largest, **rule))
      for rule in (comparisons.EZ, comparisons.EPSILON)
    ),
    f"N = {largest}, εz-greedy and ε-greedy",
  )
  words = f"{finding.measured}; {comparisons.deep_sea_episodes(measure, table)}"
  return finding._replace(measured=words)


def _growth(measure: str, table: types.Table) -> tuple[str, bool]:
  most = table[0].settings["episodes"]
  sizes, ez = layers.over("size", table.where(**comparisons.EZ), measure)
  _, epsilon = layers.over("size", table.where(**comparisons.EPSILON), measure)
  mean = ez.mean(axis=0)
  ratio = mean / 2.0**sizes
  grows = epsilon.mean(axis=0) >= np.minimum(2.0**sizes, most) / 4
  power, _ = np.polyfit(np.log(sizes), np.log(mean), 1)
  return (
    f"εz-greedy needs {ratio[0]:.2g} · 2^N at N = {sizes[0]}, {ratio[-1]:.2g} · 2^N at "
    f"N = {sizes[-1]}, growing as N^{power:.1f}"
  ), bool(grows.all() and ratio[-1] < ratio[0] / 4 and mean[-1] < most)


def _near_optimal(table: types.Table) -> tuple[str, bool]:
  returns = table.joined("discounted_returns")
  last = returns[:, -max(1, returns.shape[1] // 10) :].mean()
  return f"{last:.3f} in the last tenth of the episodes", bool(last >= 0.2)


def _claims(config: Config) -> list[types.Claim]:
  sea, room, car = ({"domain": domain, "what": "learning"} for domain in _DOMAINS)
  return [
    *(
      claim
      for measure, (label, _) in comparisons.DEEP_SEA.items()
      for claim in (
        lambda table, of=measure: _fewer_episodes(of, table.where(**sea)),
        claims.Check(
          f"DeepSea, {label}: the episodes of ε-greedy grow as 2^N at least (within a "
          "factor of 4, or given up), those of εz-greedy slower",
          functools.partial(_growth, measure),
          sea,
          test="means, of ε-greedy lower bounds",
        ),
      )
    ),
    *(
      comparisons.earns_more(
        f"GridWorld, {ties} ties",
        {**room, "ties": ties},
        test=significance.paired,
        # Not the paper's `arg max`.
        kind="ours" if ties == "random" else None,
      )
      for ties in domains_lib.TIES
    ),
    comparisons.earns_more("MountainCar", car),
    claims.Check(
      "MountainCar: εz-greedy gets near the near-optimal 0.29 (0.2 at least)",
      _near_optimal,
      {**car, **comparisons.EZ},
      test="the mean",
    ),
    *(
      comparisons.visits_earlier(getattr(config, name).label, {"domain": name})
      for name in config.ordered
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
    compute=domains_lib.run,
    panels=_panels,
    claims=_claims,
    caption=f"DeepSea: {comparisons.DEEP_SEA_CAPTION[0].lower()}"
    f"{comparisons.DEEP_SEA_CAPTION[1:]} GridWorld and MountainCar: means over seeds "
    "with 95 % bootstrap intervals. Maps: mean first visits at ε = 1, "
    "GridWorld's in a room of 50 × 50.",
    height=2.7,
  ),
)
