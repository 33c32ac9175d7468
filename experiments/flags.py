"""Command-line flags: fields of frozen dataclasses, with their help as metadata."""

import dataclasses
import textwrap
import typing
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from absl import flags as absl_flags

from explorax import notation, ranges
from explorax.experiments import errors

_WIDTH = 88


def field(default: Any, help: str, group: str, flag: str = "") -> Any:
  """A field that is a flag.

  Args:
    default: the value of a flag that is not given; a tuple for a repeatable one.
    help: the text of `--help`.
    group: the heading in `--help`.
    flag: the flag's name, if it is not the field's.
  """
  metadata = {"help": help, "group": group, "flag": flag}
  return dataclasses.field(default=default, metadata=metadata)


def of(*classes: type) -> dict[str, tuple[dataclasses.Field, Any]]:
  """The flags of some dataclasses: name → (field, type); the first of a name counts."""
  found: dict[str, tuple[dataclasses.Field, Any]] = {}
  for cls in classes:
    hints = typing.get_type_hints(cls, include_extras=True)
    for each in dataclasses.fields(cls):
      name = each.metadata["flag"] or each.name
      found.setdefault(name, (each, hints[each.name]))
  return found


def parse(
  argv: Sequence[str],
  *classes: type,
  positional: str = "",
  defaults: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
  """The value of each flag; keeps no global state.

  Args:
    argv: the command line without the program's name.
    *classes: dataclasses whose fields are flags.
    positional: the name under which positional arguments are returned; '' refuses them.
    defaults: values of flags that are not given, in place of their fields' defaults.

  Raises:
    SetUpError: in one sentence, for an unknown flag or an invalid value.
  """
  values = absl_flags.FlagValues()
  values.set_gnu_getopt(bool(positional))  # Flags may follow arguments.
  known = of(*classes)
  for name, (each, hint) in known.items():
    define = _definition(hint)
    define(name, None, each.metadata["help"], flag_values=values)
  try:
    if any(word.lstrip("-").partition("=")[0] == "undefok" for word in argv):
      raise absl_flags.UnrecognizedFlagError("undefok")  # absl accepts it silently.
    rest = values(["explorax", *argv])[1:]
    if rest and not positional:
      raise ValueError(f"{rest[0]!r} is not a flag; flags start with -- (see --help).")
    found = {name: each.default for name, (each, _) in known.items()}
    found |= {name: x for name, x in (defaults or {}).items() if name in known}
    for name, (_, hint) in known.items():
      if values[name].present:
        found[name] = _read(values[name], hint)
    return {**found, positional: rest}
  except absl_flags.UnrecognizedFlagError as error:
    near = errors.nearest(error.flagname, list(known))
    raise errors.SetUpError(
      f"there is no flag --{error.flagname}.{near} (--help lists all flags.)"
    ) from error
  except (absl_flags.Error, ValueError) as error:
    raise errors.SetUpError(" ".join(str(error).split())) from error


def help_text(*classes: type) -> str:
  """All flags by group."""
  groups: dict[str, list[str]] = {}
  for name, (each, hint) in of(*classes).items():
    lines = groups.setdefault(each.metadata["group"], [])
    placeholder = "" if _is_switch(hint) else "=VALUE"
    lines.append(f"  --{name}{placeholder}")
    indent = " " * 6
    text = each.metadata["help"]
    lines += textwrap.wrap(
      text, _WIDTH, initial_indent=indent, subsequent_indent=indent
    )
  return "\n\n".join(f"{group}\n" + "\n".join(x) for group, x in groups.items())


def _read(flag: absl_flags.Flag, hint: Any) -> Any:
  """The value of a flag in its type."""
  value = flag.value
  if isinstance(value, str) and str not in _kinds(hint):
    value = notation.parse(value)
  return ranges.convert(value, hint, f"--{flag.name}")


def _definition(hint: Any) -> Any:
  if _is_switch(hint):
    return absl_flags.DEFINE_boolean
  is_repeatable = any(typing.get_origin(kind) is tuple for kind in _kinds(hint))
  return absl_flags.DEFINE_multi_string if is_repeatable else absl_flags.DEFINE_string


def _is_switch(hint: Any) -> bool:
  return bool in _kinds(hint)


def _kinds(hint: Any) -> Iterator[Any]:
  """The types of a union, without conditions."""
  origin, args = typing.get_origin(hint), typing.get_args(hint)
  if origin is typing.Annotated:
    yield from _kinds(args[0])
  elif args and origin is not tuple:
    for member in args:
      yield from _kinds(member)
  else:
    yield hint
