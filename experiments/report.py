"""Reports on runs: `python -m explorax.experiments.report --help`."""

import dataclasses
import pathlib
import shlex
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from explorax.experiments import command, errors

if TYPE_CHECKING:
  from explorax.experiments.reports import page as page_lib

_MAX_ENVS = 24  # With more, bsuite's are compared by their scores only.

_INTRODUCTION = """\
Makes a page of runs, of any runner and environment: returns at the end, learning curves
and probabilities of improvement with intervals over seeds; of runs on bsuite its scores
by experiment and by tag; and of runs on Atari human-normalised scores over games.

  python -m explorax.experiments.report DIR...

Each DIR is the --output of `python -m explorax.experiments.run` or of a sweep, or a
directory with runs at any depth. Runs of the same agent, settings and environment that
differ only in the seed belong together. They may still be running.
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

  def work() -> int:
    errors.check_installed("matplotlib")
    page = make(directories)
    page.add(f"```\n{asked}\n```")
    path = page.write(pathlib.Path(to))
    print("\n\n".join([*page.shown, str(path)]))
    return 0

  return work


def make(directories: Sequence[str]) -> "page_lib.Page":
  """The page of all runs in some directories.

  Raises:
    SetUpError: if there is none.
  """
  from explorax.experiments.recording import summary
  from explorax.experiments.reports import atari, bsuite, compare
  from explorax.experiments.reports import page as page_lib
  from explorax.experiments.reports import runs as runs_lib

  runs, remarks = runs_lib.read_all(directories)
  if not runs:
    raise errors.SetUpError(
      f"no run in {', '.join(directories)} can be reported: {remarks[0]}"
    )
  labels = runs_lib.labels(runs)
  agents, envs = dict.fromkeys(labels), {run.problem for run in runs}
  num_agents = summary.count(len(agents), "agent")
  num_envs = summary.count(len(envs), "environment")
  page = page_lib.Page(f"{num_agents} in {num_envs}")
  names = ", ".join(f"`{agent}`" for agent in agents)
  page.add(f"{summary.count(len(runs), 'run')} of {names}.")
  page.add(*remarks)
  logs = bsuite.finished(runs, labels)
  if logs:
    bsuite.add_to(page, bsuite.compute(logs), [*agents])
  compared = [
    (run, label)
    for run, label in zip(runs, labels, strict=True)
    if len(run.returns) and (len(envs) <= _MAX_ENVS or run.bsuite is None)
  ]
  if compared:
    comparisons = compare.compute(*zip(*compared, strict=True))
    atari.add_to(page, comparisons)
    compare.add_to(page, comparisons, [*agents])
  page.shown += remarks
  commits = {(run.record.get("versions") or {}).get("git_commit") for run in runs}
  page.add(f"Commits: {', '.join(sorted(filter(None, commits))) or 'unknown'}.")
  return page


if __name__ == "__main__":
  sys.exit(main())
