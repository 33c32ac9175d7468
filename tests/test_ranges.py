"""Every setting with a range, of agents, their parts, environments and runs.

One test walks over all of them: `ranges.Checked` knows its subclasses.
"""

import dataclasses
import importlib
import inspect
import math
import pkgutil
import typing
from collections.abc import Iterator
from typing import Annotated, Any, Literal

import numpy as np
import pytest

from explorax import exploration, notation, ranges

pytestmark = pytest.mark.core

# Arguments of the classes that have fields without a default.
ARGUMENTS: dict[str, dict[str, Any]] = {
  "Linear": {"start": 1.0, "end": 0.1, "steps": 5},
  "Piecewise": {"values": (1.0, 0.1), "steps": (5,)},
  "ExponentialDuration": {"decay": 0.5},
  "UniformDuration": {"cap": 5},
  "EpsilonGreedy": {"epsilon": 0.1},
  "EzGreedy": {"epsilon": 0.1},
  "Boltzmann": {"temperature": 0.1},
  "Profile": {"height": 84, "width": 84, "grey": True, "stack": 4},
  "ReplaySpec": {"capacity": 9, "min_size": 5, "batch_size": 4, "updates_per_step": 1},
}


@dataclasses.dataclass(frozen=True)
class Settings(ranges.Checked):
  """One field for each kind of condition."""

  count: ranges.PositiveInt = 1
  share: ranges.BelowOne = 0.0
  limit: ranges.PositiveFloat | None = None
  either: ranges.Probability | tuple[ranges.Probability, ...] = 0.5
  word: Literal["a", "b"] = "a"
  choice: Annotated[str, ranges.OneOf(("x", "y"))] = "x"
  rising: Annotated[tuple[float, ...], ranges.Rising(2)] = (1, 2)
  pair: tuple[int, float] = (1, 2.0)


@pytest.mark.parametrize(
  ("field", "value", "allowed"),
  [
    ("count", 0, "at least 1"),
    ("count", 2**31, f"at most {2**31 - 1}"),
    *(("count", x, "whole number") for x in (1.5, "20", True, None, math.nan)),
    ("share", 1.0, "at least 0 and below 1"),
    ("share", math.nan, "finite"),
    ("limit", 0.0, "above 0, or none"),
    ("limit", math.inf, "finite"),
    ("either", (0.5, 1.5), "at most 1"),
    ("either", np.float32(1.5), "at most 1"),
    ("word", "c", "one of a, b"),
    ("choice", "z", "one of x, y"),
    *(("rising", x, "rising") for x in ((1,), (2, 1))),
    ("pair", (1,), "2 values"),
  ],
)
def test_a_value_outside_is_refused_in_one_sentence(field, value, allowed):
  with pytest.raises(ValueError) as caught:
    Settings(**{field: value})
  sentence = str(caught.value)
  assert sentence.startswith(f"Settings.{field} is {value!r}; it must be ")
  assert allowed in sentence and sentence.endswith(".")


def test_values_are_converted_to_their_types():
  made = Settings(count=1e3, limit=1, either=[0, np.float32(0.5)], rising=(1, 2, 3))
  assert (made.count, made.limit, made.either) == (1000, 1.0, (0.0, 0.5))
  assert type(made.count) is int and type(made.limit) is float


def _all_settings() -> list[type]:
  """Every class with checked fields, of figures excepted."""
  for folder in ("exploration", "agents", "environments"):
    package = importlib.import_module(f"explorax.{folder}")
    for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
      try:
        importlib.import_module(info.name)
      except ImportError:  # Of an optional package.
        continue
  importlib.import_module("explorax.experiments.config")
  left, classes = [ranges.Checked], set[type]()
  while left:
    left += (subclasses := left.pop().__subclasses__())
    classes |= {x for x in subclasses if x.__module__.startswith("explorax.")}
  is_used = [x for x in classes if dataclasses.is_dataclass(x)]
  return sorted((x for x in is_used if not inspect.isabstract(x)), key=str)


def _refused(hint: Any) -> Iterator[Any]:
  """Values of a field of this type that are outside."""
  origin, args = typing.get_origin(hint), typing.get_args(hint)
  if origin is Literal:
    yield "no such choice"
  elif origin is tuple:
    yield from ((value,) for value in _refused(args[0]))
  elif origin is Annotated and args[0] is not exploration.Schedule:
    for x in args[1:]:
      if isinstance(x, ranges.Range):
        ends = (x.ge - 1, x.gt, x.le + 1, x.lt)
        yield from [end for end in ends if abs(end) < math.inf] + [math.nan]
      elif isinstance(x, ranges.CONDITIONS):
        yield "no such choice" if isinstance(x, ranges.OneOf) else ()
    yield from _refused(args[0])
  else:
    for arg in args:
      yield from _refused(arg)


@pytest.mark.parametrize("cls", _all_settings(), ids=lambda cls: cls.__name__)
def test_every_bound_is_refused(cls):
  arguments = ARGUMENTS.get(cls.__name__, {})
  default = cls(**arguments)  # The defaults are within their ranges.
  for name, hint in typing.get_type_hints(cls, include_extras=True).items():
    for value in _refused(hint):
      with pytest.raises(ValueError, match="must be") as caught:
        cls(**{**arguments, name: value})
      assert str(caught.value).startswith(f"{ranges.label(default, name)} is ")


@pytest.mark.parametrize("word", ["hopper-medium-v2", "a|b", "{1: 2}", "1 2"])
def test_what_is_not_in_the_notation_is_kept_as_it_is_written(word):
  assert notation.parse(word) == word
  assert notation.parse(f"({word!r}, -1e3, None)") == (word, -1000.0, None)
