"""The CSV files of a run: rows of episodes, of evaluation episodes, and of the log."""

import csv
import functools
import io
import itertools
import os
import pathlib
from collections.abc import Collection, Mapping, Sequence, Set
from typing import Any

import numpy as np

from explorax.experiments import output
from explorax.experiments.recording import console

METRICS, EVALUATION, LEARNER = "metrics.csv", "evaluation.csv", "learner.csv"
# File → its first columns; the metrics of its rows come after them.
COLUMNS: Mapping[str, Sequence[str]] = {
  METRICS: (
    "episode",
    "env_steps",
    "episode_return",
    "episode_length",
    "policy",
    "learner_updates",
    "steps_per_second",
    "wall_seconds",
  ),
  EVALUATION: ("env_steps", "episode", "episode_return", "episode_length"),
  LEARNER: ("env_steps", "learner_updates", "steps_per_second", "wall_seconds"),
}
_TEXTS = ("policy",)
_INTEGERS = ("episode", "env_steps", "episode_length", "learner_updates")
_EXACT = {*_TEXTS, *_INTEGERS, "episode_return"}  # The others have nine digits.

Rows = Mapping[str, np.ndarray]  # Column → values `[N]`.


class CsvFile:
  """Appends rows of a runner to a file, all of a call at once.

  The first row determines the columns: those of `COLUMNS`, its metrics, and those that
  later rows may have, as the learner's after its first update. Missing cells are empty.

  Attributes:
    path: of the file.
  """

  def __init__(
    self,
    path: pathlib.Path,
    later_metrics: Collection[str] = (),
    last_step: int | None = None,
  ):
    """Creates the file, or resumes it.

    Args:
      path: named as in `COLUMNS`.
      later_metrics: names of metrics that the first row may lack.
      last_step: of the rows to keep, in environment steps; later ones are cut. None
        creates the file.

    Raises:
      OutputError: if the file cannot be written.
    """
    self.path, self._first = path, COLUMNS[path.name]
    self._later = {*later_metrics} - {*self._first}
    self._header: list[str] = []
    is_new = last_step is None or not path.exists()
    with output.write_errors(path):
      if last_step is not None and not is_new:
        self._header = _cut(path, last_step)
      mode = "w" if is_new else "a"
      self._file = open(path, mode, newline="", encoding="utf-8")  # noqa: SIM115
    self._known = {*self._header}  # Metrics with a column, or with a warning.

  def __call__(self, *rows: Any) -> None:
    """Appends rows of a runner; warns of a metric without a column, and omits it."""
    with output.write_errors(self.path):
      for names, alike in itertools.groupby(rows, lambda row: row.metrics.keys()):
        self._write(names, [*alike])
      self._file.flush()  # They are in the file, even if the process is killed.

  def _write(self, names: Set[str], rows: Sequence[Any]) -> None:
    """Writes rows that have these metrics: thousands a second, and many cells alike."""
    if not self._header:
      self._write_header(names)
    if new := names - self._known:
      self._known |= new
      console.print_error(
        f"{self.path.name} has no column for {', '.join(sorted(new))}, which was not "
        "in its first row; report every metric from the first episode on."
      )
    columns: Any = {x: [row.metrics[x] for row in rows] for x in names}
    columns |= zip(self._first, zip(*rows))  # noqa: B905
    columns |= {x: [*map(_quoted, columns[x])] for x in _TEXTS if x in self._first}
    cells, different = list[str](), list[Sequence[Any]]()
    for name in self._header:
      values = columns.get(name, [""])
      cell = "%s" if name in _EXACT or name not in columns else "%.9g"
      if cells and values.count(values[0]) == len(values):  # Formatted once.
        cell = (cell % values[0]).replace("%", "%%")
      else:
        different.append(values)
      cells.append(cell)
    line = ",".join(cells) + "\n"
    self._file.writelines(line % x for x in zip(*different, strict=True))

  def close(self) -> None:
    """Closes the file, which has a header even if it has no row."""
    with output.write_errors(self.path):
      if not self._header:
        self._write_header(())
      self._file.close()

  def _write_header(self, metrics: Collection[str]) -> None:
    """Writes the header."""
    first = sorted(set(metrics) - self._later - {*self._first})
    self._header = [*self._first, *first, *sorted(self._later)]
    self._known |= {*self._header}
    self._file.write(",".join(map(_quoted, self._header)) + "\n")


@functools.lru_cache
def _quoted(text: str) -> str:
  """The text as a cell: in quotation marks if it has a comma or the like."""
  csv.writer(cell := io.StringIO(), lineterminator="").writerow([text])
  return cell.getvalue()


def _cut(path: pathlib.Path, last_step: int) -> list[str]:
  """Cuts the rows after an environment step; returns the header, if there is one.

  A row that a full disk has left incomplete is cut as well, and so is the header if no
  row is left: the next one determines it.
  """
  column = COLUMNS[path.name].index("env_steps")  # No text is before it.
  with open(path, "rb") as file:
    header = file.readline()
    size = len(header)
    for line in file:
      if not line.endswith(b"\n") or int(line.split(b",")[column]) > last_step:
        break
      size += len(line)
  if size == len(header):
    header, size = b"", 0
  os.truncate(path, size)
  return next(csv.reader([header.decode()]), [])


def read(path: pathlib.Path) -> dict[str, np.ndarray]:
  """The columns of a file: policies are texts, and empty cells of metrics are NaN.

  Raises:
    ValueError: if a cell cannot be read.
  """
  complete, _, _ = path.read_text(encoding="utf-8").rpartition("\n")  # Of whole rows.
  lines = list(csv.reader(complete.splitlines()))
  if not lines:
    return empty(path.name)
  header, *rows = lines
  columns: Sequence[Sequence[str]] = [*zip(*rows, strict=True)] or [()] * len(header)
  return {x: _column(x, cells) for x, cells in zip(header, columns, strict=True)}


def empty(name: str) -> dict[str, np.ndarray]:
  """The columns of a file without rows."""
  return {column: _column(column, ()) for column in COLUMNS[name]}


def _column(name: str, cells: Sequence[str]) -> np.ndarray:
  if name in _TEXTS:
    return np.array(cells, np.str_)
  if name in _INTEGERS:
    return np.array([int(cell) for cell in cells], np.int64)
  return np.array([float(cell or "nan") for cell in cells], np.float64)
