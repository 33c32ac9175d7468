"""Reproduces the papers' figures: `python -m explorax.papers.reproduce --help`.

Each figure consists of tasks, whose raw results are saved as soon as they are computed:
a second call only draws, and an interrupted call resumes. Each drawing comes with a
table of the paper's claims and our measurements.
"""

import sys
from collections.abc import Sequence
from typing import Any

from explorax.experiments import signals

if __name__ == "__main__":
  signals.end_at_once()

from explorax import papers
from explorax.experiments import command, compilation, flag_table
from explorax.experiments import config as config_lib

_INTRODUCTION = """\
Reproduces the papers' figures, with intervals over seeds and a test of each claim.

  python -m explorax.papers.reproduce --figure=NAME[,NAME...] [flags]

Examples
  List the figures:
    python -m explorax.papers.reproduce --list

  Figure 3 of paper 1, into a directory of your choice:
    python -m explorax.papers.reproduce --figure=ez/fig3 --output=figures

  Quick versions of all figures of one paper, or of all papers:
    python -m explorax.papers.reproduce --figure=ez --quick
    python -m explorax.papers.reproduce --figure=all --quick
"""

_OUTRO = f"""\
OUTPUT/figures.md shows all figures with the papers' claims and our measurements, and
one table of all claims. Raw results are kept in OUTPUT/raw: a second call only draws,
and an interrupted call resumes.
{command.EXIT_CODES}"""

FLAGS = {
  "What to reproduce": (
    flag_table.Flag(
      "figure",
      "=NAME,...",
      None,
      "Figures (--list), all figures of a paper (ez), or all; large ones only by\n"
      "their names; or your own figures.types.Figure as module:NAME.",
    ),
    flag_table.Flag(
      "quick",
      "",
      False,
      "The smallest problems and few seeds, as a quick test. This cannot tell\n"
      "whether a claim holds.",
    ),
    flag_table.Flag(
      "set",
      " FIELD=VALUE",
      [],
      "Changes a setting of the figure (--set sizes=5,8); may be repeated. An\n"
      "unknown name prints the known ones.",
    ),
    flag_table.Flag(
      "seeds",
      "=INT",
      None,
      "Runs for each number, as --set num_seeds. [each figure's own: --list]",
      parser=flag_table.WholeNumber(1, config_lib.MAX_SEEDS),
    ),
  ),
  "How": (
    flag_table.Flag(
      "workers",
      "=INT",
      None,
      "Number of tasks at a time, each in a process. [one per core]",
      parser=flag_table.WholeNumber(1),
    ),
    flag_table.Flag(
      "ray_address",
      "=ADDRESS",
      None,
      "Address of a Ray cluster that computes the tasks, with explorax installed on\n"
      "all its machines.",
    ),
    flag_table.Flag(
      "output",
      "=DIR",
      "figures",
      "Directory of drawings, tables and raw results. [figures in the current\n"
      "directory]",
    ),
    compilation.FLAG,
  ),
  "Information": (
    flag_table.Flag("list", "", False, "Prints the figures and exits."),
    flag_table.Flag(
      "page",
      "",
      False,
      "Rewrites OUTPUT/figures.md from the figures in OUTPUT, and exits.",
    ),
    command.HELP,
    command.DEBUG,
  ),
}


def main(argv: Sequence[str] | None = None) -> int:
  """Runs the command and returns the exit code (see `command.main`)."""
  return command.main(argv, FLAGS, _reproduce, introduction=_INTRODUCTION, outro=_OUTRO)


def _reproduce(given: dict[str, Any], argv: list[str]) -> int | command.Work:
  return papers.reproducing.reproduce(given, argv)


if __name__ == "__main__":
  sys.exit(main())
