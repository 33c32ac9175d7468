"""Command-line flags: the fields of frozen dataclasses, whose comments are the help.

@dataclasses.dataclass(frozen=True)
class Flags:
  ## Heading in the help
  # What it is for. [1, which is the default]
  workers: ranges.PositiveInt = 1
  # May be repeated.
  settings: tuple[str, ...] = flags.named("set")
"""

import contextlib
import dataclasses
import textwrap
import typing
from collections.abc import Sequence
from typing import Any, NamedTuple

from absl import flags as absl_flags

from explorax import notation, ranges
from explorax.experiments import errors
from explorax.experiments import settings as settings_lib

_WIDTH, _INDENT = 82, " " * 6


class Flag(NamedTuple):
  """A field, its class, and its type with conditions."""

  field: dataclasses.Field
  cls: type
  hint: Any

  @property
  def is_switch(self) -> bool:
    return bool in (self.hint, *typing.get_args(self.hint))


def named(name: str, default: Any = ()) -> Any:
  """A field whose flag has another name."""
  return dataclasses.field(default=default, metadata={"flag": name})


def by_name(*classes: type) -> dict[str, Flag]:
  """The flags of some dataclasses by name; the first of a name counts."""
  flags: dict[str, Flag] = {}
  for cls in classes:
    for field in dataclasses.fields(cls):
      flag = Flag(field, cls, ranges.hints(cls)[field.name])
      flags.setdefault(field.metadata.get("flag", field.name), flag)
  return flags


def parse(argv: Sequence[str], *classes: type, positional: str = "") -> dict[str, Any]:
  """The value of each flag; keeps no global state.

  Args:
    argv: the command line without the program's name.
    *classes: dataclasses whose fields are flags; a tuple may be given repeatedly.
    positional: the name under which positional arguments are returned; '' refuses them.

  Raises:
    SetUpError: in one sentence, for an unknown flag or an invalid value.
  """
  known, defined = by_name(*classes), absl_flags.FlagValues()
  defined.set_gnu_getopt(bool(positional))  # Flags may follow arguments.
  for name, flag in known.items():
    define: Any = absl_flags.DEFINE_string
    if flag.is_switch:
      define = absl_flags.DEFINE_boolean
    if isinstance(flag.field.default, tuple):
      define = absl_flags.DEFINE_multi_string
    define(name, None, "", flag_values=defined)
  values = {name: flag.field.default for name, flag in known.items()}
  try:
    rest = defined(["explorax", *argv])[1:]
    for name, flag in known.items():
      if defined[name].present:
        values[name] = _convert(defined[name].value, flag.hint, f"--{name}")
  except (absl_flags.Error, ValueError) as error:
    raise errors.SetUpError(" ".join(str(error).split())) from error
  if rest and not positional:
    raise errors.SetUpError(
      f"{rest[0]!r} is no flag; flags start with -- (see --help)."
    )
  return {**values, positional: rest}


def _convert(text: Any, hint: Any, name: str) -> Any:
  """The value in its type: the text, or what it means in Python's notation."""
  with contextlib.suppress(ValueError):
    return ranges.convert(text, hint, name)
  return ranges.convert(notation.parse(text), hint, name)


def help_text(*classes: type) -> str:
  """All flags by heading."""
  groups: dict[str, list[str]] = {}
  for name, flag in by_name(*classes).items():
    heading, text = settings_lib.comments(flag.cls)[flag.field.name]
    lines = groups.setdefault(heading, [heading])
    lines.append(f"  --{name}" + ("" if flag.is_switch else "=VALUE"))
    lines.append(textwrap.indent(textwrap.fill(text, _WIDTH), _INDENT))
  return "\n\n".join("\n".join(lines) for lines in groups.values())
