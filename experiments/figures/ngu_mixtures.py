"""Paper 2's figure 7: the bonus scale and the discount of each policy of a mixture."""

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from explorax import exploration
from explorax.experiments.figures import types
from explorax.experiments.recording import drawing

if TYPE_CHECKING:
  from matplotlib import figure as mpl_figure


@dataclasses.dataclass(frozen=True)
class Config:
  """Settings of the figure."""

  num_policies: int = 32  # N (table 6).
  beta: float = 0.3  # Of the most exploratory policy (table 6).
  discount_max: float = 0.997  # Of the greediest (table 6).
  discount_min: float = 0.99  # Of the most exploratory (table 6).
  num_seeds: int = 1  # Nothing is random.

  def __post_init__(self):
    if self.num_policies < 4:
      raise ValueError(
        f"num_policies is {self.num_policies}; the figure needs at least 4."
      )
    if not 0 <= self.discount_min <= self.discount_max < 1 or self.beta < 0:
      raise ValueError(
        f"discount_min is {self.discount_min}, discount_max {self.discount_max} and "
        f"beta {self.beta}; it must be that 0 <= discount_min <= discount_max < 1 and "
        "beta >= 0."
      )


def _mixture(settings: types.Settings) -> types.Results:
  size = settings["num_policies"]
  betas = exploration.mixture_betas(size, settings["beta"])
  discounts = exploration.mixture_discounts(
    size, settings["discount_max"], settings["discount_min"]
  )
  return {"betas": np.asarray(betas), "discounts": np.asarray(discounts)}


def _tasks(config: Config) -> list[types.Task]:
  return [types.Task("mixture", dataclasses.asdict(config))]


def _run(settings: types.Settings, tick: types.Tick) -> types.Results:
  del tick
  return _mixture(settings)


def _draw(done: Sequence[types.Done]) -> "mpl_figure.Figure":
  (task,) = done
  fig, ((left, right),) = drawing.new(1, 2)
  policies = np.arange(task.settings["num_policies"])
  named = (("betas", "bonus scale β"), ("discounts", "discount γ"))
  for axes, (name, label) in zip((left, right), named, strict=True):
    axes.plot(policies, task.results[name], "o-", color=drawing.style(0).color, ms=3)
    axes.set(xlabel="policy i", ylabel=label)
    axes.grid(alpha=0.3)
  return fig


def _judge(done: Sequence[types.Done]) -> list[types.Finding]:
  (task,) = done
  betas, discounts = task.results["betas"], task.results["discounts"]
  ends = [task.settings[name] for name in ("beta", "discount_max", "discount_min")]
  measured = np.array([betas[-1], discounts[0], discounts[-1]])
  outer, inner = np.diff(betas)[[0, -1]].max(), np.diff(betas)[len(betas) // 2]
  return [
    types.Finding(
      "from β = 0 and the greatest γ to the greatest β and the least γ",
      f"β from {betas[0]:.3g} to {betas[-1]:.3g}, γ from {discounts[0]:.4g} to "
      f"{discounts[-1]:.4g}",
      bool(betas[0] == 0 and np.allclose(measured, ends, rtol=1e-5)),
    ),
    types.Finding(
      "most policies near the ends: mostly greedy, or mostly exploring",
      f"β grows by {inner:.3g} in the middle, by {outer:.3g} at the ends",
      bool(inner > 4 * outer and np.all(np.diff(betas) >= 0)),
    ),
    types.Finding(
      "discounts are evenly spaced in the logarithm of the horizon",
      f"ratios of 1 − γ from {np.min(_ratios(discounts)):.4f} to "
      f"{np.max(_ratios(discounts)):.4f}",
      bool(np.ptp(_ratios(discounts)) < 1e-3),
    ),
  ]


def _ratios(discounts: np.ndarray) -> np.ndarray:
  horizons = 1.0 - discounts.astype(np.float64)
  return horizons[1:] / horizons[:-1]


FIGURES = (
  types.Figure(
    name="ngu/fig7",
    title="The family of policies: bonus scales and discounts",
    source="Badia et al. (2020), Never Give Up, figure 7",
    claim="the bonus scales follow a sigmoid from 0 to β and the discounts fall from "
    "the greatest to the least, so that a part of the policies is very exploratory and "
    "short-sighted, a part very greedy and far-sighted.",
    config=Config(),
    quick=Config(),
    tasks=_tasks,
    run=_run,
    draw=_draw,
    judge=_judge,
  ),
)
