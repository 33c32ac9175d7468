"""The CSV files of a run: one row per episode, or per row of the log.

`metrics.csv` and `evaluation.csv` get a row when an episode ends, and `learner.csv`
every `--log_every` environment steps.
"""

import csv
import io
import pathlib
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from explorax.experiments import errors, output

if TYPE_CHECKING:
  from explorax.experiments.runners import common

EPISODE_COLUMNS = (
  "episode",
  "env_steps",
  "episode_return",
  "episode_length",
  "policy",
  "learner_updates",
  "steps_per_second",
  "wall_seconds",
)
EVALUATION_COLUMNS = ("env_steps", "episode", "episode_return", "episode_length")
LEARNER_COLUMNS = ("env_steps", "learner_updates", "steps_per_second", "wall_seconds")

# The types of columns that do not hold integers.
_TYPES: Mapping[str, Any] = {
  "episode_return": float,
  "policy": str,
  "steps_per_second": float,
  "wall_seconds": float,
}


class MetricsCsv:
  """Appends episodes, or rows of the log, to a CSV file.

  The columns are `columns`, then the metrics. A metric that appears later (the
  learner's, when learning starts) becomes a new last column, empty in earlier rows.

  Attributes:
    num_rows: number of rows in the file, without the header.
  """

  def __init__(
    self,
    directory: output.RunDirectory,
    name: str = "metrics.csv",
    columns: Sequence[str] = EPISODE_COLUMNS,
    num_rows: int = 0,
  ):
    """Creates the file, or resumes it.

    Args:
      directory: the run's directory.
      name: the file's name.
      columns: the first columns.
      num_rows: of the file that is resumed; later rows are cut. 0 creates the file.

    Raises:
      OutputError: if it cannot be read or written, or has lost rows.
    """
    self.num_rows = num_rows
    self._directory = directory
    self._path = directory.path / name
    self._columns = columns
    if not num_rows:
      self._rewrite(columns, [])
      return
    try:
      header, *rows = _cells(self._path)
      del rows[num_rows:]
      if len(rows) < num_rows:
        raise ValueError(f"{num_rows} rows were written, and {len(rows)} are left")
      list(_parsed(header, rows, columns))  # Raises a ValueError for a bad cell.
    except (OSError, ValueError, KeyError, csv.Error) as error:
      raise errors.OutputError(
        f"{self._path} cannot be read ({error}), so the run cannot resume; restore the "
        "file, or choose another --output."
      ) from error
    self._rewrite(header, rows)

  def write(
    self, row: "common.Episode | common.EvaluationEpisode | common.LogRow"
  ) -> None:
    """Appends a row of a runner, with its columns and `metrics`."""
    if new := sorted(set(row.metrics) - set(self._header)):
      _, *rows = _cells(self._path)
      self._file.close()
      self._rewrite([*self._header, *new], [[*x, *[""] * len(new)] for x in rows])
    cells = {name: f"{value:.9g}" for name, value in row.metrics.items()}
    cells |= {name: getattr(row, name) for name in self._columns}
    self._file.append(_line([cells.get(name, "") for name in self._header]))
    self.num_rows += 1

  def sync(self) -> None:
    """Waits until the rows would survive a crash of the machine."""
    self._file.sync()

  def rows(self) -> Iterator[Any]:
    """The rows in the file, as `read` returns them."""
    return read(self._path, self._columns)

  def close(self) -> None:
    self._file.close()

  def _rewrite(self, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Replaces the file atomically."""
    self._header = header
    content = b"".join(map(_line, [header, *rows]))
    self._directory.write(self._path.name, lambda file: file.write(content))
    self._file = output.AppendOnlyFile(self._path)


def read(path: pathlib.Path, columns: Sequence[str] = EPISODE_COLUMNS) -> Iterator[Any]:
  """The rows of a file: its columns are attributes, the others are `metrics`.

  Raises:
    ValueError: if a cell cannot be read.
  """
  header, *rows = _cells(path)
  return _parsed(header, rows, columns)


def _parsed(
  header: Sequence[str], rows: Iterable[Sequence[str]], columns: Sequence[str]
) -> Iterator[Any]:
  for row in rows:
    cells = dict(zip(header, row, strict=True))
    fixed = {name: _TYPES.get(name, int)(cells.pop(name)) for name in columns}
    metrics = {name: float(text) for name, text in cells.items() if text}
    yield types.SimpleNamespace(**fixed, metrics=metrics)


def _cells(path: pathlib.Path) -> list[list[str]]:
  with open(path, newline="") as file:
    return list(csv.reader(file))


def _line(values: Iterable[Any]) -> bytes:
  text = io.StringIO()
  csv.writer(text, lineterminator="\n").writerow(values)
  return text.getvalue().encode()
