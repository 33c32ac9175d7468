"""Paper 1's figure 1: the states that exploration visits around a downward policy."""

import numpy as np

from explorax.environments import gridworld
from explorax.papers import figures, judge
from explorax.papers.ez import comparisons, runs

_DOWN = gridworld.MOVES.index((1, 0))
_FAR = 4  # A state is far from the greedy path beyond size / _FAR columns.
_SELDOM = 0.1  # The highest share of trials that reach such a state.
_EPSILONS = (0.1, 0.5, 0.9, 1.0)


def compute(settings: figures.Settings) -> figures.Results:
  """First visits in "a similar gridworld": without a goal, so of one episode."""
  domain = {**runs.GRIDWORLD, **settings, "time_limit": settings["steps"]}
  of = runs.problem(domain)
  of = of._replace(
    params=of.params._replace(goal=np.array([-1, -1])),
    shortest_episode=settings["steps"],
  )
  record = runs.explore(of, settings, greedy_action=_DOWN)
  return {
    "first_visits": np.asarray(record.first_visits),
    "visited": np.asarray(record.visited),
  }


def _in_a_band(table: figures.Table) -> tuple[bool, str, None]:
  """Of the states outside the band, the share that a trial reaches."""

  def far(table: figures.Table) -> float:
    (size,) = table.values("size")
    visited = table.joined("visited").reshape(-1, size, size)
    outside = np.abs(np.arange(size) - size // 2) > size // _FAR
    return float(visited[:, :-1, outside].mean())

  epsilons = sorted(table.values("epsilon"))
  shares = [far(table.where(epsilon=x, **runs.EPSILON)) for x in epsilons]
  each = zip(shares, epsilons, strict=True)
  words = ", ".join(f"{share:.1%} at ε = {epsilon}" for share, epsilon in each)
  return max(shares) < _SELDOM, words, None


def _bottom_corners(table: figures.Table) -> np.ndarray:
  size = table.values("size")[0]
  return table.joined("first_visits")[:, [size * (size - 1), -1]]


def _earlier(claim: str, measure: figures.Measure, epsilon: float) -> judge.Above:
  """That εz-greedy visits these cells earlier on average than ε-greedy."""
  ez, other = ({**rule, "epsilon": epsilon} for rule in (runs.EZ, runs.EPSILON))
  return judge.Above(claim, measure, ez, other, less=True)


FIGURES = (
  figures.Figure(
    name="ez/fig1",
    title="First visits around a policy that goes straight down",
    source=f"{runs.PAPER}, figure 1",
    runs=[
      # The paper's table of the size and the steps is lost. In rooms of 20 × 20, most
      # repeats end at a wall, and both rules visit the room about equally early at
      # ε = 1; in those of 40 and 50, εz-greedy is earlier.
      figures.Grid(
        compute,
        [runs.EPSILON, runs.EZ],
        {"epsilon": _EPSILONS, "size": 50, "steps": 5000},
        num_seeds=200,
        seeds_per_task=200,
      )
    ],
    quick={"size": 10, "steps": 200, "num_seeds": 10},
    panels=[
      [
        comparisons.maps(
          {
            f"{label}, ε = {epsilon}": {**rule, "epsilon": epsilon}
            for label, rule in runs.RULES.items()
            for epsilon in _EPSILONS
          },
          columns=len(_EPSILONS),
        )
      ]
    ],
    claims=[
      judge.Check(
        "with ε ≤ 0.5, ε-greedy reaches a state outside a narrow band (a quarter of "
        f"the width away, above the last row) in less than {_SELDOM:.0%} of trials",
        _in_a_band,
        {"epsilon": lambda epsilon: epsilon <= 0.5},
        test="the mean share",
      ),
      judge.All(
        "at every ε tried, εz-greedy visits states earlier",
        [_earlier("", "first_visits", epsilon) for epsilon in _EPSILONS],
      ),
      _earlier(
        "at ε = 1, εz-greedy is earlier at the bottom corners", _bottom_corners, 1.0
      ),
    ],
  ),
)
