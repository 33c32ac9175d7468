"""Every setting with a range, of agents, their parts, environments, runs and figures.

One test walks over all of them: `ranges.Checked` knows its subclasses.
"""

import ast
import dataclasses
import importlib
import inspect
import math
import pathlib
import pkgutil
import typing
from collections.abc import Iterator
from typing import Annotated, Any, Literal

import numpy as np
import pytest

from explorax import exploration, ranges
from explorax.agents import types

pytestmark = pytest.mark.ops

ROOT = pathlib.Path(__file__).resolve().parent.parent

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
  "ReplaySpec": {
    "capacity": 64,
    "min_size": 5,
    "batch_size": 4,
    "updates_per_step": 1.0,
  },
}
# Numbers and texts that may have any value, and those that another check refuses.
FREE = {
  "Linear.start",
  "Linear.end",
  "Piecewise.values",
  "Alternating.start",
  "Alternating.ends",
  "QConfig.evaluation_policy",  # Depends on num_policies.
  "ReplaySpec.min_size",  # Depends on the capacity.
  # Checked with the runner and the environment, or by what reads them.
  *(
    f"RunConfig.{name}"
    for name in (
      *("agent", "settings", "env", "runner", "replay", "output", "logger"),
      *("ray_address", "callback", "init_weights"),
    )
  ),
  "ReplaySpec.extras",
  "ReplaySpec.first_row_extras",
  "ReplaySpec.priority_extras",
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
  distinct: Annotated[tuple[ranges.NonNegativeInt, ...], ranges.Distinct()] = (1, 0)
  rising: Annotated[tuple[float, ...], ranges.Rising(2)] = (1, 2)


@pytest.mark.parametrize(
  ("field", "value", "refused", "allowed"),
  [
    ("count", 0, 0, "at least 1"),
    ("count", 2**31, 2**31, f"at most {2**31 - 1}"),
    ("share", 1.0, 1.0, "at least 0 and below 1"),
    ("share", math.nan, math.nan, "below 1"),
    ("limit", 0.0, 0.0, "above 0"),
    ("limit", math.inf, math.inf, "finite"),
    ("either", (0.5, 1.5), 1.5, "at most 1"),
    ("either", -1, -1, "at least 0"),
    ("word", "c", "c", "one of a, b"),
    ("choice", "z", "z", "one of x, y"),
    ("distinct", (), (), "one or more"),
    ("distinct", (1, 1), (1, 1), "once"),
    ("distinct", (-1,), -1, "at least 0"),
    ("rising", (1,), (1,), "2 or more"),
    ("rising", (2, 1), (2, 1), "rising"),
  ],
)
def test_conditions(field, value, refused, allowed):
  with pytest.raises(ValueError) as caught:
    Settings(**{field: value})
  sentence = str(caught.value)
  verb = "is" if refused is value else "has"
  assert sentence.startswith(f"Settings.{field} {verb} {refused!r}; it must be ")
  assert allowed in sentence and sentence.endswith(".")


def test_values_in_their_ranges_are_accepted():
  Settings(count=2**31 - 1, limit=1e-9, either=(0, 1), word="b", rising=(1, 2, 3))
  Settings(count=np.int32(3), share=np.float32(0.5), either=np.float32(1.0))
  with pytest.raises(ValueError, match="either is"):
    Settings(either=np.float32(1.5))


def _subclasses(cls: type) -> Iterator[type]:
  for subclass in cls.__subclasses__():
    yield subclass
    yield from _subclasses(subclass)


# Settings of figures are checked by the same function; `papers/test_settings.py` has
# the values that figures refuse.
FOLDERS = ("exploration", "agents", "environments", "experiments")


def _all_settings() -> list[type]:
  """Every class with checked fields in these folders."""
  for folder in FOLDERS[:-1]:
    package = importlib.import_module(f"explorax.{folder}")
    for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
      try:
        importlib.import_module(info.name)
      except ImportError:  # Of an optional package.
        continue
  importlib.import_module("explorax.experiments.config")
  return sorted(
    {
      cls
      for cls in _subclasses(ranges.Checked)
      if cls.__module__.startswith(tuple(f"explorax.{folder}." for folder in FOLDERS))
      and dataclasses.is_dataclass(cls)
      and not inspect.isabstract(cls)
    },
    key=str,
  )


def _beyond(condition: Any) -> list[Any]:
  """Values that a condition refuses."""
  match condition:
    case ranges.Range():
      values = [condition.ge - 1, condition.gt, condition.le + 1, condition.lt]
      return [value for value in values if abs(value) < math.inf] + [math.nan]
    case ranges.OneOf():
      return ["no such choice"]
    case _:  # Conditions of a tuple.
      return [()]


def _refused(hint: Any) -> Iterator[tuple[Any, Any, Any]]:
  """(value of a field of this type, the refused part of it, the condition)."""
  origin, args = typing.get_origin(hint), typing.get_args(hint)
  if origin is Literal:
    yield "no such choice", "no such choice", ranges.OneOf(args)
  elif origin is Annotated and args[0] is not exploration.Schedule:
    for condition in ranges.conditions(Annotated[Any, *args[1:]]):
      for value in _beyond(condition):
        yield value, value, condition
    yield from _refused(args[0])
  elif origin is tuple:
    for value, part, condition in _refused(args[0]):
      yield (value,), part, condition
  else:
    for arg in args:
      yield from _refused(arg)


SETTINGS = _all_settings()


def test_all_kinds_of_settings_are_found():
  names = {cls.__name__ for cls in SETTINGS}
  assert names >= {"QConfig", "RND", "Retrace", "Thompson", "Linear", "ZetaDuration"}


@pytest.mark.parametrize("cls", SETTINGS, ids=lambda cls: cls.__name__)
def test_every_bound_is_refused_in_one_sentence(cls):
  arguments = ARGUMENTS.get(cls.__name__, {})
  default = cls(**arguments)  # The defaults are within their ranges.
  for name, hint in typing.get_type_hints(cls, include_extras=True).items():
    for value, part, condition in _refused(hint):
      with pytest.raises(ValueError) as caught:
        cls(**{**arguments, name: value})
      expected = f"{ranges.label(default, name)} "
      sentence = str(caught.value)
      assert sentence.startswith(expected) and f"{part!r}; it must be" in sentence
      assert f"{condition}" in sentence and "\n" not in sentence


@pytest.mark.parametrize("cls", SETTINGS, ids=lambda cls: cls.__name__)
def test_every_number_and_text_has_a_range(cls):
  hints = typing.get_type_hints(cls, include_extras=True)
  for field in dataclasses.fields(cls):
    hint = hints[field.name]
    types_of_field = {hint, *typing.get_args(hint)}
    if (
      types_of_field & {int, float, str} and f"{cls.__name__}.{field.name}" not in FREE
    ):
      assert ranges.conditions(hint), f"{cls.__name__}.{field.name} has no range"


def _read_outside_checks() -> set[str]:
  """The attributes that our code reads, other than in `__post_init__`."""
  names: set[str] = set()
  for path in (path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")):
    nodes = [ast.parse(path.read_text(encoding="utf-8"))]
    while nodes:
      node = nodes.pop()
      if getattr(node, "name", "") != "__post_init__":
        names |= {node.attr} if isinstance(node, ast.Attribute) else set()
        nodes += ast.iter_child_nodes(node)
  return names


def test_every_field_is_read():
  read = _read_outside_checks()
  fields = {(cls, field.name) for cls in SETTINGS for field in dataclasses.fields(cls)}
  assert not [f"{cls.__name__}.{name}" for cls, name in fields if name not in read]


def test_a_replay_spec_checks_its_combinations():
  with pytest.raises(ValueError, match="min_size"):
    types.ReplaySpec(**{**ARGUMENTS["ReplaySpec"], "min_size": 65})
