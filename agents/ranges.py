"""Refuses the settings of a frozen dataclass that are out of their range.

Each function raises a ValueError of one sentence, which names the setting, its value
and the range. A setting that is None is in every range.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any


def positive(settings: Any, *names: str) -> None:
  """Refuses what is not positive and finite."""
  for name, value in _given(settings, names):
    if not 0 < value < math.inf:
      _refuse(settings, name, value, "positive and finite")


def not_negative(settings: Any, *names: str) -> None:
  """Refuses what is negative or not finite."""
  for name, value in _given(settings, names):
    if not 0 <= value < math.inf:
      _refuse(settings, name, value, "finite and not negative")


def at_least(settings: Any, least: int, *names: str) -> None:
  """Refuses what is below `least`."""
  for name, value in _given(settings, names):
    if not value >= least:
      _refuse(settings, name, value, f"at least {least}")


def within(settings: Any, least: float, most: float, *names: str) -> None:
  """Refuses what is not in [least, most]."""
  for name, value in _given(settings, names):
    if not least <= value <= most:
      _refuse(settings, name, value, f"in [{least}, {most}]")


def below_one(settings: Any, *names: str) -> None:
  """Refuses what is not in [0, 1)."""
  for name, value in _given(settings, names):
    if not 0 <= value < 1:
      _refuse(settings, name, value, "in [0, 1)")


def one_of(settings: Any, name: str, choices: Sequence[str]) -> None:
  """Refuses what is none of the choices."""
  value = getattr(settings, name)
  if value not in choices:
    _refuse(settings, name, value, f"one of {', '.join(choices)}")


def _given(settings: Any, names: Sequence[str]) -> Iterator[tuple[str, Any]]:
  for name in names:
    value = getattr(settings, name)
    if value is not None:
      yield name, value


def _refuse(settings: Any, name: str, value: Any, allowed: str) -> None:
  raise ValueError(f"{label(settings, name)} is {value!r}; it must be {allowed}.")


def label(settings: Any, name: str) -> str:
  """`RND.decay`; of a whole agent's config the name alone, as `--set` takes it."""
  kind = type(settings).__name__
  return name if kind.endswith("Config") else f"{kind}.{name}"
