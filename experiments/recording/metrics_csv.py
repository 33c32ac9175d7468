"""`metrics.csv` and `evaluation.csv`: one row per episode, on disk when it ends."""

import csv
import io
import pathlib
import types
from collections.abc import Iterable, Iterator, Mapping
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
    saved: Mapping[str, Any] | None = None,
  ):
    """Creates the file, or resumes it.

    Args:
      directory: the run's directory.
      name: the file's name.
      columns: the first columns.
      saved: what `save` returned; later rows and columns are cut. None creates the
        file.

    Raises:
      OutputError: if it cannot be read or written, or has lost rows or columns.
    """
    self._directory = directory
    self._path = directory.path / name
    self._columns = columns
    self._metrics: list[str] = [] if saved is None else list(saved["metrics"])
    self._num_rows: int = 0 if saved is None else saved["rows"]
    self._rewrite(self._kept() if saved else [[*columns]])

  def write(self, episode: "core.Episode | core.EvaluationEpisode") -> None:
    """Appends an episode of a runner, with its columns and `metrics`."""
    if new := sorted(set(episode.metrics) - set(self._metrics)):
      header, *rows = _cells(self._path)
      self._file.close()
      self._rewrite([[*header, *new], *([*row, *[""] * len(new)] for row in rows)])
      self._metrics.extend(new)
    values = [getattr(episode, column) for column in self._columns]
    metrics = [episode.metrics.get(name) for name in self._metrics]
    values += ["" if metric is None else f"{metric:.9g}" for metric in metrics]
    self._file.append(_line(values))
    self._num_rows += 1

  def save(self) -> dict[str, Any]:
    """The state for a checkpoint; syncs all rows to disk."""
    self._file.sync()
    return {"rows": self._num_rows, "metrics": list(self._metrics)}

  def episodes(self) -> Iterator[Any]:
    """The episodes in the file, as `read` returns them."""
    return read(self._path, self._columns)

  def close(self) -> None:
    self._file.close()

  def _kept(self) -> list[list[str]]:
    """The header and the rows that the file had at the checkpoint."""
    header = [*self._columns, *self._metrics]
    try:
      rows = [row[: len(header)] for row in _cells(self._path)[: self._num_rows + 1]]
      if rows[:1] != [header] or len(rows) <= self._num_rows:
        raise ValueError(
          f"it does not have the {len(header)} columns and {self._num_rows} rows that "
          "it had at the checkpoint"
        )
      for _ in _episodes(rows, self._columns):
        pass  # A cell that is not a number raises a ValueError.
    except (OSError, ValueError, csv.Error) as error:
      raise errors.OutputError(
        f"{self._path} cannot be read ({error}), so the run cannot resume; restore the "
        "file, or choose another --output."
      ) from error
    return rows

  def _rewrite(self, rows: Iterable[list[str]]) -> None:
    """Replaces the file atomically."""
    content = b"".join(map(_line, rows))
    self._directory.write(self._path.name, lambda file: file.write(content))
    self._file = self._directory.append_to(self._path.name)


def read(
  path: pathlib.Path, columns: tuple[str, ...] = EPISODE_COLUMNS
) -> Iterator[Any]:
  """The episodes of a file: its columns are attributes, the others are `metrics`.

  Raises:
    ValueError: if a cell cannot be read.
  """
  return _episodes(_cells(path), columns)


def _episodes(rows: list[list[str]], columns: tuple[str, ...]) -> Iterator[Any]:
  names, *rows = rows
  for row in rows:
    cells = zip(names, row, strict=True)
    values = {name: _parse(name, text, columns) for name, text in cells}
    fixed = {name: values.pop(name) for name in columns}
    metrics = {name: value for name, value in values.items() if value is not None}
    yield types.SimpleNamespace(**fixed, metrics=metrics)


def _cells(path: pathlib.Path) -> list[list[str]]:
  with open(path, newline="") as file:
    return list(csv.reader(file))


def _parse(name: str, text: str, columns: tuple[str, ...]) -> Any:
  """A cell's value; None for an empty cell of a metric."""
  if name in columns:
    return _TYPES.get(name, int)(text)
  return float(text) if text else None


def _line(values: Iterable[Any]) -> bytes:
  text = io.StringIO()
  csv.writer(text, lineterminator="\n").writerow(values)
  return text.getvalue().encode()
