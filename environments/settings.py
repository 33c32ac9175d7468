"""Settings behind an environment's name: `kind:name/first,key=value,key=value`.

`/`, `,` and `=` have no special meaning to a shell within a word, so that names need no
quotes.
"""

import ast
from collections.abc import Iterable, Mapping
from typing import Any

from explorax.environments import errors

Value = bool | int | float
_TYPES = {bool: "'true' or 'false'", int: "an integer", float: "a number"}


class SettingError(ValueError):
  """An unknown setting, or a value of the wrong type."""


def split(name: str) -> tuple[str, dict[str, Any]]:
  """`FrozenLake-v1/is_slippery=false` as a name and the arguments behind it.

  Values are Python's literals, booleans also in lower case; all others are strings.

  Raises:
    SettingError: for an argument that appears twice.
  """
  head, slash, tail = name.rpartition("/")
  if not slash or "=" not in tail:
    return name, {}
  return head, _read(name, tail.split(","))


def parse(
  name: str, items: Iterable[str], defaults: Mapping[str, Value]
) -> dict[str, Value]:
  """`defaults`, updated by `key=value` settings of the same types.

  Args:
    name: the environment's name, for error messages.
    items: `key=value` each.
    defaults: all settings with their default values.

  Raises:
    SettingError: for a key that is not in `defaults` or appears twice, or a value of
      the wrong type.
  """
  values = dict(defaults)
  for key, value in _read(name, items).items():
    if key not in defaults:
      raise SettingError(
        f"{name!r} has no setting {key!r}"
        + errors.did_you_mean(
          key, defaults, f"; it has {', '.join(defaults) or 'no settings'}."
        )
      )
    kind = type(defaults[key])
    if kind is float and type(value) is int:
      value = float(value)
    if type(value) is not kind:
      raise SettingError(
        f"the setting {key!r} of {name!r} is {value!r}; it must be {_TYPES[kind]}."
      )
    values[key] = value
  return values


def _read(name: str, items: Iterable[str]) -> dict[str, Any]:
  values: dict[str, Any] = {}
  for item in items:
    key, equals, text = item.partition("=")
    if not equals:
      raise SettingError(f"{name!r} sets {item!r} to nothing; write 'key=value'.")
    if key in values:
      raise SettingError(f"{name!r} sets {key!r} twice; leave one of them out.")
    values[key] = _literal(text)
  return values


def _literal(text: str) -> Any:
  if text in ("true", "false"):
    return text == "true"
  try:
    return ast.literal_eval(text)
  except (SyntaxError, ValueError):
    return text
