"""Refusals of impossible settings, for the `__post_init__` of a figure's config.

Fields hold a value or a tuple of values, which are then all checked. Every function
raises a ValueError whose sentence names the field.
"""

import functools
import math
import operator
from collections.abc import Callable, Collection, Sequence
from typing import Any


def at_least(config: Any, **least: float) -> None:
  """Refuses fields below these."""
  for name, minimum in least.items():
    _each(
      config, (name,), functools.partial(operator.le, minimum), f"at least {minimum}"
    )


def within(config: Any, *names: str, low: float = 0.0, high: float = 1.0) -> None:
  """Refuses fields outside of [low, high]."""
  _each(config, names, lambda x: low <= x <= high, f"from {low:g} to {high:.4g}")


def inside(config: Any, *names: str, low: float = 0.0, high: float = math.inf) -> None:
  """Refuses fields outside of (low, high)."""
  _each(config, names, lambda x: low < x < high, f"in ({low:g}, {high:g})")


def scales(config: Any, *names: str) -> None:
  """Refuses fields that are negative or infinite."""
  _each(config, names, lambda x: 0 <= x < math.inf, "finite and not negative")


def distinct(config: Any, *names: str) -> None:
  """Refuses tuples that are empty or repeat themselves."""
  for name in names:
    values = getattr(config, name)
    if not values or len(set(values)) < len(values):
      raise ValueError(f"{name} is {values}; give one or more, each of them once.")


def rising(config: Any, name: str, *, num: int = 1) -> None:
  """Refuses a tuple that does not rise, or has fewer values."""
  values = getattr(config, name)
  if len(values) < num or list(values) != sorted(set(values)):
    raise ValueError(
      f"{name} is {values}; give {num} or more, each once, in rising order."
    )


def among(config: Any, choices: Collection[Any], *names: str) -> None:
  """Refuses fields that are not among the choices."""
  for name in names:
    for value in _values(config, name):
      if value not in choices:
        raise ValueError(
          f"{name} has {value!r}; choose from {', '.join(map(str, choices))}."
        )


def _each(
  config: Any, names: Sequence[str], is_fine: Callable[[Any], bool], words: str
) -> None:
  for name in names:
    for value in _values(config, name):
      if not is_fine(value):
        raise ValueError(f"{name} has {value}; it must be {words}.")


def _values(config: Any, name: str) -> tuple[Any, ...]:
  value = getattr(config, name)
  return value if isinstance(value, tuple) else (value,)
