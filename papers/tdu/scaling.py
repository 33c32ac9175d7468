"""Episodes to solve Deep Sea against its size: deep exploration and ε-greedy.

Not a figure of paper 4, whose figure 1 counts the sizes that are solved. The plot is
that of Osband et al. (2020), Behaviour suite, for the experiment `deep_sea`.
"""

from typing import Any

import numpy as np

from explorax.experiments.recording import statistics
from explorax.papers import draw, figures, judge
from explorax.papers.tdu import problems

_TDU, _BOOTSTRAPPED = {"agent": "tdu"}, {"agent": "bootstrapped_dqn"}
_EPINET, _DITHERING = {"agent": "epinet"}, {"agent": "double_dqn"}
_DEEP = {"TDU": _TDU, "bootstrapped DQN": _BOOTSTRAPPED}
_LINES = {**_DEEP, "double DQN (ε-greedy)": _DITHERING, "epinet": _EPINET}
_SIZES = tuple(range(10, 51, 2))  # Those of bsuite.
_MOST, _MOST_DITHERING = 10_000, 3_000  # bsuite's limit of episodes; ε-greedy's.
_BSUITE = {"stochastic": None, "own_mapping": None}  # Its deterministic Deep Sea.
_STOCHASTIC = {"stochastic": True}
# Interpolated for N = 60 from the public script of HyperAgent (Li et al., 2024), which
# has 4,000 episodes for N = 50 and 10,000 for 100.
_BUDGET = 5_200


def _cost(settings: figures.Settings) -> float:
  return float(settings["size"] ** 3)


def _slopes(table: figures.Table) -> np.ndarray | None:
  """Each seed's slope of log episodes against log N, over sizes that all solve."""
  sizes, solved = table.over("size", "solved")
  whole = (solved > 0).all(axis=0)
  if whole.sum() < 3:
    return None
  x = np.log(sizes[whole])
  return np.array([np.polyfit(x, np.log(y), 1)[0] for y in solved[:, whole]])


def _only_deep(
  table: figures.Table,
) -> tuple[bool, str, statistics.Interval | None]:
  tdu, dithering = (table.where(**x).joined("solved") > 0 for x in (_TDU, _DITHERING))
  words = f"ε-greedy {dithering.sum()} of {len(dithering)}, TDU {tdu.sum()} runs"
  return bool(tdu.all() and not dithering.any()), words, None


def _marks(title: str, **panel: Any) -> draw.Marks:
  return draw.Marks(
    x="size",
    fit=True,
    limit=_MOST,
    guides=[draw.function(_SIZES, lambda n: 2.0**n, linestyle="--", label="$2^N$")],
    axes={
      "title": title,
      "xlabel": "size N of Deep Sea",
      "xticks": (10, 15, 20, 30, 40, 60),
      "xticklabels": (10, 15, 20, 30, 40, 60),
      "ylabel": "episodes",
      "ylim": (40, 3 * _MOST),
    },
    **panel,
  )


FIGURES = (
  figures.Figure(
    name="tdu/scaling",
    title="Deep Sea: episodes to solve against its size",
    source=f"Our own, of {problems.PAPER}, section 4.1, and of Osband et al. (2020)",
    runs=[
      figures.Grid(
        problems.deep_sea,
        [_TDU, _BOOTSTRAPPED, _EPINET],
        {"size": _SIZES, "max_episodes": _MOST},
        num_seeds=3,
        cost=_cost,
      ),
      figures.Grid(
        problems.deep_sea,
        [_DITHERING],
        {"size": (10, 14, 20), "max_episodes": _MOST_DITHERING},
        num_seeds=3,
        cost=_cost,
      ),
      figures.Grid(
        problems.deep_sea,
        [_TDU, _BOOTSTRAPPED],
        {"size": _SIZES, **_STOCHASTIC, "until": 0.9, "max_episodes": _MOST},
        num_seeds=1,  # As in bsuite.
        cost=_cost,
      ),
      figures.Grid(
        problems.deep_sea,
        [_TDU, _BOOTSTRAPPED],
        {"size": 60, "own_mapping": True, "max_episodes": _BUDGET},
        num_seeds=3,
        cost=_cost,
      ),
    ],
    quick={"size": (4, 5), "max_episodes": 200, "num_seeds": 1},
    panels=[
      [
        _marks(
          "deterministic, until it is solved",
          event="solved",
          lines=_LINES,
          where={"stochastic": None},
        ),
        _marks(
          "stochastic, until it is mastered",
          event="mastered",
          lines=_DEEP,
          where=_STOCHASTIC,
        ),
      ]
    ],
    claims=[
      *(
        judge.Share(f"{label} solves all sizes", "solved", {**agent, **_BSUITE})
        for label, agent in {**_DEEP, "epinet": _EPINET}.items()
      ),
      *(
        judge.Share(
          f"{label} solves N = 60 in a budget interpolated from HyperAgent's",
          "solved",
          {**agent, "own_mapping": True},
        )
        for label, agent in _DEEP.items()
      ),
      *(
        judge.Share(
          f"{label} masters most sizes of stochastic Deep Sea",
          "mastered",
          {**agent, **_STOCHASTIC},
          least=0.5,
        )
        for label, agent in _DEEP.items()
      ),
      judge.Sooner(
        "TDU masters stochastic Deep Sea in fewer episodes than bootstrapped DQN",
        {**_TDU, **_STOCHASTIC},
        {**_BOOTSTRAPPED, **_STOCHASTIC},
        event="mastered",
      ),
      judge.Below(
        "TDU's episodes grow as a power of N of at most 3, not as 2^N",
        _slopes,
        {**_TDU, **_BSUITE},
        3.0,
        test="t-interval of the seeds' slopes",
      ),
      judge.Sooner(
        "TDU needs fewer episodes than bootstrapped DQN",
        {**_TDU, **_BSUITE},
        {**_BOOTSTRAPPED, **_BSUITE},
      ),
      judge.Sooner(
        "bootstrapped DQN needs fewer episodes than the epinet",
        {**_BOOTSTRAPPED, **_BSUITE},
        {**_EPINET, **_BSUITE},
      ),
      judge.Check(
        "ε-greedy does not solve N = 20, which TDU solves",
        _only_deep,
        {"size": 20, **_BSUITE},
      ),
    ],
    problem="size",
    caption="A mark is a run; a hollow one, at the limit of the runs, stands for all "
    "that were not solved, or not mastered (the treasure found in 90 % as many of 500 "
    "episodes as by the best policy). Lines: powers of N fitted to the runs that did, "
    "with 95 % bands. N = 60 has another limit and a mapping of each seed; double "
    "DQN's limit is 3,000.",
  ),
)
