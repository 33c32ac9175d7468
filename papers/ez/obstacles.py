"""Paper 1's figures 12 and 13: learning in gridworlds with obstacles, or with traps."""

import dataclasses
from typing import Literal

import numpy as np

from explorax import ranges
from explorax.papers import claims, panels, significance, types
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


def _ends(y: np.ndarray) -> np.ndarray:
  """The last density's less the first's, `[S]`: the returns are a U over densities."""
  return np.asarray(y[:, -1] - y[:, 0])


def _against_zero(claim: str, x: np.ndarray, words: str) -> types.Finding:
  """That paired differences are below 0."""
  return claims.compare(
    claim, x, np.zeros_like(x), words, less=True, test=significance.paired
  )


def _gap_decreases(claim: str, table: types.Table) -> types.Finding:
  gaps, densities = _gaps(table), sorted(table.values("density"))
  lowest = int(np.argmin(gaps.mean(axis=0)))
  return _against_zero(
    claim,
    _ends(gaps),
    f"the difference is {gaps[:, 0].mean():.2f} at {densities[0]:g}, "
    f"{gaps[:, lowest].mean():.2f} at {densities[lowest]:g}, where it is least, and "
    f"{gaps[:, -1].mean():.2f} at {densities[-1]:g}: a change of {{gap}}",
  )


def _harder_for_ez(claim: str, table: types.Table) -> types.Finding:
  densities = sorted(table.values("density"))
  returns = comparisons.of_rules(table, "density")
  at = int(np.argmin(returns["ez"].mean(axis=0)))
  parts = [
    _against_zero("", y[:, at] - y[:, 0], f"{label} {{gap}}")
    for label, y in (
      (runs.LABELS["ez"], returns["ez"]),
      ("less that of ε-greedy", returns["ez"] - returns["epsilon"]),
    )
  ]
  finding = claims.all_of(claim, parts)
  words = f"from {densities[0]:g} to {densities[at]:g}, where εz-greedy earns least: "
  means = ", ".join(f"{x:.2f}" for x in returns["ez"].mean(axis=0))
  return finding._replace(
    measured=f"{words}{finding.measured}; εz-greedy is a U over densities: {means}"
  )


def _nowhere_less(claim: str, table: types.Table) -> types.Finding:
  densities = sorted(table.values("density"))
  parts = [
    claims.compare("", gap, np.zeros_like(gap), "{gap}", test=significance.paired)
    for gap in _gaps(table).T
  ]
  worst = int(np.argmin(_gaps(table).mean(axis=0)))
  return claims.all_of(claim, parts)._replace(
    measured=f"difference {parts[worst].words} where it does worst, at a density of "
    f"{densities[worst]:g}",
  )


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
      test=significance.paired,
    ),
    *(
      lambda table, of=function, claim=claim: of(claim, table.where(**main))
      for claim, function in (
        (
          f"the gap between the agents is smaller at the greatest density of {kind} "
          "than without",
          _gap_decreases,
        ),
        (
          f"{kind} make it harder for εz-greedy, and not as seriously for ε-greedy",
          _harder_for_ez,
        ),
        (
          "εz-greedy degrades gracefully: nowhere does it earn less than ε-greedy",
          _nowhere_less,
        ),
      )
    ),
    comparisons.random_ties_earn_more(f"at a density of {first:g}", density=first),
  ]


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
    caption=comparisons.sweep_caption("by the first index"),
    height=2.5,
  )


FIGURES = (_figure(12, "obstacles"), _figure(13, "traps"))
