"""What all commands share: help, one-sentence errors, exit codes."""

import contextlib
import io
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any

from explorax.environments import errors as environment_errors
from explorax.experiments import compilation, errors, flag_table
from explorax.experiments.recording import console as console_lib

# Raised by flags, settings, environments, agents and files for requests that they
# cannot fulfil.
_REFUSALS = (
  errors.SetUpError,
  errors.OutputError,
  ValueError,
  TypeError,
  ImportError,
  OSError,
)

# Variables that end a program which is right without them.
_OF_JAX = ("JAX_PLATFORMS", "JAX_PLATFORM_NAME", "PYTHONOPTIMIZE", "XLA_FLAGS")

Work = Callable[[], int]  # Returns the exit code.

# Of commands that compute tasks.
EXIT_CODES = (
  "Exit codes: 0 done, 1 a task failed, 2 could not start, 130 Ctrl-C, 143 SIGTERM,\n"
  "129 SIGHUP.\n"
)

HELP = flag_table.Flag("help", "", False, "Prints this text and exits.")
DEBUG = flag_table.Flag("debug", "", False, "Prints the traceback of an error.")


def main(
  argv: Sequence[str] | None,
  flags: flag_table.Groups,
  do: Callable[[dict[str, Any], list[str]], int | Work],
  *,
  introduction: str,
  outro: str = "",
  words: str | None = None,
) -> int:
  """Parses a command line, runs the command and returns the process's exit code.

  An error prints one sentence on stderr, after a traceback with `--debug`. The exit
  code is 2 if the error occurs before the work starts, 1 afterwards.

  Args:
    argv: the command line without the program's name; None: that of the process.
    flags: of the command, including `help`.
    do: (flag → value, command line) → the exit code, or the work that remains after
      all checks.
    introduction: help text above the flags.
    outro: help text below the flags.
    words: the key under which `do` gets positional arguments; None refuses them.
  """
  argv = list(sys.argv[1:] if argv is None else argv)
  for stream in (sys.stdout, sys.stderr):
    if isinstance(stream, io.TextIOWrapper):
      stream.reconfigure(errors="replace")  # An ASCII terminal shows no β.
  # TensorFlow, installed with Reverb, prints warnings about GPUs at its import.
  os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
  try:
    given = flag_table.parse(flags, argv, words=words)
    if given["help"]:
      return show(flag_table.help_text(introduction, flags, outro))
    if given.get(compilation.FLAG.name):
      compilation.keep_programs()
    work = do(given, argv)
  except KeyboardInterrupt:  # In a Python program; a command has ended (`signals`).
    console_lib.print_error("stopped before the start.")
    return 130
  except (Exception, SystemExit) as error:  # A user's module may raise either of them.
    return _refused(error, argv, 2)
  if isinstance(work, int):
    return work
  try:
    return work()
  except errors.SetUpError as error:
    return _refused(error, argv, 2)
  except Exception as error:
    return _refused(error, argv, 1)


def show(text: str) -> int:
  """Prints text, even if the reader quits early (`--list_envs | head`); returns 0."""
  with contextlib.suppress(BrokenPipeError):
    print(text, flush=True)
  return 0


def refuse(text: str) -> int:
  """Prints why a command cannot start; returns the exit code."""
  console_lib.print_error(text)
  return 2


def _refused(error: BaseException, argv: Sequence[str], exit_code: int) -> int:
  if "--debug" in argv:
    traceback.print_exception(error)
  text = errors.missing_extra(error) or str(error)
  line = environment_errors.users_line(error)
  if line or not isinstance(error, _REFUSALS):
    given = [f"{name}={os.environ[name]}" for name in _OF_JAX if name in os.environ]
    with_them = f" (perhaps by {', '.join(given)})" if given else ""
    where = f" ({line})" if line else ""
    said = errors.describe(error)
    text = f"{said}{where}{with_them}; --debug shows the traceback."
  console_lib.print_error(text)
  return exit_code
