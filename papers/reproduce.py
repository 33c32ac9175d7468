"""Reproduces the papers' figures: `python -m explorax.papers.reproduce --help`.

Each figure consists of tasks, whose raw results are saved as soon as they are computed:
a second call only draws, and an interrupted call resumes. Each drawing comes with a
table of the paper's claims and our measurements.
"""

import dataclasses
import sys
from collections.abc import Sequence
from typing import Annotated, Any

from explorax import ranges
from explorax.experiments import signals

if __name__ == "__main__":
  signals.end_at_once()

from explorax.experiments import command
from explorax.experiments import config as config_lib
from explorax.experiments import flags as flags_lib

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


@dataclasses.dataclass(frozen=True)
class Flags:
  """The flags of the command."""

  figure: str | None = flags_lib.field(
    None,
    "Figures (--list), all figures of a paper (ez), or all; large ones only by "
    "their names; or your own figures.types.Figure as module:NAME.",
    "What to reproduce",
  )
  quick: bool = flags_lib.field(
    False,
    "The smallest problems and few seeds, as a quick test. This cannot tell "
    "whether a claim holds.",
    "What to reproduce",
  )
  set: tuple[str, ...] = flags_lib.field(
    (),
    "Changes a setting of the figure (--set sizes=5,8); may be repeated. An "
    "unknown name prints the known ones.",
    "What to reproduce",
  )
  seeds: Annotated[int, ranges.Range(ge=1, le=config_lib.MAX_SEEDS)] | None = (
    flags_lib.field(
      None,
      "Runs for each number, as --set num_seeds. [each figure's own: --list]",
      "What to reproduce",
    )
  )
  workers: Annotated[int, ranges.Range(ge=1)] | None = flags_lib.field(
    None,
    "Number of tasks at a time, each in a process. [one per core]",
    "How",
  )
  ray_address: str | None = flags_lib.field(
    None,
    "Address of a Ray cluster that computes the tasks, with explorax installed on "
    "all its machines.",
    "How",
  )
  output: str = flags_lib.field(
    "figures",
    "Directory of drawings, tables and raw results. [figures in the current directory]",
    "How",
  )
  list: bool = flags_lib.field(
    False,
    "Prints the figures and exits.",
    command.INFORMATION,
  )
  page: bool = flags_lib.field(
    False,
    "Rewrites OUTPUT/figures.md from the figures in OUTPUT, and exits.",
    command.INFORMATION,
  )


def main(argv: Sequence[str] | None = None) -> int:
  """Runs the command and returns the exit code (see `command.main`)."""
  return command.main(
    argv,
    [Flags, command.Compiling],
    _reproduce,
    introduction=_INTRODUCTION,
    outro=_OUTRO,
  )


def _reproduce(flags: dict[str, Any], argv: list[str]) -> int | command.Work:
  from explorax.papers import reproducing

  return reproducing.reproduce(flags, argv)


if __name__ == "__main__":
  sys.exit(main())
