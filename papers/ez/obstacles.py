"""Paper 1's figures 12 and 13: learning in gridworlds with obstacles, or with traps."""

from collections.abc import Callable

import numpy as np

from explorax.papers import figures, judge
from explorax.papers.ez import comparisons, runs

_DENSITIES = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5)  # Not in the paper's text.
_FIRST, _RANDOM = {"ties": "first"}, {"ties": "random"}


def _below_zero(x: np.ndarray) -> judge.Finding:
  """That paired differences are below 0."""
  return judge.above("", x, np.zeros_like(x), less=True, test=judge.paired)


def _gap_decreases(table: figures.Table) -> list[judge.Finding]:
  """εz-greedy's return less ε-greedy's: the last density's less the first's."""
  ez, epsilon = comparisons.of_rules(table, "density")
  gaps = ez - epsilon
  return [_below_zero(gaps[:, -1] - gaps[:, 0])]


def _harder_for_ez(table: figures.Table) -> list[judge.Finding]:
  """From the first density to that at which εz-greedy earns least."""
  ez, epsilon = comparisons.of_rules(table, "density")
  at = int(np.argmin(ez.mean(axis=0)))
  return [_below_zero(y[:, at] - y[:, 0]) for y in (ez, ez - epsilon)]


def _nowhere_less(table: figures.Table) -> list[judge.Finding]:
  """The effect is that of the density at which it does worst."""
  ez, epsilon = comparisons.of_rules(table, "density")
  gaps = sorted((ez - epsilon).T, key=np.mean)
  return [judge.above("", gap, np.zeros_like(gap), test=judge.paired) for gap in gaps]


def _with_first_ties(
  claim: str, findings: Callable[[figures.Table], list[judge.Finding]]
) -> judge.Claim:
  """The claim, of the runs whose ties are broken as in the pseudo-code."""
  return judge.All(claim, [lambda table: findings(table.where(**_FIRST))])


def _figure(number: int, world: str) -> figures.Figure:
  at_zero = {**_FIRST, "density": 0.0}
  return figures.Figure(
    name=f"ez/fig{number}",
    title=f"GridWorld with {world}",
    source=f"{runs.PAPER}, figure {number}",
    runs=[
      # Each seed has its own worlds, shared by the agents. They differ more than the
      # agents, so that the 30 seeds of appendix B are too few. Appendix F: 1000
      # episodes. Starts and goals are random: no direction is favoured.
      figures.Grid(
        runs.learn,
        [runs.EPSILON, runs.EZ],
        {
          **runs.GRIDWORLD,
          "episodes": 1000,
          "world": world,
          "density": _DENSITIES,
          **ties,
        },
        num_seeds=num_seeds,
        seeds_per_task=num_seeds,
      )
      for ties, num_seeds in ((_FIRST, 100), (_RANDOM, 30))
    ],
    quick={
      "density": (0.0, 0.2, 0.4),
      "size": 8,
      "episodes": 20,
      "time_limit": 200,
      "num_seeds": 5,
    },
    panels=comparisons.sweep(
      "density", f"density of {world}", (0.0, 0.1, 0.2, 0.4), 1.0, "first"
    ),
    claims=[
      judge.Above(
        "at a density of 0, εz-greedy earns more",
        comparisons.DISCOUNTED,
        {**runs.EZ, **at_zero},
        {**runs.EPSILON, **at_zero},
        test=judge.paired,
      ),
      _with_first_ties(
        "the gap between the agents is smaller at the greatest density of "
        f"{world} than without",
        _gap_decreases,
      ),
      _with_first_ties(
        f"{world} make it harder for εz-greedy, and not as seriously for ε-greedy",
        _harder_for_ez,
      ),
      _with_first_ties(
        "εz-greedy degrades gracefully: nowhere does it earn less than ε-greedy",
        _nowhere_less,
      ),
      comparisons.random_ties_earn_more("at a density of 0", density=0.0),
    ],
  )


FIGURES = (_figure(12, "obstacles"), _figure(13, "traps"))
