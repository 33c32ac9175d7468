"""Numbers as tables show them."""

import math
from collections.abc import Callable
from typing import NamedTuple

from explorax.experiments.recording import statistics


class Cell(NamedTuple):
  """A number as a table shows it, all as text.

  Attributes:
    value: the number.
    interval: '' without one.
    remark: on the runs that it is of.
    bold: whether it is the best.
  """

  value: str
  interval: str
  remark: str = ""
  bold: bool = False


def cell(
  x: statistics.Interval,
  remark: str = "",
  *,
  bold: bool = False,
  form: Callable[[float], str] = "{:.2f}".format,
) -> Cell:
  """A number with its interval; a NaN is a dash, or no interval."""
  value, low, high = (float(each) for each in x)
  interval = "" if math.isnan(low) else f"[{form(low)}, {form(high)}]"
  return Cell("–" if math.isnan(value) else form(value), interval, remark, bold)
