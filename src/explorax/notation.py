"""What users write in flags and names: values in Python's notation, and their own code.

Every part of the package may use this module, which imports only the standard library.
"""

import ast
import difflib
import importlib
import math
import os
import sys
from collections.abc import Callable, Iterable
from typing import Any

_WORDS = {"true": True, "false": False, "none": None, "inf": math.inf}


def parse(text: str, find: Callable[[str], Any] | None = None) -> Any:
  """A number, word, tuple or object: `0.1`, `mlp`, `(50, 50)`, `EzGreedy(0.1)`.

  Args:
    text: what is not in the notation is a word.
    find: (name of a class) → the class; None: there are no classes, only words.
  """

  def value(node: ast.expr) -> Any:
    match node:
      case ast.Constant():
        return node.value
      case ast.UnaryOp(ast.USub(), ast.Constant(int() | float() as number)):
        return -number
      case ast.Tuple() | ast.List():
        return tuple(map(value, node.elts))
      case ast.Name() if node.id.lower() in _WORDS:
        return _WORDS[node.id.lower()]
      case ast.Name() | ast.Attribute() if find:
        name = ast.unparse(node)
        return find(name)() if name.rpartition(".")[2][0].isupper() else name
      case ast.Call() if find:
        named = {str(x.arg): value(x.value) for x in node.keywords}
        return find(ast.unparse(node.func))(*map(value, node.args), **named)
    return ast.get_source_segment(text, node)

  try:
    return value(ast.parse(text, mode="eval").body)
  except SyntaxError:
    return text


def nearest(word: str, known: Iterable[str]) -> str:
  """' Did you mean …?' with the names in `known` that resemble `word`, or ''."""
  lower = {name.lower(): name for name in known}  # DQN resembles dqn.
  ends_alike = [x for x in lower.values() if x.rpartition(".")[2] == word]
  near = difflib.get_close_matches(word.lower(), lower, n=3, cutoff=0.6)
  close = ends_alike or [lower[name] for name in near]
  return f" Did you mean {' or '.join(close)}?" if close else ""


def import_attribute(name: str, what: str) -> Any:
  """Imports `module:attribute` of a user, installed or in the current directory.

  Args:
    name: as the user wrote it.
    what: the kind of object, for errors: `agent`.

  Raises:
    ValueError: if there is no such module or attribute.
  """
  module_name, _, attribute = name.partition(":")
  if not all(part.isidentifier() for part in module_name.split(".")):
    raise ValueError(f"the {what} {name!r} is not written as module:name.")
  directory = os.getcwd()
  if directory not in sys.path and "" not in sys.path:
    sys.path.append(directory)  # At the end, so that it hides nothing.
  try:
    module = importlib.import_module(module_name)
  except ModuleNotFoundError as error:
    if not f"{module_name}.".startswith(f"{error.name}."):
      raise  # It is missing in the user's own code.
    raise ValueError(
      f"the {what} {name!r} cannot be imported ({error}); its module must be "
      f"installed, or be in {directory}."
    ) from error
  if not hasattr(module, attribute):
    raise ValueError(
      f"the {what} {name!r} does not exist: {module_name} has no {attribute!r}."
      f"{nearest(attribute, vars(module))}"
    )
  return getattr(module, attribute)
