"""Paper 2's figure 7: the bonus scale and the discount of each policy of a mixture."""

import dataclasses

import numpy as np

from explorax import exploration
from explorax.agents import ranges
from explorax.experiments.recording import drawing
from explorax.papers import panels, types


@dataclasses.dataclass(frozen=True)
class Config:
  """Settings of the figure."""

  num_policies: int = 32  # N (table 6).
  beta: float = 0.3  # Bonus scale of the most exploratory policy (table 6).
  discount_max: float = 0.997  # Discount of the greediest policy (table 6).
  discount_min: float = 0.99  # Discount of the most exploratory policy (table 6).
  num_seeds: int = 1  # The figure has no randomness.

  def __post_init__(self) -> None:
    ranges.at_least(self, 4, "num_policies")
    ranges.at_least(self, 0, "beta")
    ranges.within(self, 0, self.discount_max, "discount_min")
    ranges.inside(self, -1, 1, "discount_max")


def _tasks(config: Config) -> list[types.Task]:
  return [types.Task("mixture", {**dataclasses.asdict(config), "seeds": [0]})]


def _run(settings: types.Settings, context: types.TaskContext) -> types.Results:
  del context
  size = settings["num_policies"]
  betas = exploration.mixture_betas(size, settings["beta"])
  discounts = exploration.mixture_discounts(
    size, settings["discount_max"], settings["discount_min"]
  )
  return {"betas": np.asarray(betas)[None], "discounts": np.asarray(discounts)[None]}


def _draw(config: Config, table: types.Table) -> types.Drawing:
  fig, (axes,) = drawing.new(1, 2)
  named = (("betas", "bonus scale β"), ("discounts", "discount γ"))
  for ax, (name, label) in zip(axes, named, strict=True):
    (values,) = table.joined(name)
    ax.plot(range(len(values)), values, "o-", color=drawing.style(0).color, ms=3)
    panels.finish(ax, xlabel="policy i", ylabel=label)
  return fig


def _judge(config: Config, table: types.Table) -> list[types.Finding]:
  (betas,), (discounts,) = table.joined("betas"), table.joined("discounts")
  ends = [config.beta, config.discount_max, config.discount_min]
  measured = np.array([betas[-1], discounts[0], discounts[-1]])
  ratios = np.exp(np.diff(np.log(1.0 - discounts.astype(np.float64))))
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
      f"ratios of 1 − γ from {np.min(ratios):.4f} to {np.max(ratios):.4f}",
      bool(np.ptp(ratios) < 1e-3),
    ),
  ]


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
