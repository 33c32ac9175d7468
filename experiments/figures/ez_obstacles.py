"""Paper 1's figures 12 and 13: learning in gridworlds with obstacles, or with traps."""

import dataclasses
import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from explorax.experiments.figures import (
  ez_domains,
  ez_runs,
  ez_sweeps,
  ez_worlds,
  types,
)
from explorax.experiments.recording import statistics

if TYPE_CHECKING:
  from matplotlib import figure as mpl_figure


@dataclasses.dataclass(frozen=True)
class Config:
  """Settings of both figures. The densities are not in the paper's text: our own."""

  densities: tuple[float, ...] = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5)
  shown: tuple[float, ...] = (0.0, 0.1, 0.2, 0.4)  # "Example learning curves."
  gridworld: ez_domains.GridWorld = dataclasses.field(
    default_factory=lambda: ez_domains.GridWorld(episodes=1000)  # Appendix F.
  )
  num_seeds: int = 30  # Appendix B. Each has worlds of its own, for all agents.

  def __post_init__(self):
    ez_runs.check_not_empty(self, "shown")
    ez_runs.check_at_least(self, num_seeds=1)
    ez_worlds.check_densities(self.densities, self.gridworld.size, self.num_seeds)
    if not set(self.shown) <= set(self.densities):
      raise ValueError(
        f"shown is {self.shown}; it must be some of the densities, {self.densities}."
      )


def _tasks(kind: str, config: Config) -> list[types.Task]:
  return [
    types.Task(
      f"{rule}_{density}",
      {
        "kind": kind,
        "rule": rule,
        "density": density,
        # Which curves are drawn is kept here, where drawing finds it.
        "shown": density in config.shown,
        "setup": dataclasses.asdict(config.gridworld),
        "num_seeds": config.num_seeds,
      },
    )
    for density in config.densities
    for rule in ez_runs.RULES
  ]


def _run(settings: types.Settings, tick: types.Tick) -> types.Results:
  del tick
  setup = ez_domains.GridWorld(**settings["setup"])
  num_seeds = settings["num_seeds"]
  maps = [
    ez_worlds.draw_map(settings["kind"], settings["density"], setup.size, seed)
    for seed in range(num_seeds)
  ]
  return setup.learn(settings["rule"], (0, num_seeds), maps=maps)


def _draw(done: Sequence[types.Done]) -> "mpl_figure.Figure":
  return ez_sweeps.draw(done, "density", f"density of {done[0].settings['kind']}")


def _judge(done: Sequence[types.Done]) -> list[types.Finding]:
  """The worlds of a seed belong together, so that differences are those of a seed."""
  kind = done[0].settings["kind"]
  densities = ez_sweeps.values(done, "density")
  means = {rule: ez_sweeps.means(done, rule) for rule in ez_runs.RULES}
  gaps = means["ez"] - means["epsilon"]
  gap = statistics.bootstrap(gaps)
  slope = _slope(gaps, densities)
  slopes = {rule: _slope(means[rule], densities) for rule in ez_runs.RULES}
  worst = int(np.argmin(gap.high))
  return [
    types.Finding(
      f"at a density of {densities[0]:g}, εz-greedy earns more",
      f"εz-greedy {means['ez'][:, 0].mean():.3f}, ε-greedy "
      f"{means['epsilon'][:, 0].mean():.3f}, difference {_words(gap, 0)}",
      bool(gap.low[0] > 0),
    ),
    types.Finding(
      f"the gap between the agents closes with the density of {kind}: ε-greedy is not "
      "impacted as seriously",
      f"the difference changes by {_words(slope)} per unit of density, to "
      f"{_words(gap, -1)} at {densities[-1]:g}",
      bool(slope.high[0] < 0),
    ),
    types.Finding(
      f"{kind} make it harder, although they leave fewer positions",
      "; ".join(
        f"{ez_runs.LABELS[rule]} {_words(slopes[rule])} per unit of density"
        for rule in ez_runs.RULES
      ),
      all(bool(slopes[rule].high[0] < 0) for rule in ez_runs.RULES),
    ),
    types.Finding(
      "εz-greedy degrades gracefully: nowhere does it earn less than ε-greedy",
      f"difference {_words(gap, worst)} where it does worst, at a density of "
      f"{densities[worst]:g}",
      bool(gap.high[worst] >= 0),
    ),
  ]


def _slope(returns: np.ndarray, densities: np.ndarray) -> statistics.Interval:
  """The mean over seeds of each one's regression line's slope: an interval `[1]`."""
  x = densities - densities.mean()
  return statistics.bootstrap((returns @ x / (x @ x))[:, None])


def _words(interval: statistics.Interval, index: int = 0) -> str:
  value, low, high = (bound[index] for bound in interval)
  return f"{value:+.3g} [{low:.3g}, {high:.3g}]"


def _figure(number: int, kind: str, claim: str) -> types.Figure:
  return types.Figure(
    name=f"ez/fig{number}",
    title=f"GridWorld with {kind}",
    source=f"{ez_runs.PAPER}, figure {number}",
    claim=claim,
    config=Config(),
    quick=Config(
      densities=(0.0, 0.2, 0.4),
      shown=(0.0, 0.4),
      gridworld=ez_domains.GridWorld(size=8, episodes=20, time_limit=200),
      num_seeds=5,
    ),
    tasks=functools.partial(_tasks, kind),
    run=_run,
    draw=_draw,
    judge=_judge,
  )


_CLAIM = (
  "the gap in performance between εz-greedy and ε-greedy decreases with the density of "
  "{}; ε-greedy is not impacted as seriously, and εz-greedy degrades gracefully."
)

FIGURES = tuple(
  _figure(number, kind, _CLAIM.format(kind))
  for number, kind in zip((12, 13), ez_worlds.KINDS, strict=True)
)
