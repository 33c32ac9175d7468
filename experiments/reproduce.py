"""Repeats the papers' figures: `python -m explorax.experiments.reproduce --help`.

Each figure is cut into tasks, whose raw results are kept as they are computed: a second
call only draws, and one that was interrupted resumes. Beside each drawing lies a table
of what the paper claims and what was measured.
"""

import functools
import shlex
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from explorax.experiments import command, flag_table, overrides
from explorax.experiments import config as config_lib
from explorax.experiments.recording import console as console_lib
from explorax.experiments.tasks import flags as tasks_flags

if TYPE_CHECKING:
  from explorax.experiments import output
  from explorax.experiments.figures import report

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
OUTPUT/figures.md shows all figures, with what they claim and what was measured, and
all claims in one table.
Raw results are kept in OUTPUT/raw: a second call only draws, and one that was stopped
resumes.
{tasks_flags.EXIT_CODES}"""

FLAGS = {
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
      parser=flag_table.WholeNumber(1, config_lib.MAX_SEEDS),
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
    flag_table.Flag(
      "page",
      "",
      False,
      "Writes OUTPUT/figures.md again, of the figures there, and exits.",
    ),
    command.HELP,
    command.DEBUG,
  ),
}


def main(argv: Sequence[str] | None = None) -> int:
  """Does what the command line asks and returns the exit code (`command.main`)."""
  return command.main(argv, FLAGS, _reproduce, introduction=_INTRODUCTION, outro=_OUTRO)


def _reproduce(given: dict[str, Any], argv: list[str]) -> int | command.Work:
  from explorax.experiments import output
  from explorax.experiments.figures import registry, report

  if given["list"]:
    return command.show(registry.listing())
  if given["page"]:
    report.write_page(output.RunDirectory.create(given["output"]))
    return 0
  report.check_matplotlib()
  figures = registry.choose(given["figure"])
  seeds = [] if given["seeds"] is None else [f"num_seeds={given['seeds']}"]
  asked = shlex.join(["python", "-m", "explorax.experiments.reproduce", *argv])
  requests = []
  for figure in figures:
    config = figure.quick if given["quick"] else figure.config
    config = overrides.apply(config, [*given["set"], *seeds])
    requests.append(report.FigureRequest(figure, config, given["quick"], asked))
  directory = output.RunDirectory.create(given["output"])
  return functools.partial(_draw, requests, directory, given)


def _draw(
  requests: "Sequence[report.FigureRequest]",
  directory: "output.RunDirectory",
  given: dict[str, Any],
) -> int:
  """Computes and draws the figures one after another."""
  import jax

  from explorax.experiments.tasks import pool as pool_lib

  console = console_lib.Console(sys.stdout)
  arguments = tasks_flags.pool_arguments(given)
  if arguments["workers"] is None and jax.default_backend() != "cpu":
    arguments["workers"] = 1  # Ray's workers compute on the CPU.
  with pool_lib.Pool(console, **arguments) as pool:
    for request in requests:
      if not request.make(pool, directory, console) and pool.is_stopped():
        console_lib.print_error("stopped; the same command resumes.")
        return pool.exit_code
    return 1 if pool.failed else 0


if __name__ == "__main__":
  sys.exit(main())
