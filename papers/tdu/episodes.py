"""Episodes to solve a problem: what is measured, drawn and claimed of them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from explorax.experiments.recording import statistics
from explorax.papers import claims, layers, panels, types


def to_solve(table: types.Table) -> np.ndarray:
  """Episodes to solve each problem, `[S, problems]`; the limit if it was not solved."""
  solved = table.per_seed("solved")
  return np.where(solved > 0, solved, table.per_seed("episodes"))


def is_solved(table: types.Table) -> np.ndarray:
  """Whether each problem was solved, by the treasure, 0 or 1: `[S, problems]`."""
  return (table.per_seed("solved") > 0).astype(np.float64)


def is_solved_by_bsuite(table: types.Table) -> np.ndarray:
  """The same by bsuite's rule."""
  return (table.per_seed("by_bsuite") > 0).astype(np.float64)


def fewer(
  claim: str,
  a: types.Selection,
  b: types.Selection,
  names: str,
  test: claims.Test = claims.unpaired,
) -> claims.Compare:
  """That `a` solves the problems in fewer episodes than `b`; unsolved: the limit.

  The test is of the ratio of geometric means over the problems. `names` are those of
  both groups.
  """

  def measured(*groups: types.Table) -> str:
    shares = [np.mean(is_solved(group)) for group in groups]
    return (
      f"{names}: solved {shares[0]:.0%} and {shares[1]:.0%}, in {{a:.0f}} and "
      "{b:.0f} episodes (geometric means), a ratio of {gap}"
    )

  return claims.Compare(
    claim, to_solve, a, b, measured, less=True, ratio=True, spec=".2f", test=test
  )


def panel(
  lines: layers.Lines,
  sizes: Sequence[int],
  limit: float,
  *more: panels.Layer,
  **around: Any,
) -> panels.Panel:
  """The median episodes to solve against the size, up to the limit of episodes."""
  columns = 2 if len(lines) <= 6 else 3
  rows = -(-len(lines) // columns)
  legend = {"loc": "upper center", "ncols": columns, "handlelength": 1.8}
  settings: dict[str, Any] = {
    "legend": {**legend, "columnspacing": 1.0},
    "ylabel": "episodes to solve (median)",
    "yscale": "log",
    "ylim": (10, 3 ** (rows + 1) * limit),  # With room for the legend.
    "xticks": sorted(sizes)[:: -(-len(sizes) // 8)],
    **around,
  }
  return panels.Panel(
    layers.Curves(
      to_solve, lines, "size", statistic=statistics.median_over_seeds, markers=True
    ),
    layers.horizontal(limit, "limit"),
    *more,
    **settings,
  )
