"""Reports on runs: `python -m explorax.experiments.report --help`."""

import dataclasses
import pathlib
import shlex
import sys
from collections.abc import Sequence
from typing import Any

from explorax.experiments import signals

if __name__ == "__main__":
  signals.end_at_once()

from explorax.experiments import command, errors

_INTRODUCTION = """\
Makes a page of runs, of any runner and environment: returns at the end, learning curves
and probabilities of improvement with intervals over seeds; of runs on bsuite its scores
by experiment and by tag; and of runs on Atari human-normalised scores over games.

  python -m explorax.experiments.report DIR...

Each DIR is the --output of `python -m explorax.experiments.run` or of a sweep, or a
directory with runs at any depth. Runs of the same agent, settings and environment that
differ only in the seed belong together. They may still be running.

Examples
  A sweep, into results/deep_sea/report:
    python -m explorax.experiments.report results/deep_sea

  Two agents with several seeds each, into another directory:
    python -m explorax.experiments.report runs/dqn-gym_CartPole-v1-seeds0-4 \\
      runs/dqn_ez-gym_CartPole-v1-seeds0-4 --output=public/cartpole
"""

_OUTRO = """\
OUTPUT holds report.md with its drawings as PNG files, and the same as report.html, one
file that needs no other.
Exit codes: 0 done, 1 the page could not be written, 2 no run, or a run that cannot be
read, 130 Ctrl-C.
"""


@dataclasses.dataclass(frozen=True)
class Flags:
  """The flags of the command."""

  ## Output
  # Directory of the page and its drawings; an earlier page is replaced. [report in DIR;
  # with several, report in the current directory]
  output: str | None = None
  # The agent over which others improve in each game of Atari, as the page names it.
  # [the first]
  baseline: str | None = None


def main(argv: Sequence[str] | None = None) -> int:
  """Runs the command and returns the exit code (see `command.main`)."""
  return command.main(
    argv,
    [Flags],
    _report,
    introduction=_INTRODUCTION,
    outro=_OUTRO,
    positional="directories",
  )


def _report(flags: dict[str, Any], argv: list[str]) -> command.Work:
  directories = flags["directories"]
  if not directories:
    raise errors.SetUpError(
      "no directory was given; give the directories of runs: `python -m "
      "explorax.experiments.report runs`."
    )
  asked = shlex.join(["python", "-m", "explorax.experiments.report", *argv])
  parent = directories[0] if len(directories) == 1 else ""
  to = flags["output"] or pathlib.Path(parent).expanduser() / "report"
  return lambda: _write(directories, flags["baseline"], pathlib.Path(to), asked)


def _write(
  directories: Sequence[str], baseline: str | None, to: pathlib.Path, asked: str
) -> int:
  """Reads the runs, prints their scores, and writes the report."""
  from explorax.experiments.recording import drawing
  from explorax.experiments.reports import contents, runs

  drawing.check_can_draw()
  found = runs.read_all(directories)
  if not found.runs:
    raise errors.SetUpError(
      f"no run in {', '.join(directories)} has a finished episode that can be read, so "
      "there is nothing to report; wait for one, or run the command again. "
      f"{' '.join(found.remarks[:1])}".rstrip()
    )
  report = contents.make(found, asked, baseline)
  path = report.write(to)
  print("\n\n".join(report.shown))
  print(f"\n{len(found.runs):,} runs, {len(found.missing):,} missing: {path}")
  return 0


if __name__ == "__main__":
  sys.exit(main())
