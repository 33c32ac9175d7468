"""Paper 2's figure 7: the bonus scale and the discount of each policy of a mixture."""

import dataclasses
import functools
from typing import Annotated

import numpy as np

from explorax import exploration, ranges
from explorax.papers import claims, layers, panels, types


@dataclasses.dataclass(frozen=True)
class Config(ranges.Checked):
  """Settings of the figure."""

  num_policies: Annotated[int, ranges.Range(ge=4)] = 32  # N (table 6).
  # Bonus scale of the most exploratory policy (table 6).
  beta: ranges.NonNegativeFloat = 0.3
  # Discount of the greediest policy (table 6).
  discount_max: ranges.BelowOne = 0.997
  # Discount of the most exploratory policy (table 6).
  discount_min: ranges.BelowOne = 0.99
  num_seeds: ranges.PositiveInt = 1  # The figure has no randomness.


def _tasks(config: Config) -> list[types.Task]:
  return [types.Task("mixture", {**dataclasses.asdict(config), "seeds": [0]})]


def _run(settings: types.Settings) -> types.Results:
  size = settings["num_policies"]
  betas = exploration.mixture_betas(size, settings["beta"])
  discounts = exploration.mixture_discounts(
    size, settings["discount_max"], settings["discount_min"]
  )
  return {"betas": np.asarray(betas)[None], "discounts": np.asarray(discounts)[None]}


def _from_end_to_end(config: Config, table: types.Table) -> tuple[str, bool]:
  (betas,), (discounts,) = table.joined("betas"), table.joined("discounts")
  measured = np.array([betas[-1], discounts[0], discounts[-1]])
  ends = [config.beta, config.discount_max, config.discount_min]
  return (
    f"β from {betas[0]:.3g} to {betas[-1]:.3g}, γ from {discounts[0]:.4g} to "
    f"{discounts[-1]:.4g}"
  ), bool(betas[0] == 0 and np.allclose(measured, ends, rtol=1e-5))


def _near_the_ends(table: types.Table) -> tuple[str, bool]:
  steps = np.diff(table.joined("betas")[0])
  outer, inner = max(steps[0], steps[-1]), steps[(len(steps) + 1) // 2]
  words = f"β grows by {inner:.3g} in the middle, by {outer:.3g} at the ends"
  return words, bool(inner > 4 * outer and np.all(steps >= 0))


def _evenly_spaced(table: types.Table) -> tuple[str, bool]:
  horizons = 1.0 - table.joined("discounts")[0].astype(np.float64)
  ratios = np.exp(np.diff(np.log(horizons)))
  words = f"ratios of 1 − γ from {np.min(ratios):.4f} to {np.max(ratios):.4f}"
  return words, bool(np.ptp(ratios) < 1e-3)


def _panel(name: str, label: str) -> panels.Panel:
  values = layers.Curves(
    name, {"_": {}}, lambda table: range(len(table.joined(name)[0])), markers=True
  )
  return panels.Panel(values, xlabel="policy i", ylabel=label)


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
    compute=_run,
    caption="Marks are the 32 policies of a mixture; policy 0 is the greediest.",
    kind="formula",
    height=2.8,
    panels=lambda config: [
      [_panel("betas", "bonus scale β"), _panel("discounts", "discount γ")]
    ],
    claims=lambda config: [
      claims.Check(
        "from β = 0 and the greatest γ to the greatest β and the least γ",
        functools.partial(_from_end_to_end, config),
        exact=True,
      ),
      claims.Check(
        "most policies near the ends: mostly greedy, or mostly exploring",
        _near_the_ends,
        exact=True,
      ),
      claims.Check(
        "discounts are evenly spaced in the logarithm of the horizon",
        _evenly_spaced,
        exact=True,
      ),
    ],
  ),
)
