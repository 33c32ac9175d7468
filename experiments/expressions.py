"""Parses frozen dataclasses in Python's notation: `Retrace(lambda_=0.9)`.

A name is a class in the package of the expected type (`explorax.agents.targets` for a
target), in any of its modules, or `module:Name` for a class of your own.
"""

import ast
import dataclasses
import importlib
import pkgutil
import re
import sys
import typing
from collections.abc import Callable
from typing import Any

from explorax.experiments import errors
from explorax.experiments import named as own

_CALL = re.compile(r"[A-Za-z_][\w.:]*\s*(\(.*)?", re.DOTALL)
# `module:Name`, outside of strings.
_MODULE = re.compile(r"""('[^']*'|"[^"]*")|\b([A-Za-z_][\w.]*):([A-Za-z_]\w*)""")

# (text, type hint, name in an error message) → the value.
Parse = Callable[[str, Any, str], Any]


def is_one(text: str) -> bool:
  """Whether the text is a name, with or without arguments."""
  return _CALL.fullmatch(text) is not None


def read(text: str, wanted: type, name: str, parse: Parse) -> Any:
  """The value of an expression, which must be of the type `wanted`.

  Args:
    text: `Name`, `Name(…)`, `module:Name` or `module:Name(…)`. An argument is a value
      that `parse` accepts for its field's type, or another such expression.
    wanted: the expected type.
    name: the name of the value in an error message.
    parse: parses arguments by the type hints of the fields.

  Raises:
    ValueError: if the text is not such an expression, or the class refuses it.
  """
  known = {key: cls for key, cls in _names(wanted).items() if issubclass(cls, wanted)}
  try:
    node = ast.parse(_MODULE.sub(_dotted, text), mode="eval").body
    value = _evaluate(node, _names(wanted), parse)
  except _UnknownNameError as error:
    raise ValueError(
      f"{name} is {text!r}, but there is no {error}."
      f"{errors.nearest(str(error), list(known))} Known names: "
      f"{', '.join(sorted(known))}; write module:Name for your own class."
    ) from None
  except (SyntaxError, TypeError, NameError, ValueError, ImportError) as error:
    reason = str(error).removesuffix(".")
    raise ValueError(f"{name} is {text!r}, which cannot be parsed: {reason}.") from None
  except (Exception, SystemExit) as error:  # Of a module of the user's own.
    raise ValueError(
      f"{name} is {text!r}, which raised {errors.describe(error)}."
    ) from error
  if not isinstance(value, wanted):
    raise ValueError(
      f"{name} is {text!r}; it must be one of {', '.join(sorted(known))}, with its "
      "arguments."
    )
  return value


class _UnknownNameError(Exception):
  """A name that is neither known nor found in the module that it gives."""


def _names(wanted: type) -> dict[str, Any]:
  """Name → dataclass, for the package that the type is from."""
  package = sys.modules[wanted.__module__.rpartition(".")[0] or wanted.__module__]
  modules = [package, sys.modules[wanted.__module__]]
  for info in pkgutil.iter_modules(getattr(package, "__path__", ())):
    if not info.ispkg:
      modules.append(importlib.import_module(f"{package.__name__}.{info.name}"))
  return {
    key: value
    for module in modules
    for key, value in vars(module).items()
    if _is_class(value)
  }


def _is_class(value: Any) -> bool:
  return isinstance(value, type) and dataclasses.is_dataclass(value)


def _dotted(match: re.Match[str]) -> str:
  string, module, name = match.groups()
  return string or f"{module}.{name}"


def _evaluate(node: ast.expr, known: dict[str, Any], parse: Parse) -> Any:
  """An instance of a dataclass from its name and arguments, or from its defaults."""
  if isinstance(node, ast.Name | ast.Attribute):
    return _find(ast.unparse(node), known)()
  if not isinstance(node, ast.Call):
    raise ValueError("it is not a name, with or without arguments")
  cls = _find(ast.unparse(node.func), known)
  fields = [field.name for field in dataclasses.fields(cls) if field.init]
  if len(node.args) > len(fields):
    raise ValueError(f"{cls.__name__} takes at most {len(fields)} arguments")
  named = [(str(keyword.arg), keyword.value) for keyword in node.keywords]
  hints, values = typing.get_type_hints(cls), {}
  for field, argument in [*zip(fields, node.args, strict=False), *named]:
    if field not in fields:
      raise ValueError(
        f"{cls.__name__} has no field {field}; its fields are {', '.join(fields)}"
      )
    if field in values:
      raise ValueError(f"{field} is given twice")
    values[field] = parse(_text(argument), hints[field], field)
  return cls(**values)


def _text(node: ast.expr) -> str:
  """An argument as a user would type it after `--set field=`."""
  if isinstance(node, ast.Constant) and isinstance(node.value, str):
    return node.value
  if isinstance(node, ast.List):
    node = ast.Tuple(node.elts, ast.Load())
  return ast.unparse(node)


def _find(path: str, known: dict[str, Any]) -> Any:
  module, _, name = path.rpartition(".")
  if module:
    known = vars(own.module(module))
  if not _is_class(known.get(name)):
    raise _UnknownNameError(path)
  return known[name]
