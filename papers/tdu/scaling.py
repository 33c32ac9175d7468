"""Episodes to solve Deep Sea against its size: deep exploration and ε-greedy.

Not a figure of paper 4, whose figure 1 counts the sizes that are solved. The plot is
that of Osband et al. (2020), Behaviour suite, for the experiment `deep_sea`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from explorax.experiments.recording import statistics
from explorax.papers import draw, figures, judge
from explorax.papers.tdu import problems
from explorax.papers.tdu.problems import BOOTSTRAPPED, NOISY, TDU

_EPINET, _DITHERING = {"agent": "epinet"}, {"agent": "double_dqn"}
_SIZES = tuple(range(10, 51, 2))  # Those of bsuite.
_MOST, _MOST_DITHERING = 10_000, 3_000  # bsuite's limit of episodes; ε-greedy's.
_BSUITE = {"stochastic": None, "own_mapping": None}  # Its deterministic Deep Sea.
_LARGE = {"own_mapping": True}
# Interpolated for N = 60 from the public script of HyperAgent (Li et al., 2024), which
# has 4,000 episodes for N = 50 and 10,000 for 100.
_BUDGET = 5_200


def _at_least(share: float, event: str) -> Callable[[figures.Table], judge.Checked]:
  """That the event happens in this share of the runs."""

  def check(table: figures.Table) -> judge.Checked:
    happened = table.scores(event) > 0
    words = f"{happened.sum()} of {happened.size} runs"
    return bool(happened.mean() >= share), words, None

  return check


def _is_polynomial(table: figures.Table) -> judge.Checked:
  """Of each seed's slope of log episodes against log N, over sizes that all solve."""
  sizes, solved = table.over("size", "solved")
  whole = (solved > 0).all(axis=0)
  if whole.sum() < 3:
    return None, "", None
  x = np.log(sizes[whole])
  mean = statistics.mean([np.polyfit(x, np.log(y), 1)[0] for y in solved[:, whole]])
  return mean.is_below(3.0), "", mean


def _only_deep(table: figures.Table) -> judge.Checked:
  tdu, dithering = (table.where(**x).joined("solved") > 0 for x in (TDU, _DITHERING))
  words = f"ε-greedy {dithering.sum()} of {len(dithering)}, TDU {tdu.sum()} runs"
  return bool(tdu.all() and not dithering.any()), words, None


def _grid(
  lines: list[figures.Settings], num_seeds: int = 3, **settings: Any
) -> figures.Grid:
  axes = {"size": _SIZES, "max_episodes": _MOST, **settings}
  return figures.Grid(problems.deep_sea, lines, axes, num_seeds)


def _marks(title: str, **panel: Any) -> draw.Marks:
  return draw.Marks(
    x="size",
    fit=True,
    guides=[draw.powers_of_two(_SIZES), draw.guide("axhline", _MOST)],
    axes={
      "title": title,
      "xlabel": "size N of Deep Sea",
      "xticks": (10, 15, 20, 30, 40, 60),
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
      _grid([TDU, BOOTSTRAPPED, _EPINET]),
      _grid([_DITHERING], size=(10, 14, 20), max_episodes=_MOST_DITHERING),
      # One seed, as in bsuite.
      _grid([TDU | NOISY, BOOTSTRAPPED | NOISY], num_seeds=1, until=0.9),
      _grid([TDU | _LARGE, BOOTSTRAPPED | _LARGE], size=60, max_episodes=_BUDGET),
    ],
    quick={"size": (4, 5), "max_episodes": 200, "num_seeds": 1},
    panels=[
      [
        _marks(
          "deterministic, until it is solved",
          event="solved",
          lines={
            **problems.LINES,
            "double DQN (ε-greedy)": _DITHERING,
            "epinet": _EPINET,
          },
          where={"stochastic": None},
        ),
        _marks(
          "stochastic, until it is mastered",
          event="mastered",
          lines=problems.LINES,
          where=NOISY,
        ),
      ]
    ],
    claims=[
      *(
        judge.Check(f"{label} {claim}", _at_least(share, event), {**agent, **where})
        for lines, claim, share, event, where in (
          (
            {**problems.LINES, "epinet": _EPINET},
            *("solves all sizes", 1.0, "solved", _BSUITE),
          ),
          (
            problems.LINES,
            "solves N = 60 in a budget interpolated from HyperAgent's",
            *(1.0, "solved", _LARGE),
          ),
          (
            problems.LINES,
            "masters most sizes of stochastic Deep Sea",
            *(0.5, "mastered", NOISY),
          ),
        )
        for label, agent in lines.items()
      ),
      judge.Sooner(
        "TDU masters stochastic Deep Sea in fewer episodes than bootstrapped DQN",
        *(TDU, BOOTSTRAPPED, NOISY, "mastered"),
      ),
      judge.Check(
        "TDU's episodes grow as a power of N of at most 3, not as 2^N",
        _is_polynomial,
        {**TDU, **_BSUITE},
        test="t-interval of the seeds' slopes",
        spec=".2f",
      ),
      judge.Sooner(
        "TDU needs fewer episodes than bootstrapped DQN", TDU, BOOTSTRAPPED, _BSUITE
      ),
      judge.Sooner(
        "bootstrapped DQN needs fewer episodes than the epinet",
        *(BOOTSTRAPPED, _EPINET, _BSUITE),
      ),
      judge.Check(
        "ε-greedy does not solve N = 20, which TDU solves",
        _only_deep,
        {"size": 20, **_BSUITE},
      ),
    ],
    problem="size",
  ),
)
