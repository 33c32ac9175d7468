"""Changes fields of a config from the command line, and writes configs as JSON.

`--set batch_size=64 --set exploration.epsilon=0.1` addresses fields of a frozen
dataclass by their path. A value is parsed by the field's type hint, and the config is
rebuilt from the inside out, so that every `__post_init__` checks the new combination.
"""

import contextlib
import dataclasses
import math
import types
import typing
from collections.abc import Sequence
from typing import Any, TypeVar

from explorax.experiments import errors, expressions

ConfigT = TypeVar("ConfigT")

_TRUE = ("true", "t", "yes", "y", "1")
_FALSE = ("false", "f", "no", "n", "0")
_NONE = ("none", "null")
_MARK = "@"  # Separates a preset's name from its settings.


def apply(config: ConfigT, assignments: Sequence[str]) -> ConfigT:
  """Returns `config` with the fields that `assignments` name changed.

  All changes are made before the checks of `__post_init__` run, so two fields that
  constrain each other can be set together.

  Args:
    config: a frozen dataclass; its fields may be frozen dataclasses, too.
    assignments: each `field=value` or `group.field=value`. Values: `true`/`false`;
      whole numbers (`1e6` is one, `1.5` is not); floats; strings as they are; `none`
      if the field allows it; tuples as `50,50` (`()` or nothing for an empty one);
      a dataclass as Python writes it: `Linear(1.0, 0.1, steps=1000)`, `TreeBackup` or
      `my_module:MyTarget()` (see `expressions`).

  Raises:
    ValueError: for an assignment without `=`, an unknown field (the message lists the
      known ones), a value of the wrong type, a field that is set twice, or a
      combination that the config refuses.
  """
  changes: dict[tuple[str, ...], Any] = {}
  for assignment in assignments:
    name, equals, text = assignment.partition("=")
    path = tuple(name.strip().split("."))
    if not equals or not all(path):
      raise ValueError(
        f"--set {assignment} is not of the form field=value; for example, write "
        f"--set {settable_fields(config)[0]}=..."
      )
    hint = _field_type(config, path, text)
    if path in changes:
      raise ValueError(f"--set gives {name.strip()} twice; remove one of them.")
    changes[path] = parse(text.strip(), hint, name.strip())
  return _rebuild(config, changes)


def spell(value: Any) -> str:
  """A value as `parse` reads it: the inverse for what `apply` can set."""
  if value is None:
    return "none"
  if isinstance(value, (tuple, list)):
    return f"({', '.join(map(spell, value))})"
  if not _is_config(value):
    return str(value)
  cls = type(value)
  own = "" if cls.__module__.startswith("explorax.") else f"{cls.__module__}:"
  arguments = []
  for name in _fields(value):
    inner = getattr(value, name)
    text = repr(inner) if isinstance(inner, str) else spell(inner)
    arguments.append(f"{name}={text}")
  return f"{own}{cls.__name__}({', '.join(arguments)})"


def settable_fields(config: Any) -> list[str]:
  """The dotted names of all fields that `apply` can set, in order."""
  names: list[str] = []
  for field in _fields(config):
    value = getattr(config, field)
    if _is_config(value):
      names.extend(f"{field}.{inner}" for inner in settable_fields(value))
    else:
      names.append(field)
  return names


def parse(text: str, hint: Any, name: str) -> Any:
  """Parses `text` as a value of the type `hint`.

  Args:
    text: as typed on the command line.
    hint: bool, int, float, str, a `Literal`, a tuple of these, or a union of these.
    name: the name of the value in an error message.

  Raises:
    ValueError: if `text` is not such a value.
  """
  origin, args = typing.get_origin(hint), typing.get_args(hint)
  if origin in (typing.Union, types.UnionType):
    return _parse_union(text, args, name)
  if origin is typing.Literal:
    return _parse_literal(text, args, name)
  if origin is tuple:
    return _parse_tuple(text, args, name)
  if hint is bool:
    return _parse_bool(text, name)
  if hint is int:
    return parse_int(text, name)
  if hint is float:
    return _parse_float(text, name)
  if hint is str:
    return text
  if _is_object(hint):
    return expressions.read(text, hint, name, parse)
  raise ValueError(f"{name} cannot be set from the command line; set it in Python.")


def parse_int(text: str, name: str) -> int:
  """Parses a whole number; `1e6` and `1_000_000` are valid, `1.5` is not."""
  value = math.nan
  if text.isascii():
    with contextlib.suppress(ValueError):
      return int(text)
    with contextlib.suppress(ValueError):
      value = float(text)
  if not math.isfinite(value) or value != int(value):
    raise ValueError(f"{name} is {text!r}; it must be a whole number.")
  return int(value)


def join_name(preset: str, assignments: Sequence[str]) -> str:
  """`tdu@beta=0.5@n_step=3`: a preset's name and changed settings."""
  return _MARK.join((preset, *assignments))


def split_name(name: str) -> tuple[str, tuple[str, ...]]:
  """The inverse of `join_name`."""
  preset, *assignments = name.split(_MARK)
  return preset, tuple(assignments)


def to_dict(config: Any) -> dict[str, Any]:
  """A config in JSON's types; `class` names the dataclass of each level.

  Tuples become lists, functions their qualified names, and infinities, which JSON
  lacks, strings.

  Raises:
    TypeError: for a value that JSON cannot represent.
  """
  fields = [field.name for field in dataclasses.fields(config)]
  values = {name: _to_json(getattr(config, name), name) for name in fields}
  return {"class": type(config).__qualname__, **values}


def _to_json(value: Any, name: str) -> Any:
  if _is_config(value):
    return to_dict(value)
  if isinstance(value, float) and not math.isfinite(value):
    return str(value)
  if value is None or isinstance(value, (bool, int, float, str)):
    return value
  if isinstance(value, (tuple, list)):
    return [_to_json(item, name) for item in value]
  if isinstance(value, dict):
    return {str(key): _to_json(item, name) for key, item in value.items()}
  if callable(value) and hasattr(value, "__qualname__"):
    return f"{value.__module__}:{value.__qualname__}"
  raise TypeError(
    f"the config's {name} is a {type(value).__name__}, which config.json cannot hold; "
    "use numbers, strings, tuples, functions or dataclasses."
  )


def _is_config(value: Any) -> bool:
  return dataclasses.is_dataclass(value) and not isinstance(value, type)


def _is_object(hint: Any) -> bool:
  return isinstance(hint, type) and hint not in (bool, int, float, str, Any)


def _fields(config: Any) -> list[str]:
  return [field.name for field in dataclasses.fields(config) if field.init]


def _field_type(config: Any, path: tuple[str, ...], text: str) -> Any:
  """The type hint of the field at `path`.

  Raises:
    ValueError: if there is no such field, or if it is a group of fields and `text` is
      not a value for the whole group.
  """
  parent = node = config
  for depth, field in enumerate(path):
    so_far = ".".join(path[:depth])
    if not _is_config(node):
      why = "is not in use" if node is None else "has no fields of its own"
      raise ValueError(
        f"{'.'.join(path)} cannot be set: {so_far} {why} in this agent's config."
      )
    if field not in _fields(node):
      known = settable_fields(config)
      raise ValueError(
        f"{type(config).__name__} has no field {'.'.join(path)!r}."
        f"{errors.nearest('.'.join(path), known)} Its fields are: {', '.join(known)}."
      )
    parent, node = node, getattr(node, field)
  hint = typing.get_type_hints(type(parent))[path[-1]]
  is_group = _is_config(node) and not typing.get_args(hint)
  if is_group and not expressions.is_one(text.strip()):
    inner = ", ".join(f"{'.'.join(path)}.{name}" for name in settable_fields(node))
    raise ValueError(
      f"{'.'.join(path)} is a group of fields; set one of them: {inner}."
    )
  return hint


def _rebuild(config: Any, changes: dict[tuple[str, ...], Any]) -> Any:
  """`dataclasses.replace`, from the innermost dataclass outwards."""
  if not changes:
    return config
  replaced = {path[0]: value for path, value in changes.items() if len(path) == 1}
  for field in {path[0] for path in changes if len(path) > 1}:
    if field in replaced:
      raise ValueError(f"--set gives {field} and a field of it; remove one of them.")
    inner = {path[1:]: v for path, v in changes.items() if path[0] == field}
    replaced[field] = _rebuild(getattr(config, field), inner)
  return dataclasses.replace(config, **replaced)


def _parse_bool(text: str, name: str) -> bool:
  if text.lower() in _TRUE:
    return True
  if text.lower() in _FALSE:
    return False
  raise ValueError(f"{name} is {text!r}; it must be true or false.")


def _parse_float(text: str, name: str) -> float:
  value = math.nan
  if text.isascii():
    with contextlib.suppress(ValueError):
      value = float(text)
  if math.isnan(value):
    raise ValueError(f"{name} is {text!r}; it must be a number.")
  return value


def _parse_literal(text: str, choices: tuple[Any, ...], name: str) -> Any:
  by_text = {str(choice): choice for choice in choices}
  if text not in by_text:
    raise ValueError(
      f"{name} is {text!r}; it must be one of {', '.join(by_text)}."
      f"{errors.nearest(text, list(by_text))}"
    )
  return by_text[text]


def _parse_tuple(text: str, args: tuple[Any, ...], name: str) -> tuple[Any, ...]:
  inside = text.strip().removeprefix("(").removesuffix(")").strip().removesuffix(",")
  items = [item.strip() for item in inside.split(",")] if inside else []
  if len(args) == 2 and args[1] is Ellipsis:
    hints = [args[0]] * len(items)
  else:
    hints = list(args)
  if len(items) != len(hints):
    raise ValueError(
      f"{name} is {text!r}; it must be {len(hints)} values separated by commas."
    )
  pairs = zip(items, hints, strict=True)
  return tuple(
    parse(item, hint, f"{name}[{i}]") for i, (item, hint) in enumerate(pairs)
  )


def _parse_union(text: str, members: tuple[Any, ...], name: str) -> Any:
  optional = type(None) in members
  if optional and text.lower() in _NONE:
    return None
  # A string comes last, since it accepts any text.
  candidates = [hint for hint in members if hint is not type(None)]
  candidates.sort(key=lambda hint: hint is str)
  if "(" in text:
    objects = [hint for hint in candidates if _is_object(hint)]
    candidates = objects or candidates
  refusals = []
  for hint in candidates:
    try:
      return parse(text, hint, name)
    except ValueError as error:
      refusals.append(str(error).removesuffix("."))
  if not expressions.is_one(text) and all(map(_is_object, candidates)):
    raise ValueError(
      f"{name} is a group of fields: set one of its fields (--set {name}.field=value), "
      "or none to do without it."
    )
  raise ValueError(refusals[0] + (", or none." if optional else "."))
