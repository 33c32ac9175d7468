"""Reproduces the papers' figures: `python -m explorax.papers.reproduce --help`.

    OUTPUT/ez_fig3.png      the drawing
    OUTPUT/verdicts.csv     the finding of each claim of all figures
    RESULTS/ez_fig3.npz     the results of all tasks, see `write_results`

The drawing of a quick version has a name that ends in `_quick`, that of a figure with
changed settings in `_changed`. Their findings are not in the table of verdicts.
"""

import csv
import dataclasses
import functools
import io
import json
import pathlib
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, BinaryIO

import numpy as np

from explorax import ranges
from explorax.experiments import command, errors, output, pool, signals, versions
from explorax.experiments.recording import console as console_lib
from explorax.experiments.reports import markdown
from explorax.papers import draw, figures, judge

_INTRODUCTION = """\
Reproduces the papers' figures, with intervals over seeds and a test of each claim.

  python -m explorax.papers.reproduce --figure=NAME[,NAME...] [flags]

Examples
  python -m explorax.papers.reproduce --list
  python -m explorax.papers.reproduce --figure=ez/fig3 --output=figures
  python -m explorax.papers.reproduce --figure=ez --quick
  python -m explorax.papers.reproduce --figure=tdu --results=results/figures
"""

_OUTRO = f"""\
OUTPUT has the drawings, and verdicts.csv with the papers' claims and our findings. Raw
results are kept in RESULTS: a second call only draws, and an interrupted call resumes.
{command.EXIT_CODES}"""


@dataclasses.dataclass(frozen=True)
class Flags:
  """The flags of the command."""

  ## What to reproduce
  # Figures (--list), all figures of a paper (ez), or all; or your own figures.Figure as
  # module:NAME.
  figure: str | None = None
  # The smallest problems and few seeds, as a quick test. This cannot tell whether a
  # claim holds.
  quick: bool = False
  # Changes a setting of the figure's runs (--set size=5,8 --set num_seeds=2); may be
  # repeated. An unknown name prints the known ones.
  set: tuple[str, ...] = ()

  ## How
  # Number of tasks at a time, each in a process. [one per core]
  workers: ranges.PositiveInt | None = None
  # Address of a Ray cluster that computes the tasks, with explorax installed on all its
  # machines.
  ray_address: str | None = None
  # Directory of the drawings and of verdicts.csv. [figures in the current directory]
  output: str = "figures"
  # Directory of the raw results. [OUTPUT/raw]
  results: str | None = None
  # Directory of Markdown pages, whose tables between `<!-- table: NAME -->`, or `<!--
  # table: findings of NAME -->`, and `<!-- end -->` are written again; a table of
  # findings only if verdicts.csv has all of its figures. Of the drawings, those that a
  # page shows are made.
  pages: str | None = None

  ## Information
  # Prints the figures and exits.
  list: bool = False


def main(argv: Sequence[str] | None = None) -> int:
  """Runs the command and returns the exit code (see `command.main`)."""
  return command.main(
    argv, [Flags], _reproduce, introduction=_INTRODUCTION, outro=_OUTRO
  )


def _reproduce(flags: dict[str, Any], argv: list[str]) -> int | command.Work:
  """Lists the figures, or checks what was asked for; returns what remains."""
  known = figures.every()
  if flags["list"]:
    width = max(map(len, known))
    return command.show(
      "\n".join(f"{x.name:{width}}  {x.title} ({x.source})" for x in known.values())
    )
  errors.check_installed("matplotlib")
  chosen = [
    (figure, figures.parse_changes(figure, flags["set"]))
    for figure in figures.choose(flags["figure"], known)
  ]
  if flags["pages"] is not None and not _pages(pathlib.Path(flags["pages"])):
    raise errors.SetUpError(f"there are no Markdown pages in {flags['pages']}.")
  directory = pathlib.Path(flags["output"]).expanduser().absolute()
  results = pathlib.Path(flags["results"] or directory / "raw").expanduser().absolute()
  for path in (directory, results):
    with output.write_errors(path):
      path.mkdir(parents=True, exist_ok=True)
  return functools.partial(_make, chosen, directory, results, flags)


def _make(
  chosen: Sequence[tuple[figures.Figure, dict[str, Any]]],
  directory: pathlib.Path,
  results: pathlib.Path,
  flags: dict[str, Any],
) -> int:
  """Computes, judges and draws the figures one after another."""
  import jax  # Which takes a second.

  console = console_lib.Console(sys.stdout)
  workers = flags["workers"]
  if workers is None and jax.default_backend() != "cpu":
    workers = 1  # Other processes compute on the CPU.
  code, tables = 0, dict[str, str]()
  pages = None if flags["pages"] is None else pathlib.Path(flags["pages"])
  shown = "" if pages is None else "".join(_pages(pages).values())
  with signals.stop_on_signals() as stop:
    run = functools.partial(
      pool.compute, workers=workers, ray_address=flags["ray_address"], stop=stop
    )
    for figure, changes in chosen:
      complete = functools.partial(_complete, figure, results, run, console)
      quick = figure.quick if flags["quick"] else {}
      table = figure.stages({**quick, **changes}, complete)
      if stop():
        console_lib.print_error("stopped; run the same command again to resume.")
        return stop.exit_code
      if table is None:
        again = "run the same command again to compute the missing tasks"
        console_lib.print_error(f"{figure.name} is not drawn; {again}.")
        code = 1
        continue
      version = "_changed" if changes else "_quick" if flags["quick"] else ""
      for x in write_findings(figure, table, directory, version):
        console.line(f"  {judge.VERDICTS[x.held]} ({x.test}): {x.claim}: {x.measured}")
      drawing = f"{figure.file_name}{version}.png"
      if figure.panels and (pages is None or drawing in shown):
        _write(directory / drawing, draw.draw(figure.panels, table, figure.title))
        console.line(f"  drawn in {directory / drawing}\n")
      if figure.table is not None and not version:
        tables[figure.name] = figure.table(table)
  if pages is not None:
    fill_pages(pages, read_verdicts(directory), tables)
  return code


# -- results --------------------------------------------------------------------------


def _complete(
  figure: figures.Figure,
  results: pathlib.Path,
  run: Callable[[pool.Function, Sequence[pool.Task]], pool.Outcomes],
  console: console_lib.Console,
  tasks: Sequence[figures.Task],
) -> figures.Table | None:
  """The tasks' results, of which the missing ones are computed; None if some failed."""
  file = f"{figure.file_name}.npz"
  done = read_results(results / file)
  # The last ones, often of the largest size, start first: no processor is idle at the
  # end.
  missing = [x for x in reversed(tasks) if figures.key(x) not in done]
  console.line(
    f"{figure.name}: {figure.title}; {len(tasks)} tasks, {len(missing)} to compute"
  )
  outcomes = run(_timed, [pool.Task(figures.key(x), x) for x in missing])
  for count, (task, outcome) in enumerate(outcomes, start=1):
    if isinstance(outcome, pool.Failure):
      console_lib.print_error(f"{task.name} failed: {outcome.problem}.")
      continue
    done[task.name] = outcome
    write = functools.partial(write_results, [*done.values()])
    output.write_whole(results / file, write)
    console.line(f"  {count} of {len(missing)}: {task.name}")
  found = [done[key] for key in map(figures.key, tasks) if key in done]
  return figures.Table(found) if len(found) == len(tasks) else None


def _timed(task: figures.Task) -> figures.CompletedTask:
  start = time.monotonic()
  results = {name: np.asarray(x) for name, x in task.compute(task.settings).items()}
  seconds = time.monotonic() - start
  return figures.CompletedTask(task.settings, results, seconds, _versions())


_versions = functools.cache(versions.collect)


def write_results(tasks: Sequence[figures.CompletedTask], file: BinaryIO) -> None:
  """Writes results of tasks as one npz file.

  Arrays of equal names, types and shapes are stacked. `content` is JSON: `tasks`,
  each with its settings, its duration, the index of its `versions`, and the array and
  the index of each result. A file can be read without this project:

      arrays = dict(np.load("results/figures/tdu_scaling.npz"))
      content = json.loads(str(arrays["content"]))
      for task in content["tasks"]:
        for name, (array, i) in task["results"].items():
          print(task["settings"], name, arrays[array][i])
  """
  arrays: dict[str, list[np.ndarray]] = {}
  made: list[Any] = []
  content = []
  for task in tasks:
    if task.versions not in made:
      made.append(task.versions)
    places = {}
    for name, array in task.results.items():
      stack = f"{name} {array.dtype} {array.shape}"
      places[name] = stack, len(arrays.setdefault(stack, []))
      arrays[stack].append(array)
    content.append(
      {
        "settings": task.settings,
        "seconds": task.seconds,
        "versions": made.index(task.versions),
        "results": places,
      }
    )
  text = json.dumps({"tasks": content, "versions": made})
  stacked = {name: np.stack(each) for name, each in arrays.items()}
  np.savez_compressed(file, content=np.array(text), **stacked)


def read_results(path: pathlib.Path) -> dict[str, figures.CompletedTask]:
  """What `write_results` wrote, by the task's key; nothing if there is no file."""
  if not path.exists():
    return {}
  with np.load(path) as file:
    arrays = dict(file)
  content = json.loads(str(arrays.pop("content")))
  tasks = {}
  for task in content["tasks"]:
    results = {name: arrays[stack][i] for name, (stack, i) in task["results"].items()}
    made = content["versions"][task["versions"]]
    done = figures.CompletedTask(task["settings"], results, task["seconds"], made)
    tasks[figures.key(done)] = done
  return tasks


# -- findings -------------------------------------------------------------------------

_TABLE = "verdicts.csv"
COLUMNS = (
  *("figure", "claim", "verdict", "effect", "low", "high", "p", "seeds", "test"),
  *("robust", "measured"),
)


def write_findings(
  figure: figures.Figure, table: figures.Table, directory: pathlib.Path, version: str
) -> list[judge.Finding]:
  """Writes a figure's findings if it is not a quick or changed version."""
  findings = judge.judge(figure.claims, table, figure.problem)
  if version:
    return [dataclasses.replace(x, held=None) for x in findings]
  rows = [row for row in read_verdicts(directory) if row["figure"] != figure.name]
  rows += [row_of(figure.name, x) for x in findings]
  text = io.StringIO()
  writer = csv.DictWriter(text, COLUMNS, lineterminator="\n", restval="")
  writer.writeheader()
  writer.writerows(sorted(rows, key=lambda row: row["figure"]))
  _write(directory / _TABLE, text.getvalue().encode())
  return findings


def _write(path: pathlib.Path, content: bytes) -> None:
  output.write_whole(path, lambda file: file.write(content))


def row_of(figure: str, x: judge.Finding) -> dict[str, str]:
  """A row of the table of verdicts."""
  numbers = ["", "", ""]
  if x.effect is not None:
    unsigned = x.spec.removeprefix("+")
    specs = x.spec, unsigned, unsigned
    numbers = [f"{y:{spec}}" for y, spec in zip(x.effect, specs, strict=True)]
  p = "" if x.p is None else (f"{x.p:.2g}" if x.p > 1e-4 else "< 0.0001")
  robust = "" if x.robust is None else ("yes" if x.robust else "no")
  values = (figure, x.claim, judge.VERDICTS[x.held], *numbers, p, x.seeds, x.test)
  return dict(zip(COLUMNS, map(str, (*values, robust, x.measured)), strict=True))


def read_verdicts(directory: pathlib.Path) -> list[dict[str, str]]:
  """The rows of the table of verdicts."""
  path = directory / _TABLE
  if not path.exists():
    return []
  with open(path, encoding="utf-8", newline="") as file:
    return list(csv.DictReader(file))


# -- pages ----------------------------------------------------------------------------


def _pages(directory: pathlib.Path) -> dict[pathlib.Path, str]:
  """The Markdown pages below a directory."""
  return {x: x.read_text(encoding="utf-8") for x in sorted(directory.rglob("*.md"))}


def fill_pages(
  directory: pathlib.Path, rows: Sequence[Mapping[str, str]], tables: Mapping[str, str]
) -> None:
  """Writes the tables of the Markdown pages below a directory again.

  Args:
    directory: of the pages.
    rows: of the table of verdicts; a table of a figure without one is left as it is.
    tables: figure → its own table.
  """
  judged = {row["figure"] for row in rows}
  for path, text in _pages(directory).items():
    made = dict(tables)
    for name in markdown.names(text):
      chosen = name.split()[2:]
      if name.startswith("findings of ") and judged.issuperset(chosen):
        made[name] = _findings([x for y in chosen for x in rows if x["figure"] == y])
    if (filled := markdown.fill(text, made)) != text:
      path.write_text(filled, encoding="utf-8")


def _findings(rows: Sequence[Mapping[str, str]]) -> str:
  """A table of findings, with a row before those of each figure."""
  lines = ["| claim | verdict | effect | n | test |", "| --- | --- | --- | --- | --- |"]
  figure = ""
  for row in rows:
    if row["figure"] != figure:
      figure = row["figure"]
      lines.append(f"| **`{figure}`** | | | | |")
    verdict = row["verdict"] + (", not robust" if row["robust"] == "no" else "")
    effect = row["measured"]
    if row["effect"]:
      effect = f"{row['effect']} [{row['low']}, {row['high']}]"
    p = f"p {row['p']}" if row["p"].startswith("<") else f"p = {row['p']}"
    test = f"{row['test']}, {p}" if row["p"] else row["test"]
    cells = row["claim"], verdict, effect, row["seeds"], test
    lines.append("| " + " | ".join(x.replace("|", "\\|") for x in cells) + " |")
  return "\n".join(lines)


if __name__ == "__main__":
  sys.exit(main())
