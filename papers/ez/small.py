"""Paper 1's figures 3, 14 and 15: learning and exploration in small domains."""

from typing import Any

import numpy as np
import scipy  # It imports `stats` when it is first used.

from explorax.papers import draw, figures, judge
from explorax.papers.ez import comparisons, runs

_SEA, _ROOM, _CAR = (
  {"domain": domain, "what": None}
  for domain in ("deep_sea", "gridworld", "mountain_car")
)
# Sizes N of figures 3 and 14; not in the paper's text.
_SIZES, _ADVERSARIAL_SIZES = (5, 8, 10, 12, 15, 20), (3, 4, 5, 6, 8, 10)
_EVENTS = {"first treasure": "first_treasure", "greedy policy optimal": "optimal"}
_NEAR_OPTIMAL = 0.29  # Discounted return in MountainCar (appendix B).
# The trial of the deep sea has the steps at which figure 3's scale, log(E + 1) in
# [0, 16] (appendix B), ends for cells that are never visited. In a gridworld of 20,
# most repeats end at a wall.
_MAPS = {
  "DeepSea": {**runs.DEEP_SEA, "size": 20, "steps": 9_000_000},
  "GridWorld": {**runs.GRIDWORLD, "size": 50, "steps": 10_000},
  "MountainCar": {**runs.MOUNTAIN_CAR, "steps": 5000},
}
# CartPole's features and episodes, of which the paper's text gives no number. By 1500,
# εz-greedy's returns no longer rise.
_BASES = {"32,768 features": ("full", 300), "792 features": ("total", 1500)}
_EARNS_MORE = ": εz-greedy earns more, over all episodes"
_THRESHOLDS = (1, 10)  # Of R-MAX: visits until a pair is known.


def _map_grid(domain: figures.Settings) -> figures.Grid:
  return comparisons.grid(
    {**domain, "epsilon": 1.0, "what": "map"}, compute=runs.explore
  )


def _of_map(domain: figures.Settings) -> dict[str, Any]:
  return {"domain": domain["domain"], "what": "map"}


def _growth(event: str, table: figures.Table) -> tuple[bool, str, None]:
  """Whether ε-greedy needs 2^N / 4 at every N, and εz-greedy ever less of 2^N."""
  most, sizes = table[0].settings["episodes"], np.array(sorted(table.values("size")))
  epsilon, ez = (
    np.array([table.where(**x, size=n).times(event).episodes.mean() for n in sizes])
    for x in comparisons.RULES
  )
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


def _in_most_pairs(
  claim: str, event: str, permuted: bool, expected: bool
) -> judge.Claim:
  """Whether εz-greedy needs fewer episodes in most pairs of runs: the sign test.

  A pair has one run of each rule with the same size and seed, and therefore the same
  effects of actions. Ties, such as pairs in which neither rule gets there, are left
  out.
  """

  def judged(table: figures.Table) -> judge.Finding:
    chosen = table.where(permuted=permuted)
    epsilon, ez = (chosen.where(**x).times(event).episodes for x in comparisons.RULES)
    wins, losses = int(np.sum(ez < epsilon)), int(np.sum(ez > epsilon))
    p = float(scipy.stats.binomtest(wins, wins + losses).pvalue)
    held = None if p >= judge.LEVEL else (wins > losses) == expected
    share = judge.share(wins, wins + losses)
    return judge.Finding(claim, held, len(table.seeds()), "sign", p, share, ".2f")

  return judged


def _of_adversarial(label: str, event: str) -> list[judge.Claim]:
  return [
    _in_most_pairs(
      f"DeepSea, {label}: εz-greedy needs fewer episodes, in most pairs of runs",
      *(event, False, True),
    ),
    _in_most_pairs(
      f"adversarial, {label}: εz-greedy does not need fewer episodes in most pairs",
      *(event, True, False),
    ),
    judge.Sooner(
      f"{label}: εz-greedy needs more episodes in the adversarial one",
      {**runs.EZ, "permuted": False},
      {**runs.EZ, "permuted": True},
      event=event,
    ),
  ]


FIGURES = (
  figures.Figure(
    name="ez/fig3",
    title="ε-greedy and εz-greedy in DeepSea, GridWorld and MountainCar",
    source=f"{runs.PAPER}, figure 3a to c",
    runs=[
      comparisons.grid({**runs.DEEP_SEA, "size": _SIZES}),
      # The paper's 30 seeds cannot distinguish the rules, since most find no goal.
      comparisons.grid({**runs.GRIDWORLD, "ties": runs.TIES}, 200),
      comparisons.grid(runs.MOUNTAIN_CAR),
      *map(_map_grid, _MAPS.values()),
    ],
    quick={"episodes": 5, "steps": 300, "num_seeds": 4},
    panels=[
      [
        comparisons.size_marks(event, f"DeepSea: {label}", _SIZES, _SEA)
        for label, event in _EVENTS.items()
      ],
      [
        comparisons.curves(
          {**_ROOM, "ties": "fixed"}, title="GridWorld, fixed ties", ylim=(0, 0.2)
        ),
        comparisons.curves(
          _CAR,
          guides=[draw.guide("axhline", _NEAR_OPTIMAL, label="near-optimal")],
          title="MountainCar",
        ),
      ],
    ],
    claims=[
      *(claim for x in _EVENTS.items() for claim in _of_deep_sea(*x)),
      *(
        comparisons.earns_more(
          f"GridWorld, {ties} ties{_EARNS_MORE}", {**_ROOM, "ties": ties}
        )
        for ties in runs.TIES
      ),
      comparisons.earns_more(f"MountainCar{_EARNS_MORE}", _CAR, test=judge.welch),
      judge.Check(
        "MountainCar: εz-greedy gets near the near-optimal 0.29 (0.2 at least)",
        _near_optimal,
        {**_CAR, **runs.EZ},
        test="the mean",
      ),
      *(comparisons.visits_earlier(x, _of_map(domain)) for x, domain in _MAPS.items()),
    ],
  ),
  figures.Figure(
    name="ez/fig3_cartpole",
    title="ε-greedy and εz-greedy in the sparse swing-up of CartPole",
    source=f"{runs.PAPER}, figure 3d",
    runs=[
      *(
        comparisons.grid(
          {**runs.CARTPOLE, "basis": basis, "episodes": episodes},
          seeds_per_task=2 if basis == "full" else 10,
        )
        for basis, episodes in _BASES.values()
      ),
      _map_grid({**runs.CARTPOLE, "basis": "full", "steps": 10_000}),
    ],
    quick={"episodes": 3, "order": 2, "time_limit": 200, "steps": 1000, "num_seeds": 2},
    panels=[
      [
        comparisons.curves(
          {"basis": basis, "what": None},
          "returns",
          title=label,
          ylabel="return (of at most 1000)",
        )
        for label, (basis, _) in _BASES.items()
      ]
    ],
    claims=[
      *(
        comparisons.earns_more(
          f"CartPole, {label}{_EARNS_MORE}",
          *({"basis": basis, "what": None}, "returns", judge.welch),
        )
        for label, (basis, _) in _BASES.items()
      ),
      comparisons.visits_earlier("CartPole", _of_map(runs.CARTPOLE)),
    ],
  ),
  figures.Figure(
    name="ez/fig14",
    title="Adversarial DeepSea",
    source=f"{runs.PAPER}, figure 14",
    runs=[
      # Each seed draws its own effects of actions, which both agents share.
      comparisons.grid(
        {**runs.DEEP_SEA, "permuted": (False, True), "size": _ADVERSARIAL_SIZES},
      )
    ],
    quick={"size": (3, 4, 5), "episodes": 300, "num_seeds": 5},
    panels=[
      [
        comparisons.size_marks(
          event, f"{title}: {label}", _ADVERSARIAL_SIZES, {"permuted": permuted}
        )
        for title, permuted in (("DeepSea", False), ("DeepSea, adversarial", True))
      ]
      for label, event in _EVENTS.items()
    ],
    claims=[claim for x in _EVENTS.items() for claim in _of_adversarial(*x)],
  ),
  figures.Figure(
    name="ez/fig15",
    title="R-MAX in the GridWorld",
    source=f"{runs.PAPER}, figure 15",
    runs=[
      comparisons.grid({**runs.GRIDWORLD, "ties": "fixed"}),
      comparisons.grid(
        # The reward of the goal; the tolerance of value iteration is our own.
        {**runs.GRIDWORLD, "reward_max": 1.0, "tolerance": 1e-3},
        lines=[{"rule": "r_max", "threshold": m} for m in _THRESHOLDS],
      ),
    ],
    quick={"size": 8, "episodes": 10, "num_seeds": 3},
    panels=[
      [
        comparisons.curves(
          {},
          lines={
            **runs.RULES,
            **{f"R-MAX, m = {m}": {"threshold": m} for m in _THRESHOLDS},
          },
        )
      ]
    ],
    claims=[
      judge.Above(
        f"R-MAX, m = {m}: earns more than εz-greedy, over all episodes"
        + (" (the paper's text is silent)" if m > 1 else ""),
        comparisons.DISCOUNTED,
        {"threshold": m},
        runs.EZ,
      )
      for m in _THRESHOLDS
    ],
  ),
)
