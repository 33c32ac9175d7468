"""Which seeds a sweep has: those of a tuning are apart from all others."""

from collections.abc import Mapping
from typing import Any

from explorax.experiments import errors

_TUNING = 1_000_000  # The first seed of a tuning; other sweeps take those before it.
MAX = _TUNING - 1


def of(given: Mapping[str, Any]) -> range:
  """The seeds that the flags ask for.

  Raises:
    SetUpError: if they go beyond the last one.
  """
  first, count = given["seed"], given["seeds"]
  if first + count - 1 > MAX:
    raise errors.SetUpError(
      f"--seed={first} and --seeds={count} go beyond the last seed, {MAX}; use a "
      "smaller --seed."
    )
  start = first + (_TUNING if given["sweep_config"] else 0)
  return range(start, start + count)
