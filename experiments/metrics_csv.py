"""`metrics.csv` and `evaluation.csv`: a row per episode, on disk when it has ended."""

import csv
import io
from typing import TYPE_CHECKING, Any

from explorax.experiments import output

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
  ):
    self._directory = directory
    self._name = name
    self._columns = columns
    self._metrics: list[str] = []
    self._file = directory.append_to(name)
    self._file.append(_line([*columns]))

  def write(self, episode: "local.Episode | evaluation.EvaluationEpisode") -> None:
    """Appends one episode of a runner, which has these columns and `metrics`."""
    new = sorted(set(episode.metrics) - set(self._metrics))
    if new:
      self._widen(new)
    row = [getattr(episode, column) for column in self._columns]
    metrics = [episode.metrics.get(name) for name in self._metrics]
    self._file.append(
      _line([*row, *("" if m is None else f"{m:.9g}" for m in metrics)])
    )

  def close(self) -> None:
    self._file.close()

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
