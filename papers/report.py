"""A figure's files: its drawing, its findings, and a page of all figures.

    ez_fig3.png   the drawing
    ez_fig3.json  the findings, and everything needed to repeat them
    figures.md    all claims in one table, and all figures, each with its findings
    raw/          the results of its tasks (`store.py`)

The names of a quick version end in `_quick`; those of a figure with changed settings
end in a hash of them.
"""

import collections
import dataclasses
import functools
import hashlib
import json
import pathlib
import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from explorax.experiments import output, pool, versions
from explorax.experiments import settings as settings_lib
from explorax.experiments.recording import console as console_lib
from explorax.experiments.recording import drawing, summary
from explorax.papers import claims, panels, registry, store, types

Compute = Callable[[pool.Function, Sequence[pool.Task]], pool.Outcomes]

_PAGE = "figures.md"
_INTRODUCTION = """\
# Figures

Below each figure are its claims, the command that makes it, the time of its runs,
summed over all processes, and the commits that made them (+: with changes that were not
committed; none: of a copy without git). The command draws from the raw results and
computes nothing again; each of their files also has the versions of the packages that
computed it.

## Rules of the verdicts

A claim *held* if its test has p < 0.05 (two-sided) and the difference is on the claim's
side of 0, and *did not hold* if it is on the other side. Otherwise it is *undecided*:
a test of two groups then says which difference it would have detected with a
probability of 0.8. Claims with fewer than three seeds are undecided, but for those of
formulas and of published tables, and so are those of smoke versions. The test follows
from the data:

| data | test |
| --- | --- |
| runs that share a seed's world, a size or a game | paired t-test |
| other groups of seeds | Welch's t-test, with all seeds there are |
| solved or not | Fisher's exact test; of pairs: the sign test |
| over games, of which a few dominate | Wilcoxon's signed-rank test |
| episodes to solve, some up to the limit | log-rank test, stratified by problem |
| numbers that an exact statement is about | none: all of them are checked |

Beside a test is the mean difference or ratio with its 95 % interval; beside the
log-rank test, the means restricted to the limit. Several tests of one claim are
corrected by Holm's method; intervals and detectable differences are not. Where a
verdict becomes undecided without one seed, or without one game, size or task, with the
same correction, it says so.

## All claims"""


@dataclasses.dataclass(frozen=True)
class FigureRequest:
  """A requested figure.

  Attributes:
    figure: the figure.
    config: its settings.
    quick: whether it is the quick version, which cannot decide the claims.
    command: the command that makes it.
  """

  figure: types.Figure
  config: Any
  quick: bool
  command: str

  def make(
    self,
    compute: Compute,
    directory: output.RunDirectory,
    console: console_lib.Console,
  ) -> bool:
    """Computes the missing tasks, draws the figure and prints its findings.

    Args:
      compute: `pool.compute` on the workers of the command.
      directory: of all figures.
      console: for progress and results.

    Returns:
      Whether it was drawn: False if a task failed, or a signal has stopped it.

    Raises:
      OutputError: if something cannot be written.
    """
    figure = self.figure
    results = store.Store(directory, f"raw/{figure.file_name}")

    def computed(tasks: Sequence[types.Task]) -> types.Table | None:
      console.line(
        f"{figure.name}: {figure.title}; {summary.count(len(tasks), 'task')}"
      )
      # Long tasks start first, so that no processor is idle at the end.
      order = sorted(tasks, key=lambda task: -task.weight)
      missing = [task for task in order if results.read(task) is None]
      _compute(figure, missing, results, compute, console)
      done = [found for task in tasks if (found := results.read(task)) is not None]
      return types.Table(done) if len(done) == len(tasks) else None

    table = computed(figure.tasks(self.config))
    if table is not None and figure.then is not None:
      further = computed(figure.then(self.config, table))
      table = None if further is None else types.Table([*table, *further])
    if table is None:
      return False
    findings = figure.judge(self.config, table)
    least = min(claims.LEAST_SEEDS, figure.config.num_seeds)
    if self.quick or self.config.num_seeds < least:
      findings = [finding._replace(held=None) for finding in findings]
    self._draw(table, findings, directory)
    for f in findings:
      console.line(f"  {f.verdict} ({f.test}): {f.claim}: {f.measured}")
    console.line(f"  drawn in {directory.path / self._file_name()}.png\n")
    return True

  def _draw(
    self,
    table: types.Table,
    findings: Sequence[types.Finding],
    directory: output.RunDirectory,
  ) -> None:
    """Writes the drawing, the findings, and the page of all figures."""
    figure, seconds = self.figure, sum(task.seconds for task in table)
    fig = panels.draw(figure.panels(self.config), table, figure.height, figure.title)
    directory.write(
      f"{self._file_name()}.png",
      lambda file: drawing.save(file, fig),
    )
    directory.write_json(
      f"{self._file_name()}.json",
      {
        "figure": figure.name,
        "title": figure.title,
        "source": figure.source,
        "claim": figure.claim,
        "caption": figure.caption,
        **({} if figure.text is None else {"text": figure.text(self.config, table)}),
        "findings": [_recorded(f) for f in findings],
        "command": self.command,
        "config": settings_lib.to_json(self.config),
        "quick": self.quick,
        "process_seconds": seconds,
        "machine": _machines(table),
        "commits": _commits(table),
        "raw": f"raw/{figure.file_name}",
      },
    )
    write_page(directory)

  def _file_name(self) -> str:
    """The name of the figure's files, without the extension."""
    name = self.figure.file_name
    if self.config == self.figure.config:
      return name
    if self.config == self.figure.quick:
      return f"{name}_quick"
    text = json.dumps(settings_lib.to_json(self.config), sort_keys=True)
    return f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:6]}"


def _compute(
  figure: types.Figure,
  tasks: Sequence[types.Task],
  results: store.Store,
  compute: Compute,
  console: console_lib.Console,
) -> None:
  """Computes tasks, and saves their results, or why they failed."""
  by_name = {task.name: task for task in tasks}
  function = functools.partial(_timed, figure.compute)
  failed = 0
  outcomes = compute(function, [pool.Task(x.name, x) for x in tasks])
  for done, (named, outcome) in enumerate(outcomes, start=1):
    if isinstance(outcome, pool.Failure):
      failed += 1
      results.write_failure(by_name[named.name], outcome.details or outcome.problem)
      console_lib.print_error(f"{named.name} failed: {outcome.problem}.")
    else:
      results.write(by_name[named.name], outcome)
      console.line(f"  {done} of {len(tasks)}: {named.name}")
  if failed:
    console_lib.print_error(
      f"{figure.name} is not drawn: {failed} of {len(tasks)} tasks failed; run the "
      "same command again to compute the missing ones."
    )


def _timed(
  compute: Callable[[types.Settings], types.Results], task: types.Task
) -> types.CompletedTask:
  start = time.monotonic()
  results = compute(task.settings)
  seconds = time.monotonic() - start
  found = _versions()
  return types.CompletedTask(task.name, task.settings, results, seconds, found)


@functools.cache
def _versions() -> dict[str, Any]:
  return versions.collect()


def _recorded(finding: types.Finding) -> dict[str, Any]:
  """The fields of a finding and its verdict; the limits are in what was measured."""
  fields = {**finding._asdict(), "verdict": finding.verdict}
  return {x: y for x, y in fields.items() if x not in ("detectable", "left_out")}


def _machines(table: types.Table) -> str:
  """What computed the tasks: the number of CPU cores, or the accelerator."""
  found: set[str] = set()
  for task in table:
    devices = {d for d in task.versions["jax_devices"] if not d.startswith("cpu:")}
    found |= devices or {f"{task.versions['cpus']} CPU cores"}
  return ", ".join(sorted(found))


def _commits(table: types.Table) -> list[str]:
  """Abbreviated; of tasks that a copy without git computed, their number."""
  found = [commit for task in table if (commit := task.versions["git_commit"])]
  each = sorted({commit[:7] + "+" * commit.endswith("+") for commit in found})
  others = len(table) - len(found)
  return [*each, *[f"none ({summary.count(others, 'task')})"] * bool(others)]


def write_page(directory: output.RunDirectory) -> None:
  """Writes the page of all figures in the directory.

  Raises:
    OutputError: if it cannot be written.
  """
  text = page(directory.path)
  directory.write(_PAGE, lambda file: file.write(text.encode()))


def page(directory: pathlib.Path) -> str:
  """A page of all figures in the directory, including those of earlier calls.

  Files that cannot be read are listed and do not affect the others.
  """
  rows: list[tuple[str, str, str]] = []
  sections = []
  for figure in registry.FIGURES.values():
    name = figure.file_name
    own = [directory / f"{name}.json", directory / f"{name}_quick.json"]
    for path in [*own, *sorted(directory.glob(f"{name}-*.json"))]:
      try:
        record = json.loads(path.read_text(encoding="utf-8"))
        section, of_figure = _section(path, record), _claims(record)
      except FileNotFoundError:
        continue
      except (OSError, ValueError, KeyError, TypeError):
        section, of_figure = f"## {path.name}\n\nThis file cannot be read.", []
      sections.append(section)
      rows += of_figure
  return "\n\n".join([_INTRODUCTION, *_counts(rows), *sections]) + "\n"


def _counts(rows: Sequence[tuple[str, str, str]]) -> list[str]:
  """The number of claims with each verdict, by kind and by figure."""
  verdicts = tuple(types.VERDICTS.values())

  def table(names: tuple[str, ...], by: int, heads: Mapping[str, Sequence[str]]) -> str:
    counts = collections.Counter((row[by], row[2]) for row in rows)
    return _table(
      (*names, *verdicts),
      [
        (*head, *(str(counts[one, verdict]) for verdict in verdicts))
        for one, head in heads.items()
        if any(row[by] == one for row in rows)
      ],
    )

  kinds = {str(kind): (kind, words) for kind, words in types.KINDS.items()}
  figures = {figure: (figure,) for figure, _, _ in rows}
  return [
    table(("kind", "claims that are"), 1, kinds),
    table(("figure",), 0, figures),
  ]


def _heading(record: Mapping[str, Any]) -> str:
  return f"{record['figure']}: {record['title']}"


def _claims(record: Mapping[str, Any]) -> list[tuple[str, str, str]]:
  """Figure, kind and verdict of each claim."""
  # The anchor that Markdown renderers make from the heading.
  anchor = re.sub(r"[^\w -]", "", _heading(record).lower()).replace(" ", "-")
  figure = f"[{record['figure']}](#{anchor})"
  return [(figure, found["kind"], found["verdict"]) for found in record["findings"]]


def _table(names: Sequence[str], rows: Sequence[tuple[str, ...]]) -> str:
  every = [names, ("---",) * len(names), *rows]
  return "\n".join(f"| {' | '.join(map(_cell, row))} |" for row in every)


def _section(path: pathlib.Path, record: Mapping[str, Any]) -> str:
  found = [
    (
      *(one[key] for key in ("verdict", "kind", "claim", "measured")),
      f"{one['test']}; {summary.count(one['num_seeds'], 'seed')}",
    )
    for one in record["findings"]
  ]
  origin = f"{summary.duration(record['process_seconds'])} on {record['machine']}"
  if record["commits"]:
    origin += f", commit {', '.join(record['commits'])}"
  return "\n\n".join(
    [
      f"## {_heading(record)}",
      f"{record['source']}. Claim: {record['claim']}",
      f"![{record['title']}]({path.stem}.png)",
      record["caption"],
      *([record["text"]] if "text" in record else []),
      _table(("", "kind", "claim", "measured", "test"), found),
      f"`{record['command']}`: {origin}; raw results in `{record['raw']}`.",
    ]
  )


def _cell(text: str) -> str:
  return text.replace("|", "\\|").replace("\n", " ")
