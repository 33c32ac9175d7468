"""What the commands share: help, errors in one sentence, exit codes."""

import contextlib
import io
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any

from explorax.experiments import errors, flag_table
from explorax.experiments.recording import console as console_lib

# What flags, settings, environments, agents and files raise when they are asked for
# something that they cannot do.
_REFUSALS = (
  errors.SetUpError,
  errors.OutputError,
  ValueError,
  TypeError,
  ImportError,
  OSError,
)

Work = Callable[[], int]  # Returns the exit code.

HELP = flag_table.Flag("help", "", False, "Shows this and exits.")
DEBUG = flag_table.Flag("debug", "", False, "Shows where in the code an error arose.")


def main(
  argv: Sequence[str] | None,
  flags: flag_table.Groups,
  do: Callable[[dict[str, Any], list[str]], int | Work],
  *,
  introduction: str,
  outro: str = "",
  words: str | None = None,
) -> int:
  """Reads a command line, does what it asks and returns the process's exit code.

  What cannot be done is one sentence on stderr, after a traceback with `--debug`. The
  exit code is then 2, or 1 once the work has begun; of Ctrl-C 130.

  Args:
    argv: the command line without the program's name; None for the process's own.
    flags: of the command, `help` among them.
    do: (name → value of each flag, the command line) → the exit code or, once all is
      checked, the work.
    introduction: of the help, above the flags.
    outro: of the help, below them.
    words: the name under which `do` gets words that are no flags; None to refuse them.
  """
  argv = list(sys.argv[1:] if argv is None else argv)
  for stream in (sys.stdout, sys.stderr):
    if isinstance(stream, io.TextIOWrapper):
      stream.reconfigure(errors="replace")  # An ASCII terminal shows no β.
  # TensorFlow, which comes with Reverb, greets with warnings about GPUs.
  os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
  try:
    given = flag_table.parse(flags, argv, words=words)
    if given["help"]:
      return show(flag_table.help_text(introduction, flags, outro))
    work = do(given, argv)
  except KeyboardInterrupt:
    return _stopped()
  except (Exception, SystemExit) as error:  # A user's module may raise either.
    return _refused(error, argv, 2)
  if isinstance(work, int):
    return work
  try:
    return work()
  except KeyboardInterrupt:
    return _stopped()
  except errors.SetUpError as error:
    return _refused(error, argv, 2)
  except Exception as error:
    return _refused(error, argv, 1)


def show(text: str) -> int:
  """Prints to a reader who may leave (`--list_envs | head`); the exit code is 0."""
  with contextlib.suppress(BrokenPipeError):
    print(text, flush=True)
  return 0


def _stopped() -> int:
  console_lib.print_error("stopped; what is done is kept.")
  return 130


def _refused(error: BaseException, argv: Sequence[str], exit_code: int) -> int:
  if "--debug" in argv:
    traceback.print_exception(error)
  text = str(error)
  if not isinstance(error, _REFUSALS):
    text = errors.describe(error) + "; --debug shows where it arose."
  console_lib.print_error(text)
  return exit_code
