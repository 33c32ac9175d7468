"""Refuses out-of-range settings of a frozen dataclass.

Each function raises a ValueError of one sentence with the setting, its value and the
range. Every value of a tuple is checked. None is always allowed.
"""

import math
from collections.abc import Collection, Iterator, Sequence
from typing import Any


def positive(settings: Any, *names: str) -> None:
  """Refuses values that are not positive and finite."""
  for name, value in _given(settings, names):
    if not 0 < value < math.inf:
      _refuse(settings, name, value, "positive and finite")


def not_negative(settings: Any, *names: str) -> None:
  """Refuses values that are negative or not finite."""
  for name, value in _given(settings, names):
    if not 0 <= value < math.inf:
      _refuse(settings, name, value, "finite and not negative")


def at_least(settings: Any, least: int, *names: str) -> None:
  """Refuses values below `least`, or too large for int32."""
  for name, value in _given(settings, names):
    if not least <= value < 2**31:
      allowed = f"at least {least}" if value < least else f"at most {2**31 - 1}"
      _refuse(settings, name, value, allowed)


def within(settings: Any, least: float, most: float, *names: str) -> None:
  """Refuses values outside [least, most]."""
  for name, value in _given(settings, names):
    if not least <= value <= most:
      _refuse(settings, name, value, f"in [{least}, {most}]")


def inside(settings: Any, above: float, below: float, *names: str) -> None:
  """Refuses values outside (above, below)."""
  for name, value in _given(settings, names):
    if not above < value < below:
      _refuse(settings, name, value, f"in ({above}, {below})")


def below_one(settings: Any, *names: str) -> None:
  """Refuses values outside [0, 1)."""
  for name, value in _given(settings, names):
    if not 0 <= value < 1:
      _refuse(settings, name, value, "in [0, 1)")


def one_of(settings: Any, name: str, choices: Collection[Any]) -> None:
  """Refuses values that are not among the choices."""
  for _, value in _given(settings, (name,)):
    if value not in choices:
      _refuse(settings, name, value, f"one of {', '.join(map(str, choices))}")


def distinct(settings: Any, *names: str) -> None:
  """Refuses empty tuples, and tuples with duplicates."""
  for name in names:
    values = getattr(settings, name)
    if not values or len(set(values)) < len(values):
      raise ValueError(
        f"{label(settings, name)} is {values}; give one or more, each of them once."
      )


def rising(settings: Any, num: int, name: str) -> None:
  """Refuses a tuple with fewer than `num` values, or whose values do not increase."""
  values = getattr(settings, name)
  if len(values) < num or list(values) != sorted(set(values)):
    raise ValueError(
      f"{label(settings, name)} is {values}; give {num} or more, each once, in rising "
      "order."
    )


def _given(settings: Any, names: Sequence[str]) -> Iterator[tuple[str, Any]]:
  for name in names:
    value = getattr(settings, name)
    for each in value if isinstance(value, tuple) else (value,):
      if each is not None:
        yield name, each


def _refuse(settings: Any, name: str, value: Any, allowed: str) -> None:
  verb = "has" if isinstance(getattr(settings, name), tuple) else "is"
  raise ValueError(f"{label(settings, name)} {verb} {value!r}; it must be {allowed}.")


def label(settings: Any, name: str) -> str:
  """`RND.decay`; for an agent's config only the name, as for `--set`."""
  kind = type(settings).__name__
  return name if kind.endswith("Config") else f"{kind}.{name}"
