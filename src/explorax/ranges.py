"""Ranges of settings, as metadata of their types, and one check of all of them.

    @dataclasses.dataclass(frozen=True)
    class Config(ranges.Checked):
      batch_size: ranges.PositiveInt = 32
      max_norm: ranges.PositiveFloat | None = None
      decay: Annotated[float, ranges.Range(ge=0, lt=1)] = 0.99

A value outside its range raises a ValueError of one sentence with the setting, the
value and the range. Common types: `PositiveInt`, `NonNegativeInt`, `AtLeastTwo`,
`Seed`, `PositiveFloat`, `NonNegativeFloat`, `Probability` in [0, 1], `BelowOne` in
[0, 1); `Literal` and `OneOf` for choices; `Distinct` and `Rising` for tuples. Every
part of the package may use this module, which imports only the standard library.
"""

import dataclasses
import functools
import math
import numbers
import types
import typing
from collections.abc import Collection, Iterator
from typing import Annotated, Any, Literal

MAX_INT32 = 2**31 - 1
MAX_SEED = 2**32 - 1  # The largest seed of numpy's generators.


@dataclasses.dataclass(frozen=True, kw_only=True)
class Range:
  """Finite numbers between two ends; `ge` and `le` belong to the range.

  A schedule (an object with `corners()`) must stay in the range.
  """

  ge: float = -math.inf
  gt: float = -math.inf
  le: float = math.inf
  lt: float = math.inf

  def accepts(self, value: Any) -> bool:
    return _is_finite(value) and all(
      self.ge <= x <= self.le and self.gt < x < self.lt for x in _corners(value)
    )

  def __str__(self) -> str:
    words = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}
    ends = {word: getattr(self, name) for name, word in words.items()}
    return " and ".join(f"{word} {x}" for word, x in ends.items() if abs(x) < math.inf)


@dataclasses.dataclass(frozen=True)
class OneOf:
  """One of several values."""

  choices: Collection[Any]

  def __post_init__(self) -> None:
    object.__setattr__(self, "choices", tuple(self.choices))

  def accepts(self, value: Any) -> bool:
    return value in self.choices

  def __str__(self) -> str:
    return f"one of {', '.join(map(str, self.choices))}"


@dataclasses.dataclass(frozen=True)
class Distinct:
  """A tuple of at least one value, without duplicates."""

  def accepts(self, value: Any) -> bool:
    return len(value) > 0 and len(set(value)) == len(value)

  def __str__(self) -> str:
    return "one or more values, each of them once"


@dataclasses.dataclass(frozen=True)
class Rising:
  """A tuple of at least `num` values, in rising order."""

  num: int = 1

  def accepts(self, value: Any) -> bool:
    return len(value) >= self.num and list(value) == sorted(set(value))

  def __str__(self) -> str:
    return f"{self.num} or more values, each of them once, in rising order"


# Whole numbers fit in int32, since jitted functions compute with them.
PositiveInt = Annotated[int, Range(ge=1, le=MAX_INT32)]
AtLeastTwo = Annotated[int, Range(ge=2, le=MAX_INT32)]
NonNegativeInt = Annotated[int, Range(ge=0, le=MAX_INT32)]
PositiveFloat = Annotated[float, Range(gt=0)]
NonNegativeFloat = Annotated[float, Range(ge=0)]
Probability = Annotated[float, Range(ge=0, le=1)]
Seed = Annotated[int, Range(ge=0, le=MAX_SEED)]
BelowOne = Annotated[float, Range(ge=0, lt=1)]

_CONDITIONS = (Range, OneOf, Distinct, Rising)


class Checked:
  """Base of frozen dataclasses whose fields are checked when one is made.

  A subclass with a `__post_init__` of its own calls this one first.
  """

  def __post_init__(self) -> None:
    check(self)


def check(settings: Any) -> None:
  """Refuses values outside the ranges of their fields; None is always allowed.

  Args:
    settings: a dataclass or a NamedTuple.

  Raises:
    ValueError: a sentence with the setting, its value and its range.
  """
  for name, hint in _hints(settings.__class__).items():
    value = getattr(settings, name)
    for refused, condition in () if value is None else _refusals(hint, value):
      verb = "is" if refused is value else "has"
      allowed = f"{condition}"
      if isinstance(condition, Range) and not _is_finite(refused):
        allowed += " and finite"
      raise ValueError(
        f"{label(settings, name)} {verb} {refused!r}; it must be {allowed}."
      )


def label(settings: Any, name: str) -> str:
  """`RND.decay`; for configs and environments' parameters only the field's name."""
  kind = type(settings).__name__
  return name if kind.endswith(("Config", "Params", "Profile")) else f"{kind}.{name}"


def conditions(hint: Any) -> list[Any]:
  """All conditions within a type, in order."""
  origin, args = typing.get_origin(hint), typing.get_args(hint)
  if origin is Literal:
    return [OneOf(args)]
  return [
    condition
    for arg in args
    for condition in ([arg] if isinstance(arg, _CONDITIONS) else conditions(arg))
  ]


@functools.cache
def _hints(cls: type) -> dict[str, Any]:
  """Field → its type, for those with conditions."""
  hints = typing.get_type_hints(cls, include_extras=True)
  return {name: hint for name, hint in hints.items() if conditions(hint)}


def _refusals(hint: Any, value: Any) -> Iterator[tuple[Any, Any]]:
  """(value or item, the condition that it breaks)."""
  origin, args = typing.get_origin(hint), typing.get_args(hint)
  if origin is Annotated:
    yield from _refusals(args[0], value)
    for condition in args[1:]:
      if isinstance(condition, _CONDITIONS) and not condition.accepts(value):
        yield value, condition
  elif origin is Literal and value not in args:
    yield value, OneOf(args)
  elif origin is tuple:
    hints = [args[0]] * len(value) if args[1:] == (Ellipsis,) else args
    for each, item in zip(hints, value, strict=False):
      yield from _refusals(each, item)
  elif origin in (typing.Union, types.UnionType):
    members = [member for member in args if _fits(member, value)]
    for member in members or args[:1]:
      yield from _refusals(member, value)


def _corners(value: Any) -> tuple[Any, ...]:
  """A number, or the extreme values of a schedule."""
  return value.corners() if hasattr(value, "corners") else (value,)


def _is_finite(value: Any) -> bool:
  return all(abs(x) < math.inf for x in _corners(value))


def _fits(hint: Any, value: Any) -> bool:
  """Whether a value is of a member of a union, but for its range."""
  while typing.get_origin(hint) is Annotated:
    hint = typing.get_args(hint)[0]
  hint = typing.get_origin(hint) or hint
  if hint in (int, float):
    hint = numbers.Real  # numpy's numbers too.
  return isinstance(value, hint) if isinstance(hint, type) else True
