"""Changes settings of frozen dataclasses from text, and writes them as text and JSON.

Values are in Python's notation: `batch_size=64`, `exploration.epsilon=0.1`,
`hidden_sizes=(50, 50)` or `50,50`, `torso=mlp`, `target=Retrace(lambda_=0.9)`,
`exploration=EzGreedy(0.1, of=Thompson())`, `bonus=my_module.MyBonus()`. A name with a
capital letter is a class: one of ours, or a user's with its module, which is imported
if the command line or Python names it, but never if a file does.
"""

import dataclasses
import functools
import importlib
import inspect
import itertools
import math
import pkgutil
import re
import textwrap
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from explorax import notation

ConfigT = TypeVar("ConfigT")

# Where the classes are that a setting can name.
_PACKAGES = (
  "explorax.exploration",
  "explorax.agents.targets",
  "explorax.agents.bonuses",
)
_MARK = "@"  # Separates a preset's name from its settings.


class _Text(NamedTuple):
  """A value as it was written, and (name of a class) → the class."""

  value: str
  find: Callable[[str], Any]


def apply(
  config: ConfigT, assignments: Sequence[str], recorded: Sequence[str] = ()
) -> ConfigT:
  """Returns `config` with the fields that `assignments` name changed.

  All changes are made before the checks of `__post_init__` run, so two fields that
  constrain each other can be set together. Of two changes of a field, the later counts.

  Args:
    config: a frozen dataclass; its fields may be frozen dataclasses, too.
    assignments: each `field=value` or `group.field=value`.
    recorded: earlier ones, from a file: they import nothing.

  Raises:
    ValueError: in one sentence, for an unknown field or class, a value that the field
      cannot have, or a combination that the config refuses.
    TypeError: for wrong arguments of a class.
  """
  texts: dict[str, _Text] = {}
  for may_import, written in ((False, recorded), (True, assignments)):
    for assignment in written:
      name, equals, value = (part.strip() for part in assignment.partition("="))
      if not equals:
        raise ValueError(f"--set {assignment} is not of the form field=value.")
      texts = {x: y for x, y in texts.items() if not f"{x}.".startswith(f"{name}.")}
      texts[name] = _Text(value, functools.partial(_find, may_import, assignment))
  return _changed(config, texts, "")


def _changed(config: Any, texts: Mapping[str, _Text], prefix: str) -> Any:
  """`dataclasses.replace` of all fields at once, from the innermost outwards."""
  by_field: dict[str, dict[str, _Text]] = {}
  for name, text in texts.items():
    field, _, rest = name.partition(".")
    by_field.setdefault(field, {})[rest] = text
  hints, changes = typing.get_type_hints(type(config)), {}
  for field, inner in by_field.items():
    name = prefix + field
    if field not in _fields(config):
      known = [name for name, _, _ in walk(config, prefix)]
      raise ValueError(
        f"there is no setting {name}.{notation.nearest(name, known)} The settings are: "
        f"{', '.join(known) or 'none'}."
      )
    value = getattr(config, field)
    if "" in inner:
      value = _read(inner.pop(""), hints[field])
    if inner:
      if not _is_config(value):
        raise ValueError(f"{name} is {spell(value)}, which has no settings of its own.")
      value = _changed(value, inner, f"{name}.")
    changes[field] = value
  return dataclasses.replace(config, **changes)


def _read(text: _Text, hint: Any) -> Any:
  """The value of a field of a type; the field's dataclass checks it."""
  if hint is str:
    return text.value.strip("'\"")
  if hint == tuple[str, ...]:
    words = text.value.strip("()").split(",")
    return tuple(word.strip(" '\"") for word in words if word)
  value = notation.parse(text.value or "()", text.find)
  is_one_of_several = typing.get_origin(hint) is tuple and not isinstance(value, tuple)
  return (value,) if is_one_of_several else value


def _find(may_import: bool, assignment: str, name: str) -> Any:
  """Our class of that name, or a user's `module.Class`, which a file cannot name."""
  module, dot, class_name = name.rpartition(".")
  if dot and may_import:
    return notation.import_attribute(f"{module}:{class_name}", "class")
  if dot:
    raise ValueError(
      f"the file's setting {assignment} names code that is not ours, which does not "
      f"run unless you name it too; if you trust it, add --set '{assignment}' (in "
      "Python, settings=)."
    )
  known = classes()
  if name not in known:
    raise ValueError(
      f"--set {assignment}: there is no {name}.{notation.nearest(name, known)} There "
      f"are: {', '.join(sorted(known))}; write module.Name for your own class."
    )
  return known[name]


@functools.cache
def classes() -> dict[str, type]:
  """Name → dataclass, of rules, schedules, targets and bonuses."""
  modules = [
    importlib.import_module(f"{package}.{info.name}")
    for package in _PACKAGES
    for info in pkgutil.iter_modules(importlib.import_module(package).__path__)
    if not info.ispkg
  ]
  return {
    name: cls
    for name, cls in itertools.chain(*(vars(module).items() for module in modules))
    if name[0] != "_" and isinstance(cls, type) and dataclasses.is_dataclass(cls)
  }


def walk(config: Any, prefix: str = "") -> Iterator[tuple[str, Any, Any]]:
  """(dotted name, value, the class of which it is a field) of each setting."""
  for field in _fields(config):
    value = getattr(config, field)
    inner = [*walk(value, f"{prefix}{field}.")] if _is_config(value) else []
    yield from inner or [(prefix + field, value, type(config))]


def listing(config: Any) -> str:
  """All settings with their values and, from the comments of the fields, units and
  sources."""
  lines = []
  for name, value, cls in walk(config):
    _, comment = comments(cls).get(name.rpartition(".")[2], ("", ""))
    lines.append(f"{name}={spell(value)}")
    lines += textwrap.wrap(comment, 80, initial_indent="    ", subsequent_indent="    ")
  return "\n".join(lines)


@functools.cache
def comments(cls: Any) -> dict[str, tuple[str, str]]:
  """Field → (the heading `## …` before it, its comment above it or beside it)."""
  texts: dict[str, tuple[str, str]] = {}
  bases: Any = filter(dataclasses.is_dataclass, reversed(cls.__mro__))
  for base in bases:
    heading, above = "", list[str]()
    for line in inspect.getsource(base).splitlines():
      code, _, comment = line.partition("# ")
      if code == "  #":
        heading, above = comment, []
        continue
      if field := re.match(r"  (\w+): ", code):
        texts[field[1]] = heading, " ".join([*above, comment]).strip()
      above = [] if code.strip() else [*above, comment]
  return texts


def spell(value: Any) -> str:
  """A value in the notation in which `apply` reads it."""
  if isinstance(value, tuple | list):
    return f"({', '.join(map(spell_part, value))}{',' if len(value) == 1 else ''})"
  if not _is_config(value):
    return str(value)
  cls = type(value)
  module = "" if cls.__module__.startswith("explorax.") else f"{cls.__module__}."
  parts = [f"{name}={spell_part(getattr(value, name))}" for name in _fields(value)]
  return f"{module}{cls.__name__}({', '.join(parts)})"


def spell_part(value: Any) -> str:
  """As `spell`, with quotes around text."""
  return repr(value) if isinstance(value, str) else spell(value)


def to_json(value: Any) -> Any:
  """A config in JSON's types; `class` names each dataclass.

  Tuples become lists, functions their qualified names, and infinities, which JSON
  lacks, strings.
  """
  if _is_config(value):
    fields = [field.name for field in dataclasses.fields(value)]
    values = {name: to_json(getattr(value, name)) for name in fields}
    return {"class": type(value).__qualname__, **values}
  if isinstance(value, tuple | list):
    return [to_json(item) for item in value]
  if callable(value):
    return f"{value.__module__}:{value.__qualname__}"
  return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def join_name(preset: str, assignments: Sequence[str]) -> str:
  """`tdu@beta=0.5@n_step=3`: a preset's name and changed settings."""
  return _MARK.join((preset, *assignments))


def split_name(name: str) -> tuple[str, tuple[str, ...]]:
  """The inverse of `join_name`."""
  preset, *assignments = name.split(_MARK)
  return preset, tuple(assignments)


def _fields(config: Any) -> list[str]:
  return [field.name for field in dataclasses.fields(config) if field.init]


def _is_config(value: Any) -> bool:
  return dataclasses.is_dataclass(value) and not isinstance(value, type)
