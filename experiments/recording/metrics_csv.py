"""`metrics.csv` and `evaluation.csv`: one row per episode, on disk when it ends."""

import csv
import io
import itertools
import pathlib
import types
import zlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from explorax.experiments import errors, output

if TYPE_CHECKING:
  from explorax.experiments.runners import core

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

# The types of columns that do not hold integers.
_TYPES: Mapping[str, Any] = {
  "episode_return": float,
  "policy": str,
  "steps_per_second": float,
  "wall_seconds": float,
}


class MetricsCsv:
  """Appends episodes to a CSV file.

  The columns are `columns`, then the metrics. A metric that appears later (the
  learner's, when learning starts) becomes a new last column, empty in earlier rows.
  """

  def __init__(
    self,
    directory: output.RunDirectory,
    name: str = "metrics.csv",
    columns: tuple[str, ...] = EPISODE_COLUMNS,
    resumed: Mapping[str, Any] | None = None,
  ):
    """Creates the file, or resumes it.

    Args:
      directory: the run's directory.
      name: the file's name.
      columns: the first columns.
      resumed: what `save` returned; later rows and columns are removed. None creates
        the file.

    Raises:
      OutputError: if it cannot be written, or has lost rows.
    """
    self._directory = directory
    self._path = directory.path / name
    self._columns = columns
    self._metrics: list[str] = []
    self._num_rows = 0
    self._resumed_rows: list[list[str]] = []
    self._checksum = 0  # Of the file.
    if resumed is None:
      self._file = directory.append_to(name, 0)
      self._append([*columns])
      return
    self._num_rows, self._metrics = int(resumed["rows"]), list(resumed["metrics"])
    header = [*columns, *self._metrics]
    try:
      old_header, *rows = self._read()
    except (OSError, ValueError, csv.Error) as error:
      raise errors.OutputError(
        f"{self._path} cannot be read ({error}), so the run cannot resume."
      ) from error
    self._resumed_rows = [row[: len(header)] for row in rows[: self._num_rows]]
    problem = self._problem(old_header, header)
    content = b"".join(map(_line, [header, *self._resumed_rows]))
    if not problem and zlib.crc32(content) != resumed["checksum"]:
      problem = "its rows are other ones"
    if problem:
      raise errors.OutputError(
        f"{self._path} was changed since it was written ({problem}), so the run cannot "
        "resume; restore the file, or choose another --output."
      )
    self._rewrite([header, *self._resumed_rows])

  def write(self, episode: "core.Episode | core.EvaluationEpisode") -> None:
    """Appends an episode of a runner, with its columns and `metrics`."""
    if new := sorted(set(episode.metrics) - set(self._metrics)):
      header, *rows = self._read()
      self._file.close()
      self._rewrite([[*header, *new], *([*row, *[""] * len(new)] for row in rows)])
      self._metrics.extend(new)
    values = [getattr(episode, column) for column in self._columns]
    metrics = [episode.metrics.get(name) for name in self._metrics]
    values += ["" if metric is None else f"{metric:.9g}" for metric in metrics]
    self._append(values)
    self._num_rows += 1

  def save(self) -> dict[str, Any]:
    """The state for a checkpoint; syncs all rows to disk."""
    self._file.sync()
    return {
      "rows": self._num_rows,
      "metrics": list(self._metrics),
      "checksum": self._checksum,
    }

  def resumed_rows(self) -> Iterator[Any]:
    """The episodes of the kept rows, with columns as attributes."""
    names = [*self._columns, *self._metrics]
    for row in self._resumed_rows:
      yield _episode(names, row, self._columns)

  def close(self) -> None:
    self._file.close()

  def _problem(self, found: list[str], header: list[str]) -> str:
    """Describes a change in the header or in the kept rows; '' if there is none."""
    for was, name in itertools.zip_longest(header, found[: len(header)]):
      if was != name:
        return f"column {was!r} is {'missing' if name is None else repr(name)}"
    if len(self._resumed_rows) < self._num_rows:
      return f"{len(self._resumed_rows)} rows of at least {self._num_rows}"
    for i, row in enumerate(self._resumed_rows):
      line = i + 2
      if len(row) < len(header):
        return f"line {line} has {len(row)} cells of {len(header)}"
      for name, text in zip(header, row, strict=True):
        try:
          _parse(name, text, self._columns)
        except ValueError:
          return f"line {line} has {text!r} as its {name}"
    return ""

  def _read(self) -> list[list[str]]:
    return _cells(self._path)

  def _append(self, values: list[Any]) -> None:
    line = _line(values)
    self._file.append(line)
    self._checksum = zlib.crc32(line, self._checksum)

  def _rewrite(self, rows: list[list[str]]) -> None:
    """Replaces the file atomically."""
    content = b"".join(map(_line, rows))
    self._directory.write(self._path.name, lambda file: file.write(content))
    self._file = self._directory.append_to(self._path.name)
    self._checksum = zlib.crc32(content)


def read(
  path: pathlib.Path, columns: tuple[str, ...] = EPISODE_COLUMNS
) -> Iterator[Any]:
  """The episodes of a file that `MetricsCsv` wrote, as `resumed_rows` gives them."""
  names, *rows = _cells(path)
  for row in rows:
    yield _episode(names, row, columns)


def _cells(path: pathlib.Path) -> list[list[str]]:
  with open(path, newline="") as file:
    return list(csv.reader(file))


def _episode(names: list[str], row: list[str], columns: tuple[str, ...]) -> Any:
  """An episode of a row: its columns are attributes, the others are its metrics."""
  cells = zip(names, row, strict=True)
  values = {name: _parse(name, text, columns) for name, text in cells}
  fixed = {name: values.pop(name) for name in columns}
  metrics = {name: value for name, value in values.items() if value is not None}
  return types.SimpleNamespace(**fixed, metrics=metrics)


def _parse(name: str, text: str, columns: tuple[str, ...]) -> Any:
  """A cell's value; None for an empty cell of a metric."""
  if name in columns:
    return _TYPES.get(name, int)(text)
  return float(text) if text else None


def _line(values: list[Any]) -> bytes:
  text = io.StringIO()
  csv.writer(text, lineterminator="\n").writerow(values)
  return text.getvalue().encode()
