"""Settings behind an environment's name: `kind:name/first,key=value,key=value`.

`/`, `,` and `=` have no special meaning to a shell within a word, so that names need no
quotes.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from explorax import notation, ranges

Value = bool | int | float


def split(name: str) -> tuple[str, dict[str, Any]]:
  """`FrozenLake-v1/is_slippery=false` as a name and the arguments behind it.

  Raises:
    ValueError: for an argument without a value, or that appears twice.
  """
  head, slash, tail = name.rpartition("/")
  if not slash or "=" not in tail:
    return name, {}
  return head, read(tail.split(","))


def read(items: Iterable[str]) -> dict[str, Any]:
  """The values of `key=value` settings, in Python's notation.

  Raises:
    ValueError: for a setting without a value, or that appears twice.
  """
  values: dict[str, Any] = {}
  for item in items:
    key, equals, text = item.partition("=")
    if not equals:
      raise ValueError(f"{item!r} sets nothing; write 'key=value'.")
    if key in values:
      raise ValueError(f"the setting {key!r} appears twice; leave one out.")
    values[key] = notation.parse(text)
  return values


def parse(items: Iterable[str], defaults: Mapping[str, Value]) -> dict[str, Value]:
  """`defaults`, updated by `key=value` settings of the same types.

  Raises:
    ValueError: for a key that is not in `defaults` or appears twice, or a value of the
      wrong type.
  """
  values = dict(defaults)
  for key, value in read(items).items():
    if key not in defaults:
      known = f" There are {', '.join(defaults) or 'no settings'}."
      near = notation.nearest(key, defaults) or known
      raise ValueError(f"there is no setting {key!r}.{near}")
    values[key] = ranges.convert(value, type(defaults[key]), f"the setting {key!r}")
  return values
