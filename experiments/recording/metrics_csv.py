"""`metrics.csv` and `evaluation.csv`: a row per episode, on disk when it has ended."""

import csv
import io
import types
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from explorax.experiments import errors, output

if TYPE_CHECKING:
  from explorax.experiments.runners import evaluation, local

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

# Of columns that do not hold whole numbers.
_TYPES: Mapping[str, Any] = {
  "episode_return": float,
  "policy": str,
  "steps_per_second": float,
  "wall_seconds": float,
}


class MetricsCsv:
  """Appends episodes to a CSV file.

  The columns are those it is made with, then the metrics in alphabetical order. A
  metric that turns up later (the learner's, once learning has begun) becomes a column
  after all those before it, empty in the rows above: columns never move.
  """

  def __init__(
    self,
    directory: output.RunDirectory,
    name: str = "metrics.csv",
    columns: tuple[str, ...] = EPISODE_COLUMNS,
    resumed: Mapping[str, Any] | None = None,
  ):
    """Begins the file, or goes on with it.

    Args:
      directory: of the run.
      name: of the file.
      columns: the first ones.
      resumed: what `save` returned; None to begin. What was written after it is cut
        off: rows, and columns that there were none of yet.

    Raises:
      OutputError: if it cannot be written, or has fewer rows than it had.
    """
    self._directory = directory
    self._name = name
    self._columns = columns
    self._metrics: list[str] = []
    self._num_rows = 0
    self._resumed_rows: list[list[str]] = []
    if resumed is not None:
      self._cut(int(resumed["rows"]), list(resumed["metrics"]))
    self._file = directory.append_to(name, None if resumed else 0)
    if resumed is None:
      self._file.append(_line([*columns]))

  def write(self, episode: "local.Episode | evaluation.EvaluationEpisode") -> None:
    """Appends one episode of a runner, which has these columns and `metrics`."""
    new = sorted(set(episode.metrics) - set(self._metrics))
    if new:
      self._widen(new)
    row = [getattr(episode, column) for column in self._columns]
    self._num_rows += 1
    metrics = [episode.metrics.get(name) for name in self._metrics]
    self._file.append(
      _line([*row, *("" if m is None else f"{m:.9g}" for m in metrics)])
    )

  def save(self) -> dict[str, Any]:
    """What goes into a checkpoint; the rows so far are on disk when it returns."""
    self._file.sync()
    return {"rows": self._num_rows, "metrics": list(self._metrics)}

  def resumed_rows(self) -> Iterator[Any]:
    """The episodes of the rows that were kept, their columns as attributes."""
    for row in self._resumed_rows:
      values = dict(zip(self._columns, row, strict=False))
      metrics = dict(zip(self._metrics, row[len(self._columns) :], strict=True))
      yield types.SimpleNamespace(
        **{name: _TYPES.get(name, int)(text) for name, text in values.items()},
        metrics={name: float(text) for name, text in metrics.items() if text},
      )

  def close(self) -> None:
    self._file.close()

  def _cut(self, num_rows: int, metrics: list[str]) -> None:
    """Cuts off what is not to be kept; the file is whole at every moment."""
    path = self._directory.path / self._name
    width = len(self._columns) + len(metrics)
    try:
      with open(path, newline="") as file:
        header, *rows = csv.reader(file)
    except (OSError, ValueError) as error:
      raise errors.OutputError(
        f"{path} cannot be read ({error}), so the run cannot go on."
      ) from error
    if header[:width] != [*self._columns, *metrics] or len(rows) < num_rows:
      raise errors.OutputError(
        f"{path} has {len(rows)} rows, and at the checkpoint it had {num_rows}; the "
        "run cannot go on: choose another --output."
      )
    self._resumed_rows = [row[:width] for row in rows[:num_rows]]
    kept = [header[:width], *self._resumed_rows]
    content = b"".join(map(_line, kept))
    self._directory.write(self._name, lambda file: file.write(content))
    self._num_rows, self._metrics = num_rows, metrics

  def _widen(self, names: list[str]) -> None:
    """Rewrites the file with columns for `names`; it is whole at every moment."""
    with open(self._file.path, newline="") as file:
      rows = list(csv.reader(file))
    widened = [[*rows[0], *names], *([*row, *[""] * len(names)] for row in rows[1:])]
    content = b"".join(map(_line, widened))
    self._directory.write(self._name, lambda file: file.write(content))
    self._file.close()
    self._file = self._directory.append_to(self._name)
    self._metrics.extend(names)


def _line(values: list[Any]) -> bytes:
  text = io.StringIO()
  csv.writer(text, lineterminator="\n").writerow(values)
  return text.getvalue().encode()
