"""Repeats the papers' figures: `python -m explorax.experiments.reproduce --help`.

Each figure is cut into tasks, whose raw results are kept as they are computed: a second
call only draws, and one that was interrupted resumes. Beside each drawing lies a table
of what the paper claims and what was measured.
"""

import contextlib
import shlex
import sys
import traceback
from collections.abc import Sequence
from typing import Any

from explorax.experiments import config, errors, flag_table, overrides
from explorax.experiments.recording import console as console_lib
from explorax.experiments.tasks import flags as tasks_flags

_INTRODUCTION = """\
Repeats the figures of the papers, with intervals over seeds and a test of each claim.

  python -m explorax.experiments.reproduce --figure=NAME[,NAME...] [flags]

Examples
  Which figures there are:
    python -m explorax.experiments.reproduce --list

  Paper 1's figure 3, into a directory of your choice:
    python -m explorax.experiments.reproduce --figure=ez/fig3 --output=figures

  A smoke version of all figures of one paper, or of all papers:
    python -m explorax.experiments.reproduce --figure=ez --quick
    python -m explorax.experiments.reproduce --figure=all --quick
"""

_OUTRO = f"""\
OUTPUT/figures.md shows all figures, with what they claim and what was measured.
Raw results are kept in OUTPUT/raw: a second call only draws, and one that was stopped
resumes.
{tasks_flags.EXIT_CODES}"""

_FLAGS = {
  "What to repeat": (
    flag_table.Flag(
      "figure",
      "=NAME,...",
      None,
      "Figures (--list), all of a paper by its first part (ez), or all; or your own,\n"
      "a figures.types.Figure, as module:NAME.",
    ),
    flag_table.Flag(
      "quick",
      "",
      False,
      "A smoke version: the smallest problems and few seeds, to see what there will\n"
      "be. It cannot tell whether a claim holds.",
    ),
    flag_table.Flag(
      "set",
      " FIELD=VALUE",
      [],
      "Changes a setting of the figure (--set sizes=5,8); may be given repeatedly.\n"
      "A name that does not exist lists those that do.",
    ),
    flag_table.Flag(
      "seeds",
      "=INT",
      None,
      "Runs behind each number: --set num_seeds. [each figure's own: --list]",
      parser=flag_table.WholeNumber(1, config.MAX_SEEDS),
    ),
  ),
  "How": (
    *tasks_flags.FLAGS,
    flag_table.Flag(
      "output",
      "=DIR",
      "figures",
      "Where drawings, tables and raw results go. [figures in the current directory]",
    ),
  ),
  "To look around": (
    flag_table.Flag("list", "", False, "Shows the figures and exits."),
    flag_table.Flag("help", "", False, "Shows this and exits."),
    flag_table.Flag("debug", "", False, "Shows where in the code an error arose."),
  ),
}


def main(argv: Sequence[str] | None = None) -> int:
  """Does what the command line asks and returns the process's exit code.

  Args:
    argv: the command line without the program's name; the process's own by default.
  """
  argv = list(sys.argv[1:] if argv is None else argv)
  try:
    given = flag_table.parse(_FLAGS, argv)
    if given["help"]:
      return _print(flag_table.help_text(_INTRODUCTION, _FLAGS, _OUTRO))
    from explorax.experiments.figures import registry

    if given["list"]:
      return _print(registry.listing())
    return _reproduce(given, shlex.join(argv))
  except (errors.SetUpError, errors.OutputError, ValueError) as error:
    if "--debug" in argv:
      traceback.print_exc()
    console_lib.complain(error)
    return 2
  except KeyboardInterrupt:
    console_lib.complain("stopped before anything began.")
    return 130


def _reproduce(given: dict[str, Any], flags: str) -> int:
  """Computes and draws the figures one after another."""
  import jax

  from explorax.experiments import output
  from explorax.experiments.figures import registry, report
  from explorax.experiments.tasks import pool as pool_lib

  report.check_matplotlib()
  figures = registry.choose(given["figure"])
  seeds = [] if given["seeds"] is None else [f"num_seeds={given['seeds']}"]
  configs = [
    overrides.apply(
      figure.quick if given["quick"] else figure.config, [*given["set"], *seeds]
    )
    for figure in figures
  ]
  directory = output.RunDirectory.create(given["output"])
  console = console_lib.Console(sys.stdout)
  arguments = tasks_flags.pool_arguments(given)
  if arguments["workers"] is None and jax.default_backend() != "cpu":
    arguments["workers"] = 1  # Ray's workers compute on the CPU.
  with pool_lib.Pool(console, **arguments) as pool:
    try:
      for figure, config in zip(figures, configs, strict=True):
        drawn = report.make(
          figure,
          config,
          pool,
          directory,
          console,
          command=f"python -m explorax.experiments.reproduce {flags}",
          quick=given["quick"],
        )
        if not drawn and pool.is_stopped():
          console_lib.complain("stopped; the same command resumes.")
          return pool.exit_code
    except errors.OutputError as error:
      console_lib.complain(error)
      return 1
    return 1 if pool.failed else 0


def _print(text: str) -> int:
  with contextlib.suppress(BrokenPipeError):
    print(text, flush=True)
  return 0


if __name__ == "__main__":
  sys.exit(main())
