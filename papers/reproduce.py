"""Reproduces the papers' figures: `python -m explorax.papers.reproduce --help`.

Each figure consists of tasks, whose raw results are saved as soon as they are computed:
a second call only draws, and an interrupted call resumes. Each drawing comes with a
table of the paper's claims and our measurements.
"""

import functools
import shlex
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from explorax.experiments import command, flag_table, overrides
from explorax.experiments import config as config_lib
from explorax.experiments.recording import console as console_lib

if TYPE_CHECKING:
  from explorax.experiments import output
  from explorax.papers import report

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
      "Figures (--list), all figures of a paper (ez), or all; those of Atari only by\n"
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
      "Number of tasks at a time, on Ray. With 1, or without Ray, this process runs\n"
      "one task after another. [one per core]",
      parser=flag_table.WholeNumber(1),
    ),
    flag_table.Flag(
      "ray_address",
      "=ADDRESS",
      None,
      "Address of a Ray cluster with explorax installed on all its machines. [starts\n"
      "Ray on this machine]",
    ),
    flag_table.Flag(
      "output",
      "=DIR",
      "figures",
      "Directory of drawings, tables and raw results. [figures in the current\n"
      "directory]",
    ),
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
  from explorax.experiments import output
  from explorax.experiments.recording import plots
  from explorax.papers import registry, report

  if given["list"]:
    return command.show(registry.listing())
  if given["page"]:
    report.write_page(output.RunDirectory.create(given["output"]))
    return 0
  plots.check_can_draw()
  figures = registry.choose(given["figure"])
  seeds = [] if given["seeds"] is None else [f"num_seeds={given['seeds']}"]
  asked = shlex.join(["python", "-m", "explorax.papers.reproduce", *argv])
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
  workers = given["workers"]
  if workers is None and jax.default_backend() != "cpu":
    workers = 1  # Ray's workers compute on the CPU.
  address = given["ray_address"]
  with pool_lib.Pool(console, workers=workers, ray_address=address) as pool:
    for request in requests:
      if not request.make(pool, directory, console) and pool.is_stopped():
        console_lib.print_error("stopped; run the same command again to resume.")
        return pool.exit_code
    return 1 if pool.failed else 0


if __name__ == "__main__":
  command.leave(main())
