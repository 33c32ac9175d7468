"""Paper 1's figures 12 and 13: learning in gridworlds with obstacles, or with traps."""

import dataclasses

import numpy as np

from explorax.agents import ranges
from explorax.experiments.recording import statistics
from explorax.papers import claims, types
from explorax.papers.ez import comparisons, domains, runs, worlds


@dataclasses.dataclass(frozen=True)
class Config:
  """Settings. The densities are not in the paper's text: our own.

  Ties are broken as in the pseudo-code, by the first index; a sensitivity analysis
  breaks them at random.
  """

  gridworld: domains.GridWorld  # With obstacles or with traps.
  densities: tuple[float, ...] = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5)
  shown: tuple[float, ...] = (0.0, 0.1, 0.2, 0.4)  # "Example learning curves."
  # Each seed has its own worlds, shared by the agents. They differ more than the
  # agents, so that the 30 seeds of appendix B are too few.
  num_seeds: int = 100
  sensitivity_seeds: int = 30  # With random ties.

  def __post_init__(self) -> None:
    worlds.check_densities(self, self.gridworld.size)
    ranges.distinct(self, "shown")
    ranges.one_of(self, "shown", self.densities)
    ranges.at_least(self, 1, "sensitivity_seeds")
    if self.gridworld.ties == "random":
      raise ValueError("gridworld.ties is 'random', which is the figure's sensitivity.")


def _tasks(config: Config) -> list[types.Task]:
  return comparisons.sweep_tasks(
    config.gridworld,
    "density",
    config.densities,
    config.num_seeds,
    config.sensitivity_seeds,
  )


def _draw(config: Config, table: types.Table) -> types.Drawing:
  label = f"density of {config.gridworld.world}"
  ties = config.gridworld.ties
  return comparisons.draw_sweep(table, "density", label, config.shown, ties)


def _judge(config: Config, table: types.Table) -> list[types.Finding]:
  """Tests the claims, with differences within each seed, whose worlds are nested."""
  kind, densities = config.gridworld.world, np.array(config.densities)
  main = table.where(ties=config.gridworld.ties)
  means = comparisons.of_rules(main, "discounted_returns")
  gaps = means["ez"] - means["epsilon"]
  gap = statistics.bootstrap(gaps)
  slope = _slope(gaps, densities)
  slopes = {runs.LABELS[rule]: _slope(y, densities) for rule, y in means.items()}
  worst = int(np.argmin(gap.high))
  return [
    types.Finding(
      f"at a density of {densities[0]:g}, εz-greedy earns more",
      f"εz-greedy {means['ez'][:, 0].mean():.3f}, ε-greedy "
      f"{means['epsilon'][:, 0].mean():.3f}, difference {gap.at(0).words('+.3g')}",
      gap.at(0).is_above(),
    ),
    types.Finding(
      f"the gap between the agents decreases with the density of {kind}",
      f"the difference changes by {slope.words('+.3g')} per unit of density, to "
      f"{gap.at(-1).words('+.3g')} at {densities[-1]:g}",
      slope.is_below(),
    ),
    types.Finding(
      f"{kind} make it harder for εz-greedy, and not as seriously for ε-greedy",
      "; ".join(
        f"{label} {each.words('+.3g')} per unit of density"
        for label, each in slopes.items()
      ),
      claims.all_hold([slopes[runs.LABELS["ez"]].is_below(), slope.is_below()]),
    ),
    types.Finding(
      "εz-greedy degrades gracefully: nowhere does it earn less than ε-greedy",
      f"difference {gap.at(worst).words('+.3g')} where it does worst, at a density of "
      f"{densities[worst]:g}",
      claims.all_hold(gap.at(i).is_above() for i in range(len(densities))),
    ),
    comparisons.random_ties_earn_more(table, f"at a density of {densities[0]:g}"),
  ]


def _slope(returns: np.ndarray, densities: np.ndarray) -> statistics.Interval:
  """The mean over seeds of the slope of each one's regression line."""
  x = densities - densities.mean()
  return statistics.mean(returns @ x / (x @ x))


def _figure(number: int, kind: str) -> types.Figure:
  # Appendix F: 1000 episodes. Starts and goals are random, so that the order of the
  # actions favours no direction.
  gridworld = domains.GridWorld(world=kind, episodes=1000, ties="first")
  return types.Figure(
    name=f"ez/fig{number}",
    title=f"GridWorld with {kind}",
    source=f"{runs.PAPER}, figure {number}",
    claim="the gap in performance between εz-greedy and ε-greedy decreases with the "
    f"density of {kind}; ε-greedy is not impacted as seriously, and εz-greedy degrades "
    "gracefully.",
    config=Config(gridworld),
    quick=Config(
      dataclasses.replace(gridworld, size=8, episodes=20, time_limit=200),
      densities=(0.0, 0.2, 0.4),
      shown=(0.0, 0.4),
      num_seeds=5,
      sensitivity_seeds=5,
    ),
    tasks=_tasks,
    run=domains.run,
    draw=_draw,
    judge=_judge,
  )


FIGURES = (_figure(12, "obstacles"), _figure(13, "traps"))
