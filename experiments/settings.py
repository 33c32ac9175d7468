"""Changes settings of frozen dataclasses from text, and writes them as text and JSON.

Values are in Python's notation: `batch_size=64`, `exploration.epsilon=0.1`,
`hidden_sizes=(50, 50)` or `50,50`, `torso=mlp`, `target=Retrace(lambda_=0.9)`,
`exploration=EzGreedy(0.1, of=Thompson())`, `bonus=my_module.MyBonus()`. A name with a
capital letter is a class: one of ours, or a user's with its module, which is imported
if the command line or Python names it, but never if a file does.
"""

import ast
import dataclasses
import functools
import importlib
import inspect
import math
import os
import pkgutil
import sys
import textwrap
import types
import typing
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from explorax.experiments import errors

ConfigT = TypeVar("ConfigT")

# Where the classes are that a setting can name.
_PACKAGES = (
  "explorax.exploration",
  "explorax.agents.targets",
  "explorax.agents.bonuses",
)
_WORDS = {"true": True, "false": False, "none": None, "inf": math.inf}
_MARK = "@"  # Separates a preset's name from its settings.

Find = Callable[[str], Any]  # The name of a class → the class.


def apply(
  config: ConfigT, assignments: Sequence[str], recorded: Sequence[str] = ()
) -> ConfigT:
  """Returns `config` with the fields that `assignments` name changed.

  All changes are made before the checks of `__post_init__` run, so two fields that
  constrain each other can be set together.

  Args:
    config: a frozen dataclass; its fields may be frozen dataclasses, too.
    assignments: each `field=value` or `group.field=value`.
    recorded: more of them, from a file: they import nothing.

  Raises:
    ValueError: in one sentence, for an unknown field or class, a value that the field
      cannot have, a field that is set twice, or a combination that the config refuses.
    TypeError: for wrong arguments of a class.
  """
  tree: dict[str, Any] = {}
  for find, texts in ((_find_ours, recorded), (_find, assignments)):
    for assignment in texts:
      name, equals, text = (part.strip() for part in assignment.partition("="))
      if not equals or not name:
        raise ValueError(
          f"--set {assignment} is not of the form field=value; for example, write "
          f"--set {_names(config)[0]}=..."
        )
      value = _read(text, _hint(config, name), functools.partial(find, assignment))
      _insert(tree, name, value)
  return _rebuild(config, tree)


def walk(config: Any, prefix: str = "") -> Iterator[tuple[str, Any, Any]]:
  """(dotted name, value, the dataclass that it is in) of each setting, in order."""
  for field in _fields(config):
    value = getattr(config, field)
    inner = [*walk(value, f"{prefix}{field}.")] if _is_config(value) else []
    yield from inner or [(prefix + field, value, config)]


def listing(config: Any) -> str:
  """All settings with their values and, from the comments of the fields, units and
  sources."""
  lines = []
  for name, value, parent in walk(config):
    lines.append(f"{name}={spell(value)}")
    cls: Any = type(parent)
    comment = _comments(cls).get(name.rpartition(".")[2], "")
    lines += textwrap.wrap(comment, 80, initial_indent="    ", subsequent_indent="    ")
  return "\n".join(lines)


def parse(text: str, find: Find | None = None) -> Any:
  """A number, word, tuple or object in Python's notation.

  Args:
    text: what is not in the notation is a word, and so is a name that is no class.
    find: finds classes; None: there are only words.
  """
  try:
    return _value(ast.parse(text, mode="eval").body, find)
  except SyntaxError:
    return text


def spell(value: Any) -> str:
  """A value in the notation in which `apply` reads it."""
  if isinstance(value, tuple | list):
    return f"({', '.join(map(_spell_part, value))}{',' if len(value) == 1 else ''})"
  if not _is_config(value):
    return "none" if value is None else str(value)
  cls = type(value)
  module = "" if cls.__module__.startswith("explorax.") else f"{cls.__module__}."
  parts = [f"{name}={_spell_part(getattr(value, name))}" for name in _fields(value)]
  return f"{module}{cls.__name__}({', '.join(parts)})"


def _spell_part(value: Any) -> str:
  return repr(value) if isinstance(value, str) else spell(value)


def to_json(value: Any) -> Any:
  """A config in JSON's types; `class` names each dataclass.

  Tuples become lists, functions their qualified names, and infinities, which JSON
  lacks, strings.

  Raises:
    TypeError: for a value that JSON cannot represent.
  """
  if _is_config(value):
    fields = {
      f.name: to_json(getattr(value, f.name)) for f in dataclasses.fields(value)
    }
    return {"class": type(value).__qualname__, **fields}
  if isinstance(value, float) and not math.isfinite(value):
    return str(value)
  if value is None or isinstance(value, bool | int | float | str):
    return value
  if isinstance(value, tuple | list):
    return [to_json(item) for item in value]
  if callable(value) and hasattr(value, "__qualname__"):
    return f"{value.__module__}:{value.__qualname__}"
  raise TypeError(
    f"config.json cannot hold the setting {value!r}; use numbers, strings, tuples, "
    "functions or dataclasses."
  )


def join_name(preset: str, assignments: Sequence[str]) -> str:
  """`tdu@beta=0.5@n_step=3`: a preset's name and changed settings."""
  return _MARK.join((preset, *assignments))


def split_name(name: str) -> tuple[str, tuple[str, ...]]:
  """The inverse of `join_name`."""
  preset, *assignments = name.split(_MARK)
  return preset, tuple(assignments)


def import_attribute(name: str, what: str) -> Any:
  """Imports `module:attribute` of a user, installed or in the current directory.

  Args:
    name: as the user wrote it.
    what: the kind of object, for errors: `agent`.

  Raises:
    SetUpError: if there is no such module or attribute.
  """
  module_name, _, attribute = name.partition(":")
  directory = os.getcwd()
  if directory not in sys.path and "" not in sys.path:
    sys.path.append(directory)  # At the end, so that it hides nothing.
  try:
    module = importlib.import_module(module_name)
  except (ModuleNotFoundError, ValueError, TypeError) as error:
    missing = getattr(error, "name", None) or module_name
    if f"{module_name}.".startswith(f"{missing}."):
      raise errors.SetUpError(
        f"the {what} {name!r} cannot be imported ({error}); its module must be "
        f"installed, or be in {directory}."
      ) from error
    raise
  if not hasattr(module, attribute):
    raise errors.SetUpError(
      f"the {what} {name!r} does not exist: {module_name} has no {attribute!r}."
      f"{errors.nearest(attribute, list(vars(module)))}"
    )
  return getattr(module, attribute)


@dataclasses.dataclass(frozen=True)
class _Leaf:
  value: Any


def _insert(tree: dict[str, Any], name: str, value: Any) -> None:
  """Puts a value into nested dicts: `a.b` into `tree["a"]["b"]`."""
  *groups, field = name.split(".")
  for group in groups:
    tree = tree.setdefault(group, {})
    if isinstance(tree, _Leaf):
      break
  if isinstance(tree, _Leaf) or isinstance(tree.get(field), dict):
    raise ValueError(
      f"--set gives {name} and what it is a part of; remove one of them."
    )
  if field in tree:
    raise ValueError(f"--set gives {name} twice; remove one of them.")
  tree[field] = _Leaf(value)


def _rebuild(config: Any, tree: dict[str, Any]) -> Any:
  """`dataclasses.replace` of all fields at once, from the innermost outwards."""
  changes = {
    name: node.value
    if isinstance(node, _Leaf)
    else _rebuild(getattr(config, name), node)
    for name, node in tree.items()
  }
  return dataclasses.replace(config, **changes) if changes else config


def _hint(config: Any, name: str) -> Any:
  """The type of a field by its dotted name; a ValueError if there is no such field."""
  parent, value = config, config
  for depth, field in enumerate(name.split(".")):
    if not _is_config(value):
      group = ".".join(name.split(".")[:depth])
      why = "is not in use" if value is None else "has no fields of its own"
      raise ValueError(f"{name} cannot be set: {group} {why} in this agent's config.")
    if field not in _fields(value):
      known = _names(config)
      raise ValueError(
        f"{type(config).__name__} has no field {name!r}.{errors.nearest(name, known)} "
        f"Its fields are: {', '.join(known)}."
      )
    parent, value = value, getattr(value, field)
  return typing.get_type_hints(type(parent))[name.rpartition(".")[2]]


def _read(text: str, hint: Any, find: Find) -> Any:
  """The value of a field of a type; the field's dataclass checks it."""
  is_union = typing.get_origin(hint) in (typing.Union, types.UnionType)
  kinds = {*typing.get_args(hint)} if is_union else {hint}
  if text.lower() == "none" and type(None) in kinds:
    return None
  if kinds <= {str, type(None)}:
    return text
  if hint == tuple[str, ...]:
    items = [item.strip() for item in text.strip("()").split(",")]
    return tuple(item.strip("'\"") for item in items if item)
  plain = {bool, int, float, str, type(None)}
  has_classes = any(isinstance(kind, type) for kind in kinds - plain)
  value = parse(text, find if has_classes else None)
  if typing.get_origin(hint) is tuple and not isinstance(value, tuple):
    return (value,) if text else ()
  return value


def _value(node: ast.expr, find: Find | None) -> Any:
  match node:
    case ast.Constant():
      return node.value
    case ast.UnaryOp(ast.USub(), ast.Constant(int() | float() as number)):
      return -number
    case ast.Tuple() | ast.List():
      return tuple(_value(item, find) for item in node.elts)
    case ast.Name() if node.id.lower() in _WORDS:
      return _WORDS[node.id.lower()]
    case ast.Name() | ast.Attribute() if find:
      name = ast.unparse(node)
      return find(name)() if name.rpartition(".")[2][0].isupper() else name
    case ast.Call() if find:
      named = {str(x.arg): _value(x.value, find) for x in node.keywords}
      return find(ast.unparse(node.func))(
        *(_value(x, find) for x in node.args), **named
      )
  return ast.unparse(node)


def _find_ours(assignment: str, name: str) -> Any:
  """Our class of that name.

  Raises:
    ValueError: if there is none; it is of a file.
  """
  if "." in name:
    raise ValueError(
      f"the file's setting {assignment} names code that is not ours, which does not "
      f"run unless you name it too; if you trust it, add --set '{assignment}' (in "
      "Python, settings=)."
    )
  return _find(assignment, name)


def _find(assignment: str, name: str) -> Any:
  """Our class of that name, or a user's `module.Class`."""
  module, dot, class_name = name.rpartition(".")
  if dot:
    return import_attribute(f"{module}:{class_name}", "class")
  known = _classes()
  if name not in known:
    raise ValueError(
      f"--set {assignment}: there is no {name}.{errors.nearest(name, list(known))} "
      f"There are: {', '.join(sorted(known))}; write module.Name for your own class."
    )
  return known[name]


@functools.cache
def _classes() -> dict[str, type]:
  """Name → dataclass, of rules, schedules, targets and bonuses."""
  found: dict[str, type] = {}
  for package in map(importlib.import_module, _PACKAGES):
    for info in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
      if not info.ispkg:
        members = vars(importlib.import_module(info.name)).items()
        found |= {name: cls for name, cls in members if _is_setting(name, cls)}
  return found


def _is_setting(name: str, cls: Any) -> bool:
  return name[0] != "_" and isinstance(cls, type) and dataclasses.is_dataclass(cls)


@functools.cache
def _comments(cls: Any) -> dict[str, str]:
  """Field → its comment in the source, above the field or beside it."""
  comments: dict[str, str] = {}
  bases: Any = filter(dataclasses.is_dataclass, reversed(cls.__mro__))
  for base in bases:
    lines = textwrap.dedent(inspect.getsource(base)).splitlines()
    (definition,) = ast.parse("\n".join(lines)).body
    for node in ast.iter_child_nodes(definition):
      if isinstance(node, ast.AnnAssign) and node.end_lineno is not None:
        first = last = node.lineno - 1
        while lines[first - 1].lstrip().startswith("#"):
          first -= 1
        texts = [*lines[first:last], lines[node.end_lineno - 1].partition("  #")[2]]
        words = [text.strip(" #") for text in texts]
        comments[ast.unparse(node.target)] = " ".join(filter(None, words))
  return comments


def _names(config: Any) -> list[str]:
  return [name for name, _, _ in walk(config)]


def _fields(config: Any) -> list[str]:
  return [field.name for field in dataclasses.fields(config) if field.init]


def _is_config(value: Any) -> bool:
  return dataclasses.is_dataclass(value) and not isinstance(value, type)
