"""Changes fields of a config from the command line, and writes configs as JSON.

`--set batch_size=64 --set exploration.epsilon=0.1` addresses fields of a frozen
dataclass by their path. A value is parsed by the field's type hint, and the config is
rebuilt from the inside out, so that every `__post_init__` checks the new combination.
"""

import ast
import dataclasses
import functools
import importlib
import math
import pkgutil
import re
import sys
import types
import typing
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from explorax.experiments import errors, named

ConfigT = TypeVar("ConfigT")

_BOOLS = {
  **dict.fromkeys(("true", "t", "yes", "y", "1"), True),
  **dict.fromkeys(("false", "f", "no", "n", "0"), False),
}
_NONE = ("none", "null")
_MARK = "@"  # Separates a preset's name from its settings.
_CALL = re.compile(r"[A-Za-z_][\w.:]*\(")
# The colon of `module:Name`, outside of strings.
_COLON = re.compile(r"""('[^']*'|"[^"]*")|(?<=\w):(?=[A-Za-z_])""")

# `module:Name` → the class of a user.
Resolve = Callable[[str], Any]


class ForeignCodeError(Exception):
  """A file's setting, the argument, names a class that is not ours."""


def _import(name: str) -> Any:
  return named.attribute(name, "class")


def apply(
  config: ConfigT,
  assignments: Sequence[str],
  recorded: Sequence[str] = (),
) -> ConfigT:
  """Returns `config` with the fields that `assignments` name changed.

  All changes are made before the checks of `__post_init__` run, so two fields that
  constrain each other can be set together.

  Args:
    config: a frozen dataclass; its fields may be frozen dataclasses, too.
    assignments: each `field=value` or `group.field=value`; see `parse` for values.
    recorded: more of them, from a file: they import nothing.

  Raises:
    ForeignCodeError: if a recorded one names a class that is not ours.
    ValueError: for an assignment without `=`, an unknown field (the message lists the
      known ones), a value of the wrong type, a field that is set twice, or a
      combination that the config refuses.
  """
  changes: dict[tuple[str, ...], Any] = {}
  for assignment in (*recorded, *assignments):
    name, equals, text = assignment.partition("=")
    path = tuple(name.strip().split("."))
    if not equals or not all(path):
      raise ValueError(
        f"--set {assignment} is not of the form field=value; for example, write "
        f"--set {settable_fields(config)[0]}=..."
      )
    hint = _hint(config, path)
    if path in changes:
      raise ValueError(f"--set gives {name.strip()} twice; remove one of them.")
    resolve = (
      _import if assignment in assignments else functools.partial(_refuse, assignment)
    )
    changes[path] = parse(text.strip(), hint, name.strip(), resolve)
  return _rebuild(config, changes)


def _refuse(assignment: str, name: str) -> Any:
  del name
  raise ForeignCodeError(assignment)


def settable_fields(config: Any) -> list[str]:
  """The dotted names of all fields that `apply` can set, in order."""
  names: list[str] = []
  for field in _fields(config):
    value = getattr(config, field)
    inner = settable_fields(value) if _is_config(value) else []
    names += [f"{field}.{name}" for name in inner] or [field]
  return names


def parse(text: str, hint: Any, name: str, resolve: Resolve = _import) -> Any:
  """Parses `text` as a value of the type `hint`.

  Args:
    text: `true` or `false`; a whole number (`1e6` is one, `1.5` is not); a float; a
      string as it is; `none` if the type allows it; a tuple as `50,50` (`()` or nothing
      for an empty one); a dataclass in Python's notation: `TreeBackup` or
      `Linear(1.0, 0.1, steps=1000)` of a class in the package of the expected type, or
      `my_module:MyTarget()` of your own.
    hint: bool, int, float, str, a `Literal`, a dataclass or a base of dataclasses, a
      tuple of these, or a union of these.
    name: the name of the value in an error message.
    resolve: finds a class of the user's own.

  Raises:
    ValueError: if `text` is not such a value.
  """
  origin, args = typing.get_origin(hint), typing.get_args(hint)
  if origin in (typing.Union, types.UnionType):
    return _parse_union(text, args, name, resolve)
  if origin is typing.Literal:
    return _parse_choice(text, {str(choice): choice for choice in args}, name)
  if origin is tuple:
    return _parse_tuple(text, args, name, resolve)
  if hint is bool:
    if text.lower() not in _BOOLS:
      raise ValueError(f"{name} is {text!r}; it must be true or false.")
    return _BOOLS[text.lower()]
  if hint is int:
    return parse_int(text, name)
  if hint is float:
    number = _number(text)
    if math.isnan(number):
      raise ValueError(f"{name} is {text!r}; it must be a number.")
    return number
  if hint is str:
    return text
  if _is_object(hint):
    return _parse_object(text, hint, name, resolve)
  raise ValueError(f"{name} cannot be set from the command line; set it in Python.")


def parse_int(text: str, name: str) -> int:
  """Parses a whole number; `1e6` and `1_000_000` are valid, `1.5` is not.

  Raises:
    ValueError: if it is not one, or its size is 2⁵³ or more.
  """
  number = _number(text)
  if not abs(number) < 2**53 or number != int(number):
    raise ValueError(f"{name} is {text!r}; it must be a whole number below 2^53.")
  return int(number)


def spell(value: Any) -> str:
  """A value as `parse` reads it: the inverse for what `apply` can set."""
  if value is None:
    return "none"
  if isinstance(value, (tuple, list)):
    return f"({', '.join(map(spell, value))})"
  if not _is_config(value):
    return str(value)
  cls = type(value)
  module = "" if cls.__module__.startswith("explorax.") else f"{cls.__module__}:"
  arguments = []
  for name in _fields(value):
    inner = getattr(value, name)
    text = repr(inner) if isinstance(inner, str) else spell(inner)
    arguments.append(f"{name}={text}")
  return f"{module}{cls.__name__}({', '.join(arguments)})"


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


def _hint(config: Any, path: tuple[str, ...]) -> Any:
  """The type hint of the field at `path`; a ValueError if there is no such field."""
  parent = node = config
  for depth, field in enumerate(path):
    if not _is_config(node):
      why = "is not in use" if node is None else "has no fields of its own"
      raise ValueError(
        f"{'.'.join(path)} cannot be set: {'.'.join(path[:depth])} {why} in this "
        "agent's config."
      )
    if field not in _fields(node):
      known = settable_fields(config)
      raise ValueError(
        f"{type(config).__name__} has no field {'.'.join(path)!r}."
        f"{errors.nearest('.'.join(path), known)} Its fields are: {', '.join(known)}."
      )
    parent, node = node, getattr(node, field)
  return typing.get_type_hints(type(parent))[path[-1]]


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


def _number(text: str) -> float:
  """The number, or NaN."""
  try:
    return float(text) if text.isascii() else math.nan
  except ValueError:
    return math.nan


def _parse_choice(text: str, choices: dict[str, Any], name: str) -> Any:
  if text not in choices:
    raise ValueError(
      f"{name} is {text!r}; it must be one of {', '.join(choices)}."
      f"{errors.nearest(text, list(choices))}"
    )
  return choices[text]


def _parse_tuple(
  text: str, args: tuple[Any, ...], name: str, resolve: Resolve
) -> tuple[Any, ...]:
  inside = text.strip().removeprefix("(").removesuffix(")").strip().removesuffix(",")
  items = [item.strip() for item in inside.split(",")] if inside else []
  hints = [args[0]] * len(items) if args[1:] == (Ellipsis,) else list(args)
  if len(items) != len(hints):
    raise ValueError(
      f"{name} is {text!r}; it must be {len(hints)} values separated by commas."
    )
  pairs = zip(items, hints, strict=True)
  return tuple(
    parse(item, hint, f"{name}[{i}]", resolve) for i, (item, hint) in enumerate(pairs)
  )


def _parse_union(
  text: str, members: tuple[Any, ...], name: str, resolve: Resolve
) -> Any:
  optional = type(None) in members
  if optional and text.lower() in _NONE:
    return None
  # A string comes last, since it accepts any text.
  hints = [hint for hint in members if hint is not type(None)]
  hints.sort(key=lambda hint: hint is str)
  if _CALL.match(text):
    hints = [hint for hint in hints if _is_object(hint)] or hints
  refusals = []
  for hint in hints:
    try:
      return parse(text, hint, name, resolve)
    except ValueError as error:
      refusals.append(str(error).removesuffix("."))
  raise ValueError(refusals[0] + (", or none." if optional else "."))


def _parse_object(text: str, wanted: type, name: str, resolve: Resolve) -> Any:
  """An instance of a dataclass from its name and arguments: `Retrace(lambda_=0.9)`."""
  known = _classes(wanted)
  names = ", ".join(sorted(known))
  try:
    call = ast.parse(_COLON.sub(_dot, text), mode="eval").body
  except SyntaxError as error:
    raise ValueError(f"{name} is {text!r}, which cannot be parsed: {error}.") from None
  if not isinstance(call, ast.Call):
    call = ast.Call(call, [], [])
  if not isinstance(call.func, ast.Name | ast.Attribute):
    raise ValueError(
      f"{name} is {text!r}; it must be one of {names}, with its arguments; or set one "
      f"of its fields, as in --set {name}.FIELD=VALUE."
    )
  module, _, class_name = ast.unparse(call.func).rpartition(".")
  if module:
    cls = resolve(f"{module}:{class_name}")
  elif class_name in known:
    cls = known[class_name]
  else:
    raise ValueError(
      f"{name} is {text!r}, but there is no {class_name}."
      f"{errors.nearest(class_name, list(known))} Known names: {names}; write "
      "module:Name for your own class."
    )
  if isinstance(cls, type) and "__dataclass_fields__" not in vars(cls):
    raise ValueError(
      f"{name} is {text!r}, but {cls.__name__} is no dataclass: write "
      "@dataclasses.dataclass(frozen=True) above the class."
    )
  try:
    value = cls(**_arguments(call, cls, resolve))
  except ForeignCodeError:
    raise
  except Exception as error:  # A user's class may raise any.
    is_refusal = isinstance(error, (ValueError, TypeError))
    reason = str(error).removesuffix(".") if is_refusal else errors.describe(error)
    raise ValueError(f"{name} is {text!r}, which cannot be made: {reason}.") from error
  if not isinstance(value, wanted):
    raise ValueError(
      f"{name} is {text!r}; it must be one of {names}, with its arguments."
    )
  return value


def _arguments(call: ast.Call, cls: type, resolve: Resolve) -> dict[str, Any]:
  """Field → value; each argument is parsed by the type hint of its field."""
  fields, hints = _fields(cls), typing.get_type_hints(cls)
  if len(call.args) > len(fields):
    raise ValueError(f"{cls.__name__} takes at most {len(fields)} arguments")
  given = list(zip(fields, call.args, strict=False))
  given += [(str(keyword.arg), keyword.value) for keyword in call.keywords]
  values: dict[str, Any] = {}
  for field, node in given:
    if field not in fields:
      raise ValueError(
        f"{cls.__name__} has no field {field}; its fields are {', '.join(fields)}"
      )
    if field in values:
      raise ValueError(f"{field} is given twice")
    values[field] = parse(_text(node), hints[field], field, resolve)
  return values


def _classes(wanted: type) -> dict[str, type]:
  """Name → dataclass of the type, in all modules of the package that it is from."""
  package = sys.modules[wanted.__module__.rpartition(".")[0] or wanted.__module__]
  modules = [package, sys.modules[wanted.__module__]]
  for info in pkgutil.iter_modules(getattr(package, "__path__", ())):
    if not info.ispkg:
      modules.append(importlib.import_module(f"{package.__name__}.{info.name}"))
  return {
    key: value
    for module in modules
    for key, value in vars(module).items()
    if isinstance(value, type)
    and dataclasses.is_dataclass(value)
    and issubclass(value, wanted)
  }


def _dot(match: re.Match[str]) -> str:
  return match[1] or "."


def _text(node: ast.expr) -> str:
  """An argument as a user would type it after `--set field=`."""
  if isinstance(node, ast.Constant) and isinstance(node.value, str):
    return node.value
  if isinstance(node, ast.List):
    node = ast.Tuple(node.elts, ast.Load())
  return ast.unparse(node)
