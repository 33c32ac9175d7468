"""Paper 1's figures 12 and 13: learning in gridworlds with obstacles, or with traps."""

import dataclasses

import numpy as np

from explorax.agents import ranges
from explorax.experiments.figures import claims, types
from explorax.experiments.figures.ez import comparisons, domains, runs, worlds
from explorax.experiments.recording import statistics


@dataclasses.dataclass(frozen=True)
class Config:
  """Settings. The densities are not in the paper's text: our own."""

  gridworld: domains.GridWorld  # With obstacles or with traps.
  densities: tuple[float, ...] = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5)
  shown: tuple[float, ...] = (0.0, 0.1, 0.2, 0.4)  # "Example learning curves."
  num_seeds: int = 30  # Appendix B. Each has worlds of its own, for all agents.

  def __post_init__(self):
    worlds.check_densities(self, self.gridworld.size)
    ranges.distinct(self, "shown")
    ranges.one_of(self, "shown", self.densities)


def _tasks(config: Config) -> list[types.Task]:
  return comparisons.sweep_tasks(
    config.gridworld, "density", config.densities, config.num_seeds
  )


def _draw(config: Config, table: types.Table) -> types.Drawing:
  label = f"density of {config.gridworld.world}"
  return comparisons.draw_sweep(table, "density", label, config.shown)


def _judge(config: Config, table: types.Table) -> list[types.Finding]:
  """The worlds of a seed belong together, so that differences are those of a seed."""
  kind, densities = config.gridworld.world, np.array(config.densities)
  means = comparisons.of_rules(table, "discounted_returns")
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
      f"the gap between the agents closes with the density of {kind}: ε-greedy is not "
      "impacted as seriously",
      f"the difference changes by {slope.words('+.3g')} per unit of density, to "
      f"{gap.at(-1).words('+.3g')} at {densities[-1]:g}",
      slope.is_below(),
    ),
    types.Finding(
      f"{kind} make it harder, although they leave fewer positions",
      "; ".join(
        f"{label} {each.words('+.3g')} per unit of density"
        for label, each in slopes.items()
      ),
      claims.all_hold(each.is_below() for each in slopes.values()),
    ),
    types.Finding(
      "εz-greedy degrades gracefully: nowhere does it earn less than ε-greedy",
      f"difference {gap.at(worst).words('+.3g')} where it does worst, at a density of "
      f"{densities[worst]:g}",
      claims.all_hold(gap.at(i).is_above() for i in range(len(densities))),
    ),
  ]


def _slope(returns: np.ndarray, densities: np.ndarray) -> statistics.Interval:
  """The mean over seeds of the slope of each one's regression line."""
  x = densities - densities.mean()
  return statistics.mean(returns @ x / (x @ x))


def _figure(number: int, kind: str) -> types.Figure:
  gridworld = domains.GridWorld(world=kind, episodes=1000)  # Appendix F.
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
    ),
    tasks=_tasks,
    run=domains.run,
    draw=_draw,
    judge=_judge,
  )


FIGURES = (_figure(12, "obstacles"), _figure(13, "traps"))
