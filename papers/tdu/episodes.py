"""Episodes to solve a problem: what is measured, drawn and claimed of them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from explorax.papers import claims, layers, panels, significance, types


def to_solve(table: types.Table) -> np.ndarray:
  """Episodes to solve each problem, `[S, problems]`; the limit if it was not solved."""
  solved = table.per_seed("solved")
  return np.where(solved > 0, solved, table.per_seed("episodes"))


def is_solved(table: types.Table) -> np.ndarray:
  """Whether each problem was solved, by the treasure, 0 or 1: `[S, problems]`."""
  return (table.per_seed("solved") > 0).astype(np.float64)


def names_of_problems(table: types.Table) -> tuple[str, ...]:
  """`N = 10` or `N = 10, stochastic`: the problems, without their agents."""
  settings = [group[0].settings for group in table.by_problem()]
  return tuple(
    f"N = {x.get('size')}{', stochastic' * x.get('stochastic', False)}"
    for x in settings
  )


def fewer(
  claim: str,
  a: types.Selection,
  b: types.Selection,
  names: str,
  kind: types.Kind | None = None,
) -> types.Claim:
  """That `a` solves the problems in fewer episodes than `b`; `names` are both's."""

  def claimed(table: types.Table) -> types.Finding | None:
    groups = [table.where(**a), table.where(**b)]
    if not all(groups) or groups[0] == groups[1]:
      return None
    times = (
      significance.Times(to_solve(group), is_solved(group), names_of_problems(group))
      for group in groups
    )
    return claims.sooner(claim, times, names, kind)

  return claimed


def panel(
  lines: layers.Lines,
  sizes: Sequence[int],
  limit: float,
  *more: panels.Layer,
  y: types.Measure = to_solve,
  filled: types.Measure = is_solved,
  what: str = "solved",
  dodge: float = 1.0,
  joined: types.Selection | None = None,
  **around: Any,
) -> panels.Panel:
  """Episodes to solve against the size, a mark for each run, up to the limit."""
  marks = layers.Seeds(y, "size", lines, filled, "not solved", dodge, joined or {})
  settings: dict[str, Any] = {
    "ylabel": f"episodes until it is {what}",
    "yscale": "log",
    "ylim": (None, 2 * limit),
    "xticks": sorted(sizes)[:: -(-len(sizes) // 8)],
    **around,
  }
  limits = layers.horizontal(limit, "limit of a run", linestyle=":")
  return panels.Panel(limits, *more, marks, **settings)


def rows(lines: layers.Lines, limit: float, **around: Any) -> panels.Panel:
  """Episodes to solve, a row for each line and a mark for each run, up to the limit."""
  settings: dict[str, Any] = {
    "xlabel": f"episodes until it is solved (limit: {limit:,})",
    **around,
  }
  return panels.Panel(
    layers.Rows(to_solve, lines, is_solved, "not solved"),
    layers.vertical(limit, linestyle=":"),
    grid="x",
    xscale="log",
    **settings,
  )
