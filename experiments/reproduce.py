"""Repeats the papers' figures: `python -m explorax.experiments.reproduce --help`.

Each figure is cut into tasks, whose raw results are kept as they are computed: a second
call only draws, and one that was interrupted goes on. Beside each drawing lies a table
of what the paper claims and what was measured.
"""

import contextlib
import math
import shlex
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from explorax.experiments import command, errors, flag_table, overrides
from explorax.experiments.recording import console as console_lib

if TYPE_CHECKING:
  import signal

  from explorax.experiments import output
  from explorax.experiments.figures import types

_TIME_UP = 3  # The exit code.

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

_OUTRO = """\
OUTPUT/figures.md shows all figures, with what they claim and what was measured.
Raw results are kept in OUTPUT/raw: a second call only draws, and one that was stopped
goes on.
Exit codes: 0 done, 1 a task failed, 2 could not start, 3 --max_minutes were up,
130 Ctrl-C, 143 SIGTERM.
"""

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
      "Changes a setting of the figure (--set sizes=5,8); may be given again and\n"
      "again. A name that does not exist lists those that do.",
    ),
    flag_table.Flag(
      "seeds",
      "=INT",
      None,
      "Runs behind each number: --set num_seeds. [each figure's own: --list]",
      parser=flag_table.WholeNumber(1, command.MAX_SEEDS),
    ),
  ),
  "How": (
    flag_table.Flag(
      "workers",
      "=INT",
      None,
      "Processes side by side. [one for each processor; 1 with an accelerator]",
      parser=flag_table.WholeNumber(1),
    ),
    flag_table.Flag(
      "max_minutes",
      "=INT",
      None,
      "Ends after so long, where machines are lent by the hour: what was computed is\n"
      "kept, tasks under way are not, and the same call goes on. With one worker a\n"
      "task is left when it next tells how far it is. [no limit]",
      parser=flag_table.WholeNumber(1),
    ),
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
  debug = "--debug" in argv
  try:
    given = flag_table.parse(_FLAGS, argv)
    if given["help"]:
      return _print(flag_table.help_text(_INTRODUCTION, _FLAGS, _OUTRO))
    from explorax.experiments import output
    from explorax.experiments.figures import registry

    if given["list"]:
      return _print(_listing(registry.FIGURES))
    chosen = _choose(given["figure"], registry.FIGURES)
    _check_plots()
    configs = [_config(figure, given) for figure in chosen.values()]
    directory = output.RunDirectory.create(given["output"])
  except (errors.SetUpError, errors.OutputError, ValueError) as error:
    if debug:
      raise
    console_lib.complain(error)
    return 2
  except KeyboardInterrupt:
    console_lib.complain("stopped before anything began.")
    return 130
  try:
    return _reproduce(chosen, configs, given, argv, directory)
  except errors.OutputError as error:
    if debug:
      traceback.print_exc()
    console_lib.complain(error)
    return 1


def _choose(
  names: str | None, figures: dict[str, "types.Figure"]
) -> dict[str, "types.Figure"]:
  """The figures by their names, in the order in which they were asked for."""
  from explorax.experiments.figures import registry

  if not names:
    raise errors.SetUpError("--figure is missing; --list shows the names.")
  chosen: dict[str, types.Figure] = {}
  for name in names.split(","):
    found = {
      key: figure
      for key, figure in figures.items()
      if name in (key, key.partition("/")[0], "all")
    }
    if ":" in name:
      found = {name: registry.find(name)}
    if not found:
      raise errors.SetUpError(
        f"there is no figure {name!r}.{overrides.nearest(name, list(figures))} "
        "--list shows all of them."
      )
    chosen |= found
  return chosen


def _config(figure: "types.Figure", given: dict[str, Any]) -> Any:
  """The figure's settings, as the command line wants them."""
  config = figure.quick if given["quick"] else figure.config
  seeds = [] if given["seeds"] is None else [f"num_seeds={given['seeds']}"]
  return overrides.apply(config, [*given["set"], *seeds])


def _listing(figures: dict[str, "types.Figure"]) -> str:
  from explorax.experiments.figures import report

  width = max(len(name) for name in figures)
  return "\n".join(
    f"{name:{width}}  {f.title} ({f.source}; {report.seeds(f.config)})"
    for name, f in figures.items()
  )


def _check_plots() -> None:
  try:
    import matplotlib  # noqa: F401
  except ImportError as error:
    raise errors.SetUpError(
      "matplotlib is missing, which draws the figures; install explorax[plots]."
    ) from error


def _time_up(max_minutes: int | None) -> Callable[[], bool]:
  """From now on, whether so many minutes have passed; None: never."""
  end = math.inf if max_minutes is None else time.monotonic() + 60 * max_minutes
  return lambda: time.monotonic() >= end


def _reproduce(
  chosen: dict[str, "types.Figure"],
  configs: list[Any],
  given: dict[str, Any],
  argv: list[str],
  directory: "output.RunDirectory",
) -> int:
  """Computes and draws the figures one after another."""
  from explorax.experiments import signals
  from explorax.experiments.figures import pool, report

  console = console_lib.Console(sys.stdout)
  workers = given["workers"] or pool.default_workers()
  exit_code = 0
  time_up = _time_up(given["max_minutes"])
  with signals.stop_on_signals(_announce) as request:

    def stop() -> bool:
      return request() or time_up()

    for (name, figure), config in zip(chosen.items(), configs, strict=True):
      done = _compute(name, figure, config, workers, directory, console, stop)
      if request():
        console_lib.complain("stopped; the same call goes on where it was.")
        return request.exit_code
      # What is complete is drawn, be it late.
      if done is None and time_up():
        console_lib.complain("the time is up; the same call goes on where it was.")
        return _TIME_UP
      if done is None:
        exit_code = 1
        continue
      command_line = ["python", "-m", "explorax.experiments.reproduce", *argv]
      findings, path = report.leave(
        figure,
        config,
        done,
        directory,
        command=shlex.join(command_line),
        quick=given["quick"],
      )
      console.line(f"{report.table(findings)}\n  drawn in {path}\n")
  return exit_code


def _compute(
  name: str,
  figure: "types.Figure",
  config: Any,
  workers: int,
  directory: "output.RunDirectory",
  console: console_lib.Console,
  stop: Any,
) -> list["types.Done"] | None:
  """The results of all tasks, from the cache as far as it has them."""
  from explorax.experiments.figures import cache as cache_lib
  from explorax.experiments.figures import pool, types
  from explorax.experiments.recording import progress as progress_lib

  tasks = list(figure.tasks(config))
  cache = cache_lib.Cache(directory, figure)
  done: dict[int, types.Done] = {}
  for index, task in enumerate(tasks):
    found = cache.read(task)
    if found.done is not None:
      done[index] = found.done
    elif found.problem:
      console.line(f"{figure.name}: {found.problem}; computing {task.name}.")
  console.line(
    f"{figure.name}: {figure.title}; {len(tasks)} "
    f"task{'s' if len(tasks) != 1 else ''}"
    + (f", {len(done)} of them computed before" if done else "")
  )
  # The long ones first, so that no processor idles at the end.
  missing = sorted(set(range(len(tasks))) - set(done), key=lambda i: -tasks[i].weight)
  if not missing:
    return list(done.values())
  weights = [tasks[i].weight for i in missing]
  progress = progress_lib.TaskProgress(console, weights, workers)
  failed = 0
  with contextlib.closing(progress):
    outcomes = pool.compute(
      name,
      [tasks[i] for i in missing],
      workers=workers,
      on_progress=progress.update,
      stop=stop,
    )
    with contextlib.closing(outcomes):
      for outcome in outcomes:
        task = tasks[missing[outcome.task]]
        if outcome.done is None:
          failed += 1
          progress.close()
          console_lib.complain(f"{figure.name}, {task.name} failed: {outcome.problem}.")
        else:
          cache.write(task, outcome.done)
          done[missing[outcome.task]] = outcome.done
        progress.finish(outcome.task)
  if failed and not stop():
    console_lib.complain(
      f"{figure.name}: {failed} of {len(tasks)} tasks failed, and it is not drawn; the "
      "others are kept, and the same call computes what is missing."
    )
  return [done[i] for i in range(len(tasks))] if len(done) == len(tasks) else None


def _print(text: str) -> int:
  with contextlib.suppress(BrokenPipeError):
    print(text, flush=True)
  return 0


def _announce(number: "signal.Signals") -> None:
  del number
  console_lib.alert("stopping; what was computed is kept (again: at once)")


if __name__ == "__main__":
  sys.exit(main())
