"""Paper 1's figure 3a to c: learning and exploration in small domains."""

import numpy as np

from explorax.papers import draw, figures, judge
from explorax.papers.ez import comparisons, runs

_RULES = [runs.EPSILON, runs.EZ]
_SIZES = (5, 8, 10, 12, 15, 20)  # N of the deep sea; not in figure 3.
_SEA, _ROOM, _CAR = (
  {"domain": domain, "what": None}
  for domain in ("deep_sea", "gridworld", "mountain_car")
)
_EVENTS = {
  "first treasure": "first_treasure",
  "greedy policy optimal": "optimal",
}
_NEAR_OPTIMAL = 0.29  # Discounted return in MountainCar (appendix B).
# The trial of the deep sea has the steps at which figure 3's scale, log(E + 1) in
# [0, 16] (appendix B), ends for cells that are never visited. In a gridworld of 20,
# most repeats end at a wall.
_MAPS = {
  "DeepSea": {**runs.DEEP_SEA, "size": 20, "steps": 9_000_000},
  "GridWorld": {**runs.GRIDWORLD, "size": 50, "steps": 10_000},
  "MountainCar": {**runs.MOUNTAIN_CAR, "steps": 5000},
}


def _map_grid(domain: figures.Settings) -> figures.Grid:
  return figures.Grid(
    runs.wander,
    _RULES,
    {**domain, "epsilon": 1.0, "what": "map"},
    num_seeds=30,
    seeds_per_task=30,
  )


def _growth(event: str, table: figures.Table) -> tuple[bool, str, None]:
  """Whether ε-greedy needs 2^N / 4 at every N, and εz-greedy ever less of 2^N."""
  most = table[0].settings["episodes"]

  def means(rule: figures.Selection) -> np.ndarray:
    chosen = table.where(**rule)
    times = [chosen.where(size=n).times(event).episodes.mean() for n in sizes]
    return np.array(times)

  sizes = np.array(sorted(table.values("size")))
  ez, epsilon = means(runs.EZ), means(runs.EPSILON)
  ratio = ez / 2.0**sizes
  grows = epsilon >= np.minimum(2.0**sizes, most) / 4
  power, _ = np.polyfit(np.log(sizes), np.log(ez), 1)
  words = (
    f"εz-greedy needs {ratio[0]:.2g} · 2^N to {ratio[-1]:.2g} · 2^N, N^{power:.1f}"
  )
  return bool(grows.all() and ratio[-1] < ratio[0] / 4 and ez[-1] < most), words, None


def _near_optimal(table: figures.Table) -> tuple[bool, str, None]:
  returns = table.joined(comparisons.DISCOUNTED)
  last = returns[:, -max(1, returns.shape[1] // 10) :].mean()
  return bool(last >= 0.2), f"{last:.3f} in the last tenth of the episodes", None


def _of_deep_sea(label: str, event: str) -> list[judge.Claim]:
  at_largest = {**_SEA, "size": _SIZES[-1]}
  return [
    judge.Sooner(
      f"DeepSea, {label}: εz-greedy needs fewer episodes than ε-greedy at the "
      "largest N",
      {**runs.EZ, **at_largest},
      {**runs.EPSILON, **at_largest},
      event=event,
    ),
    judge.Check(
      f"DeepSea, {label}: the episodes of ε-greedy grow as 2^N at least (within a "
      "factor of 4, or given up), those of εz-greedy slower",
      lambda table: _growth(event, table),
      _SEA,
      test="means, of ε-greedy lower bounds",
    ),
  ]


FIGURES = (
  figures.Figure(
    name="ez/fig3",
    title="ε-greedy and εz-greedy in DeepSea, GridWorld and MountainCar",
    source=f"{runs.PAPER}, figure 3a to c",
    runs=[
      figures.Grid(
        runs.learn,
        _RULES,
        {**runs.DEEP_SEA, "size": _SIZES},
        num_seeds=30,
        seeds_per_task=30,
      ),
      # The paper's 30 seeds cannot distinguish the rules, since most find no goal.
      figures.Grid(
        runs.learn,
        _RULES,
        {**runs.GRIDWORLD, "ties": runs.TIES},
        num_seeds=200,
        seeds_per_task=200,
      ),
      figures.Grid(
        runs.learn, _RULES, runs.MOUNTAIN_CAR, num_seeds=30, seeds_per_task=30
      ),
      *map(_map_grid, _MAPS.values()),
    ],
    quick={"episodes": 5, "steps": 300, "num_seeds": 4},
    panels=[
      [
        comparisons.size_marks(event, label, _SIZES, 100_000, where=_SEA)
        for label, event in _EVENTS.items()
      ]
    ],
    pictures={
      "gridworld": [
        [
          comparisons.curves(
            where={**_ROOM, "ties": ties},
            axes={"title": f"GridWorld, {ties} ties", "ylim": (0, top)},
          )
          for ties, top in zip(runs.TIES, (0.01, 0.2, 1), strict=True)
        ]
      ],
      "mountain_car": [
        [
          comparisons.curves(
            where=_CAR,
            guides=[
              draw.horizontal(_NEAR_OPTIMAL, linestyle="--", label="near-optimal")
            ],
            axes={"title": "MountainCar"},
          )
        ]
      ],
      "maps": [
        [
          comparisons.maps(
            {f"{label}, {rule}": where for rule, where in runs.RULES.items()},
            {"domain": x["domain"], "what": "map"},
            flipped=label == "MountainCar",
            logarithmic=label == "DeepSea",
          )
        ]
        for label, x in _MAPS.items()
      ],
    },
    claims=[
      *(claim for x in _EVENTS.items() for claim in _of_deep_sea(*x)),
      *(
        comparisons.earns_more(
          f"GridWorld, {ties} ties", {**_ROOM, "ties": ties}, test=judge.paired
        )
        for ties in runs.TIES
      ),
      comparisons.earns_more("MountainCar", _CAR),
      judge.Check(
        "MountainCar: εz-greedy gets near the near-optimal 0.29 (0.2 at least)",
        _near_optimal,
        {**_CAR, **runs.EZ},
        test="the mean",
      ),
      *(
        comparisons.visits_earlier(label, {"domain": x["domain"], "what": "map"})
        for label, x in _MAPS.items()
      ),
    ],
  ),
)
