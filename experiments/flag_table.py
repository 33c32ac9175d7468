"""The flags of a command: their help, and how absl parses them."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from absl import flags

from explorax.experiments import errors, settings


class WholeNumber(flags.IntegerParser):
  """Whole numbers between two bounds, written as 10000, 10_000 or 1e4."""

  def convert(self, argument: str | int) -> int:
    number = settings.parse(str(argument))
    if isinstance(number, float) and number.is_integer():
      return int(number)
    if not isinstance(number, int):
      raise ValueError(f"it is {argument!r}; it must be a whole number.")
    return number


@dataclasses.dataclass(frozen=True)
class Flag:
  """A flag.

  Attributes:
    name: without the dashes.
    placeholder: the text after the name in the help; '' for a switch.
    default: the value of a flag that is not given; a list for a repeatable flag.
    text: the help.
    choices: the allowed values; () for any.
    parser: parses numbers.
  """

  name: str
  placeholder: str
  default: Any
  text: str
  choices: tuple[str, ...] = ()
  parser: WholeNumber | None = None

  def define(self, values: flags.FlagValues) -> None:
    arguments = (self.name, self.default, self.text, values)
    if self.parser is not None:
      flags.DEFINE(self.parser, *arguments)
    elif self.choices:
      flags.DEFINE_enum(self.name, self.default, self.choices, self.text, values)
    elif not self.placeholder:  # A None means neither true nor false.
      flags.DEFINE_boolean(*arguments)
    elif isinstance(self.default, list):
      flags.DEFINE_multi_string(*arguments)
    else:
      flags.DEFINE_string(*arguments)


Groups = Mapping[str, Sequence[Flag]]  # Heading → its flags, `help` among them.


def parse(
  groups: Groups, argv: Sequence[str], *, words: str | None = None
) -> dict[str, Any]:
  """Parses a command line and returns the value of each flag; keeps no global state.

  Args:
    groups: the flags.
    argv: the command line without the program's name.
    words: the key under which positional arguments are returned; None refuses them.

  Raises:
    SetUpError: for an unknown flag, an invalid value, or a refused argument.
  """
  values = flags.FlagValues()
  values.set_gnu_getopt(words is not None)  # Flags may follow arguments.
  for flag in _all(groups):
    flag.define(values)
  for alias in ("h", "helpshort", "helpfull"):  # Common spellings.
    flags.DEFINE_alias(alias, "help", flag_values=values)
  try:
    if any(word.lstrip("-").partition("=")[0] == "undefok" for word in argv):
      raise flags.UnrecognizedFlagError("undefok")  # absl would accept it silently.
    rest = values(["explorax", *argv])[1:]
  except flags.Error as error:
    raise errors.SetUpError(_sentence(groups, error)) from error
  if rest and words is None:
    raise errors.SetUpError(
      f"{rest[0]!r} is not a flag; flags start with -- (--help lists them)."
    )
  given = {name: values[name].value for name in values}
  return given if words is None else {**given, words: rest}


def help_text(introduction: str, groups: Groups, outro: str) -> str:
  """The introduction, the flags by group, and the outro."""
  lines = [introduction]
  for group, group_flags in groups.items():
    lines.append(group)
    for flag in group_flags:
      lines.append(f"  --{flag.name}{flag.placeholder}")
      lines.extend(f"      {line}" for line in flag.text.splitlines())
    lines.append("")
  return "\n".join([*lines, outro])


def _all(groups: Groups) -> Iterable[Flag]:
  return (flag for group in groups.values() for flag in group)


def _sentence(groups: Groups, error: flags.Error) -> str:
  """absl's message, with a hint about what to do."""
  if isinstance(error, flags.UnrecognizedFlagError):
    names = [f"--{flag.name}" for flag in _all(groups)]
    hint = errors.nearest(f"--{error.flagname}", names)
    return f"there is no flag --{error.flagname}.{hint} (--help lists all flags.)"
  if isinstance(error, flags.IllegalFlagValueError) and "Non-boolean" in str(error):
    name, _, value = str(error).partition(":")[0].removeprefix("flag --").partition("=")
    return f"--{name} is {value!r}; it must be true or false."
  text = " ".join(str(error).split())
  return text if text.endswith(".") else f"{text}."
