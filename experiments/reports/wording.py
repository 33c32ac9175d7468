"""How a report names numbers, seeds and what was cut short."""

import math
from collections.abc import Mapping, Sequence

from explorax.environments import bsuite_sweeps
from explorax.experiments.recording import summary
from explorax.experiments.reports import catalogue, read, results


def capped(sweep: read.Sweep, experiment: str) -> str:
  """`120 of 10,000 episodes`; '' where the cap cuts nothing off."""
  own = bsuite_sweeps.num_episodes(catalogue.ids(experiment)[0])
  if sweep.cap is None or sweep.cap >= own:
    return ""
  return f"{sweep.cap:,} of {own:,} episodes"


def seeds(numbers: Sequence[int]) -> str:
  """`seed 3`, `seeds 0 to 4`, `seeds 0, 2`."""
  if len(numbers) == 1:
    return f"seed {numbers[0]}"
  first, last = numbers[0], numbers[-1]
  if len(numbers) > 2 and list(numbers) == list(range(first, last + 1)):
    return f"seeds {first} to {last}"
  return f"seeds {', '.join(map(str, numbers))}"


def num_ids(experiment: str, cells: Mapping[str, results.Cell]) -> str:
  """`3 of 20 ids`, `1 to 3 of 20 ids` where agents differ; '' where there are all.

  Args:
    experiment: whose ids.
    cells: agent → its score in it.
  """
  total = len(catalogue.ids(experiment))
  counts = {len(cell.ids) for cell in cells.values()}
  low, high = min(counts), max(counts)
  if low == total:
    return ""
  return f"{low if low == high else f'{low} to {high}'} of {total} ids"


def decimals(value: float) -> str:
  """A score."""
  return f"{value:.{results.DIGITS}f}"


def hours(seconds: float) -> str:
  """`40 minutes`, `7.5 hours`, `120 hours`."""
  if seconds < 5400:
    return summary.count(math.ceil(seconds / 60), "minute")
  return (
    f"{seconds / 3600:.1f} hours"
    if seconds < 36_000
    else f"{seconds / 3600:,.0f} hours"
  )
