"""Ranges of settings, as metadata of their types, and one check of all of them.

    @dataclasses.dataclass(frozen=True)
    class Config(ranges.Checked):
      batch_size: ranges.PositiveInt = 32
      max_norm: ranges.PositiveFloat | None = None
      decay: Annotated[float, ranges.Range(ge=0, lt=1)] = 0.99

A value of another type or outside its range raises a ValueError of one sentence with
the setting, the value and what it must be; whole numbers may be floats (1e3). Every
part of the package may use this module, which imports only the standard library.
"""

import contextlib
import dataclasses
import functools
import math
import numbers
import types
import typing
from collections.abc import Collection
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
    corners = value.corners() if hasattr(value, "corners") else (value,)
    return all(
      self.ge <= x <= self.le and self.gt < x < self.lt and abs(x) < math.inf
      for x in corners
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
class Rising:
  """A tuple of at least `num` values, in rising order."""

  num: int = 1

  def accepts(self, value: Any) -> bool:
    return len(value) >= self.num and list(value) == sorted(set(value))

  def __str__(self) -> str:
    return f"{self.num} or more, each of them once, in rising order"


# Whole numbers fit in int32, since jitted functions compute with them.
PositiveInt = Annotated[int, Range(ge=1, le=MAX_INT32)]
AtLeastTwo = Annotated[int, Range(ge=2, le=MAX_INT32)]
NonNegativeInt = Annotated[int, Range(ge=0, le=MAX_INT32)]
PositiveFloat = Annotated[float, Range(gt=0)]
NonNegativeFloat = Annotated[float, Range(ge=0)]
Probability = Annotated[float, Range(ge=0, le=1)]
Seed = Annotated[int, Range(ge=0, le=MAX_SEED)]
BelowOne = Annotated[float, Range(ge=0, lt=1)]

CONDITIONS = (Range, OneOf, Rising)
_UNIONS = (typing.Union, types.UnionType)
_NAMES = {
  bool: "true or false",
  int: "a whole number",
  float: "a number",
  str: "text",
  type(None): "none",
}


class Checked:
  """Base of frozen dataclasses whose fields are checked when one is made.

  A subclass with a `__post_init__` of its own calls this one first.
  """

  def __post_init__(self) -> None:
    check(self)


def check(settings: Any) -> None:
  """Refuses values that are not of their fields' types, or outside their ranges.

  Fields of a dataclass get the value in their own type: 1000 for 1e3 where whole
  numbers are, 1.0 for 1 where any numbers are, a tuple for a list.

  Args:
    settings: a dataclass or a NamedTuple.

  Raises:
    ValueError: a sentence with the setting, its value and what it must be.
  """
  for name, hint in hints(settings.__class__).items():
    value = getattr(settings, name)
    typed = convert(value, hint, label(settings, name))
    if typed is not value and dataclasses.is_dataclass(settings):
      object.__setattr__(settings, name, typed)


def label(settings: Any, name: str) -> str:
  """`RND.decay`; for configs and environments' parameters only the field's name."""
  kind = type(settings).__name__
  return name if kind.endswith(("Config", "Params", "Profile")) else f"{kind}.{name}"


@functools.cache
def hints(cls: Any) -> dict[str, Any]:
  """Field → its type; a default of None means that a later step chooses the value."""
  hints = typing.get_type_hints(cls, include_extras=True)
  if not dataclasses.is_dataclass(cls):
    return {name: hints[name] for name in cls._fields}
  return {
    field.name: hints[field.name] | None if field.default is None else hints[field.name]
    for field in dataclasses.fields(cls)
  }


def convert(value: Any, hint: Any, name: str) -> Any:
  """The value in a type with conditions.

  Args:
    value: of a setting.
    hint: the type.
    name: of the setting, for errors.

  Raises:
    ValueError: a sentence with the setting, its value and what it must be.
  """
  try:
    return _convert(value, hint)
  except _RefusedError:
    raise ValueError(f"{name} is {value!r}; it must be {_describe(hint)}.") from None


class _RefusedError(Exception):
  """A value, or a part of it, is not what it must be."""


def _convert(value: Any, hint: Any) -> Any:
  origin, args = typing.get_origin(hint), typing.get_args(hint)
  if origin is Annotated:
    typed = _convert(value, args[0])
    _require(all(x.accepts(typed) for x in args[1:] if isinstance(x, CONDITIONS)))
    return typed
  if origin is Literal:
    _require(value in args)
    return value
  if origin in _UNIONS:
    for member in args:
      with contextlib.suppress(_RefusedError):
        return _convert(value, member)
    raise _RefusedError
  if origin is tuple:
    _require(isinstance(value, tuple | list))
    each = [args[0]] * len(value) if args[1:] == (Ellipsis,) else args
    _require(len(value) == len(each))
    return tuple(map(_convert, value, each))
  if hint in (int, float):  # numpy's numbers too.
    _require(isinstance(value, numbers.Real) and not isinstance(value, bool))
    _require(hint is float or (abs(value) < math.inf and value == int(value)))
    return hint(value)
  kind = origin or hint
  _require(kind is Any or not isinstance(kind, type) or isinstance(value, kind))
  return value


def _require(condition: bool) -> None:
  if not condition:
    raise _RefusedError


def _describe(hint: Any) -> str:
  """What a value of a type is: `a whole number, at least 1, or none`."""
  origin, args = typing.get_origin(hint), typing.get_args(hint)
  if origin is Annotated:
    kind = "a finite number" if args[0] is float else _describe(args[0])
    return ", ".join([kind, *(str(x) for x in args[1:] if isinstance(x, CONDITIONS))])
  if origin is Literal:
    return str(OneOf(args))
  if origin in _UNIONS:
    return ", or ".join(map(_describe, args))
  if origin is tuple:
    if args[1:] == (Ellipsis,):
      return f"a tuple of values, each {_describe(args[0])}"
    return f"a tuple of {len(args)} values"
  return _NAMES.get(hint) or f"a {getattr(hint, '__name__', hint)}"
