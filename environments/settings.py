"""Settings behind an environment's name: `kind:name/first,key=value,key=value`.

`/`, `,` and `=` have no special meaning to a shell within a word, so that names need no
quotes.
"""

from collections.abc import Iterable, Mapping

from explorax.environments import errors

Value = bool | int | float


class SettingError(ValueError):
  """An unknown setting, or a value of the wrong type."""


def parse(
  name: str, items: Iterable[str], defaults: Mapping[str, Value]
) -> dict[str, Value]:
  """Reads `key=value` settings.

  Args:
    name: the environment's name, for error messages.
    items: `key=value` each; a boolean is `true` or `false`.
    defaults: all settings with their default values, which also define the types.

  Returns:
    `defaults`, updated by `items`.

  Raises:
    SettingError: for a key that is not in `defaults` or appears twice, or a value of
      the wrong type.
  """
  values = dict(defaults)
  seen = set()
  for item in items:
    key, equals, text = item.partition("=")
    if not equals:
      raise SettingError(
        f"the setting {item!r} of {name!r} has no value; write 'key=value', with one "
        f"of the keys {', '.join(defaults)}."
      )
    if key not in defaults:
      raise SettingError(
        f"{name!r} has no setting {key!r}"
        + errors.did_you_mean(key, defaults, f"; it has {', '.join(defaults)}.")
      )
    if key in seen:
      raise SettingError(f"{name!r} sets {key!r} twice; leave one of them out.")
    seen.add(key)
    values[key] = _read(name, key, text, type(defaults[key]))
  return values


def _read(name: str, key: str, text: str, kind: type) -> Value:
  try:
    return {"true": True, "false": False}[text] if kind is bool else kind(text)
  except (KeyError, ValueError) as error:
    expected = {bool: "'true' or 'false'", int: "an integer", float: "a number"}[kind]
    raise SettingError(
      f"the setting {key!r} of {name!r} is {text!r}; it must be {expected}."
    ) from error
