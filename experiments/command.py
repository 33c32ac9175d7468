"""What all commands share: help, one-sentence errors, exit codes."""

import contextlib
import dataclasses
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any

from explorax.experiments import compilation, errors
from explorax.experiments import flags as flags_lib
from explorax.experiments.recording import console as console_lib

Work = Callable[[], int]  # Returns the exit code.

EXIT_CODES = """\
Exit codes: 0 done, 1 a run or task failed, 2 could not start, 130 Ctrl-C, 143 SIGTERM,
129 SIGHUP.
"""


@dataclasses.dataclass(frozen=True)
class Common:
  """The flags of all commands."""

  ## Information
  # Prints this text and exits.
  help: bool = False
  # Prints the traceback of an error.
  debug: bool = False


def main(
  argv: Sequence[str] | None,
  flags: Sequence[type],
  do: Callable[[dict[str, Any], list[str]], int | Work],
  *,
  introduction: str,
  outro: str = "",
  positional: str = "",
) -> int:
  """Parses a command line, runs the command and returns the process's exit code.

  An error prints one sentence on stderr, after a traceback with `--debug`. The exit
  code is 2 if the error occurs before the work starts, 1 afterwards.

  Args:
    argv: the command line without the program's name; None: that of the process.
    flags: dataclasses whose fields are the command's flags, beside `Common`.
    do: (flag → value, command line) → the exit code, or the work that remains after
      all checks.
    introduction, outro: help text above and below the flags.
    positional: see `flags.parse`.
  """
  argv = list(sys.argv[1:] if argv is None else argv)
  # TensorFlow, installed with Reverb, prints warnings about GPUs at its import.
  os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
  exit_code = 2
  try:
    if {"-h", "--help", "--helpfull", "--helpshort"} & {*argv}:
      return show(f"{introduction}\n{flags_lib.help_text(*flags, Common)}\n\n{outro}")
    values = flags_lib.parse(argv, *flags, Common, positional=positional)
    compilation.keep_programs()
    work = do(values, argv)
    if isinstance(work, int):
      return work
    exit_code = 1
    return work()
  except (Exception, SystemExit) as error:  # A user's module may raise either.
    if "--debug" in argv:
      traceback.print_exception(error)
    console_lib.print_error(errors.sentence(error))
    return 2 if isinstance(error, errors.SetUpError) else exit_code


def show(text: str) -> int:
  """Prints text, even if the reader quits early (`--list_envs | head`); returns 0."""
  with contextlib.suppress(BrokenPipeError):
    print(text, flush=True)
  return 0
