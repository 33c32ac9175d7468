"""Markdown tables, and the pages of docs/ that they are in."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]
_MARKED = re.compile(r"<!-- table: (.+?) -->\n.*?<!-- end -->", re.DOTALL)


def table(rows: Sequence[Row]) -> str:
  """Rows as a Markdown table, without the values that are lists or dicts.

  A number has four significant digits; a missing value is a dash.
  """
  flat = [
    {k: _format(v) for k, v in row.items() if not isinstance(v, (dict, list, tuple))}
    for row in rows
  ]
  columns = list(dict.fromkeys(name for row in flat for name in row))
  cells = [columns, *([row.get(name, "–") for name in columns] for row in flat)]
  widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
  cells.insert(1, ["-" * width for width in widths])
  return "\n".join(f"| {' | '.join(map(str.ljust, line, widths))} |" for line in cells)


def names(page: str) -> list[str]:
  """The names of the tables whose places are marked in a page.

  A place begins with a comment with the table's name, `<!-- table: NAME -->`, and ends
  with `<!-- end -->`.
  """
  return _MARKED.findall(page)


def fill(page: str, tables: Mapping[str, str]) -> str:
  """The text of a page with these tables in their marked places.

  Args:
    page: its text; places of other tables stay as they are.
    tables: name → the table in Markdown.
  """
  return _MARKED.sub(
    lambda mark: (
      f"<!-- table: {mark[1]} -->\n{tables[mark[1]]}\n<!-- end -->"
      if mark[1] in tables
      else mark[0]
    ),
    page,
  )


def _format(value: Any) -> str:
  """A number with four significant digits, without an exponent if possible."""
  if not isinstance(value, float) or not math.isfinite(value):
    return str(value)
  return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"
