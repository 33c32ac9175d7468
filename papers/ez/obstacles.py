"""Paper 1's figures 12 and 13: learning in gridworlds with obstacles, or with traps."""

import dataclasses
from typing import Literal

import numpy as np

from explorax import ranges
from explorax.experiments.recording import statistics
from explorax.papers import claims, panels, types
from explorax.papers.ez import comparisons, domains, runs


@dataclasses.dataclass(frozen=True)
class Config(ranges.Checked):
  """Settings. The densities are not in the paper's text: our own.

  Ties are broken as in the pseudo-code, by the first index; a sensitivity analysis
  breaks them at random.
  """

  gridworld: domains.GridWorld  # With obstacles or with traps.
  densities: types.Rising[ranges.NonNegativeFloat] = (
    0.0,
    0.05,
    0.1,
    0.15,
    0.2,
    0.3,
    0.4,
    0.5,
  )
  shown: types.Distinct[float] = (0.0, 0.1, 0.2, 0.4)  # "Example learning curves."
  # Each seed has its own worlds, shared by the agents. They differ more than the
  # agents, so that the 30 seeds of appendix B are too few.
  num_seeds: ranges.PositiveInt = 100
  sensitivity_seeds: ranges.PositiveInt = 30  # With random ties.

  def __post_init__(self) -> None:
    super().__post_init__()
    comparisons.check_shown(self, "densities")
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


def _panels(config: Config) -> list[list[panels.Panel | None]]:
  label = f"density of {config.gridworld.world}"
  return comparisons.sweep_panels(config.gridworld, "density", label, config.shown)


def _gaps(table: types.Table) -> np.ndarray:
  """εz-greedy's return less ε-greedy's in each seed, whose worlds are nested."""
  returns = comparisons.of_rules(table, "density")
  return np.asarray(returns["ez"] - returns["epsilon"])


def _gap_decreases(table: types.Table) -> tuple[str, bool | None]:
  gaps, densities = _gaps(table), np.array(sorted(table.values("density")))
  slope, last = _slope(gaps, densities), statistics.bootstrap(gaps).at(-1)
  return (
    f"the difference changes by {slope.words('+.3g')} per unit of density, to "
    f"{last.words('+.3g')} at {densities[-1]:g}"
  ), slope.is_below()


def _harder_for_ez(table: types.Table) -> tuple[str, bool | None]:
  densities = np.array(sorted(table.values("density")))
  slopes = {
    rule: _slope(y, densities)
    for rule, y in comparisons.of_rules(table, "density").items()
  }
  words = "; ".join(
    f"{runs.LABELS[rule]} {slope.words('+.3g')} per unit of density"
    for rule, slope in slopes.items()
  )
  gap = _slope(_gaps(table), densities)
  return words, claims.all_hold([slopes["ez"].is_below(), gap.is_below()])


def _nowhere_less(table: types.Table) -> tuple[str, bool | None]:
  gap, densities = statistics.bootstrap(_gaps(table)), sorted(table.values("density"))
  worst = int(np.argmin(gap.high))
  return (
    f"difference {gap.at(worst).words('+.3g')} where it does worst, at a density of "
    f"{densities[worst]:g}"
  ), claims.all_hold(gap.at(i).is_above() for i in range(len(densities)))


def _claims(config: Config) -> list[types.Claim]:
  kind, first = config.gridworld.world, config.densities[0]
  main = {"ties": config.gridworld.ties}
  return [
    claims.Compare(
      f"at a density of {first:g}, εz-greedy earns more",
      "discounted_returns",
      {**comparisons.EZ, **main, "density": first},
      {**comparisons.EPSILON, **main, "density": first},
      "εz-greedy {a:.3f}, ε-greedy {b:.3f}, difference {gap}",
      test=claims.resampled,
    ),
    claims.Check(
      f"the gap between the agents decreases with the density of {kind}",
      _gap_decreases,
      main,
    ),
    claims.Check(
      f"{kind} make it harder for εz-greedy, and not as seriously for ε-greedy",
      _harder_for_ez,
      main,
    ),
    claims.Check(
      "εz-greedy degrades gracefully: nowhere does it earn less than ε-greedy",
      _nowhere_less,
      main,
    ),
    comparisons.random_ties_earn_more(f"at a density of {first:g}", density=first),
  ]


def _slope(returns: np.ndarray, densities: np.ndarray) -> statistics.Interval:
  """The mean over seeds of the slope of each one's regression line."""
  x = densities - densities.mean()
  return statistics.mean(returns @ x / (x @ x))


def _figure(number: int, kind: Literal["obstacles", "traps"]) -> types.Figure:
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
    compute=domains.run,
    panels=_panels,
    claims=_claims,
    size=(3.5, 2.6),
  )


FIGURES = (_figure(12, "obstacles"), _figure(13, "traps"))
