"""Reads frozen dataclasses as Python writes them: `Retrace(lambda_=0.9)`.

A name is one of the package of the wanted type (`explorax.agents.targets` for a
target), whichever of its modules has it, or `module:Name` for one of your own.
"""

import ast
import dataclasses
import difflib
import importlib
import os
import pkgutil
import re
import sys
from typing import Any

_CALL = re.compile(r"[A-Za-z_][\w.:]*\s*(\(.*)?", re.DOTALL)
_MODULE = re.compile(r"\b([A-Za-z_][\w.]*):([A-Za-z_]\w*)")


def is_one(text: str) -> bool:
  """Whether the text is meant as a name, with arguments or without."""
  return _CALL.fullmatch(text) is not None


def read(text: str, wanted: type, name: str) -> Any:
  """The value of an expression, which must be of a type.

  Args:
    text: `Name`, `Name(…)`, `module:Name` or `module:Name(…)`; arguments are literals
      or such expressions.
    wanted: the type.
    name: what to call the value in an error.

  Raises:
    ValueError: if it is none, or is refused by its class.
  """
  known = {key: cls for key, cls in _names(wanted).items() if issubclass(cls, wanted)}
  try:
    node = ast.parse(_MODULE.sub(r"\1.\2", text), mode="eval").body
    value = _evaluate(node, _names(wanted))
  except _UnknownError as error:
    near = difflib.get_close_matches(str(error), known, n=3)
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    raise ValueError(
      f"{name} is {text!r}, but there is no {error}.{hint} Known are: "
      f"{', '.join(sorted(known))}; write module:Name for your own."
    ) from None
  except (SyntaxError, TypeError, ValueError, ImportError) as error:
    reason = str(error).removesuffix(".")
    raise ValueError(f"{name} is {text!r}, which cannot be read: {reason}.") from None
  if not isinstance(value, wanted):
    raise ValueError(
      f"{name} is {text!r}; it must be one of {', '.join(sorted(known))}, with its "
      "arguments."
    )
  return value


class _UnknownError(Exception):
  """A name that is neither known nor one of a module that it names."""


def _names(wanted: type) -> dict[str, Any]:
  """The dataclasses of the package that the type is from, by their names."""
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


def _evaluate(node: ast.expr, known: dict[str, Any]) -> Any:
  """Dataclasses, called with literals, dataclasses or words."""
  if isinstance(node, ast.Call):
    cls = _find(ast.unparse(node.func), known)
    keywords = {str(k.arg): _argument(k.value, known) for k in node.keywords}
    return cls(*(_argument(arg, known) for arg in node.args), **keywords)
  if isinstance(node, ast.Name | ast.Attribute):
    return _find(ast.unparse(node), known)()
  return ast.literal_eval(node)


def _argument(node: ast.expr, known: dict[str, Any]) -> Any:
  if isinstance(node, ast.Name) and node.id not in known:
    return node.id  # A word, which needs no quotes.
  return _evaluate(node, known)


def _find(path: str, known: dict[str, Any]) -> Any:
  module, _, name = path.rpartition(".")
  if module:
    directory = os.getcwd()
    if directory not in sys.path and "" not in sys.path:
      sys.path.append(directory)  # At the end, where it hides nothing.
    known = vars(importlib.import_module(module))
  if not _is_class(known.get(name)):
    raise _UnknownError(path)
  return known[name]
