"""Paper 2's figure 7: the bonus scale and the discount of each policy of a mixture."""

import numpy as np

from explorax import exploration
from explorax.papers import draw, figures, judge

# Table 6.
_MIXTURE = {
  "num_policies": 32,
  "beta": 0.3,
  "discount_max": 0.997,
  "discount_min": 0.99,
}


def compute(settings: figures.Settings) -> figures.Results:
  """`betas` and `discounts`, `[1, N]`."""
  size, ends = settings["num_policies"], ("discount_max", "discount_min")
  betas = exploration.mixture_betas(size, settings["beta"])
  discounts = exploration.mixture_discounts(size, *(settings[x] for x in ends))
  return {"betas": np.asarray(betas)[None], "discounts": np.asarray(discounts)[None]}


def _from_end_to_end(table: figures.Table) -> tuple[bool, str, None]:
  (betas,), (discounts,) = table.joined("betas"), table.joined("discounts")
  measured = [betas[-1], discounts[0], discounts[-1]]
  held = betas[0] == 0 and np.allclose(measured, [*_MIXTURE.values()][1:], rtol=1e-5)
  words = f"γ from {discounts[0]:.4g} to {discounts[-1]:.4g}"
  return bool(held), f"β from {betas[0]:.3g} to {betas[-1]:.3g}, {words}", None


def _near_the_ends(table: figures.Table) -> tuple[bool, str, None]:
  steps = np.diff(table.joined("betas")[0])
  outer, inner = max(steps[0], steps[-1]), steps[(len(steps) + 1) // 2]
  words = f"β grows by {inner:.3g} in the middle, by {outer:.3g} at the ends"
  return bool(inner > 4 * outer and np.all(steps >= 0)), words, None


def _evenly_spaced(table: figures.Table) -> tuple[bool, str, None]:
  horizons = 1.0 - table.joined("discounts")[0].astype(np.float64)
  ratios = np.exp(np.diff(np.log(horizons)))
  words = f"ratios of 1 − γ from {np.min(ratios):.4f} to {np.max(ratios):.4f}"
  return bool(np.ptp(ratios) < 1e-3), words, None


def _line(name: str) -> draw.Guide:
  style = {"color": "#0072B2", "linewidth": 1.8}
  return lambda axes, table: axes.plot(table.joined(name)[0], **style)


_CLAIMS = {
  "from β = 0 and the greatest γ to the greatest β and the least γ": _from_end_to_end,
  "most policies near the ends: mostly greedy, or mostly exploring": _near_the_ends,
  "discounts are evenly spaced in the logarithm of the horizon": _evenly_spaced,
}

FIGURES = (
  figures.Figure(
    name="ngu/fig7",
    title="The family of policies: bonus scales and discounts",
    source="Badia et al. (2020), Never Give Up, figure 7",
    runs=[figures.Grid(compute, axes=_MIXTURE, num_seeds=1)],  # Without randomness.
    quick={},
    panels=[
      [
        draw.Panel(guides=[_line(name)], axes={"xlabel": "policy i", "ylabel": label})
        for name, label in (("betas", "bonus scale β"), ("discounts", "discount γ"))
      ]
    ],
    claims=[judge.Check(claim, x, exact=True) for claim, x in _CLAIMS.items()],
  ),
)
