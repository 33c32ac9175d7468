"""`metrics.csv`: one row per episode, each on disk as soon as the episode has ended."""

import csv
import io
from typing import TYPE_CHECKING, Any

from explorax.experiments import output

if TYPE_CHECKING:
  from explorax.experiments.runners import local

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


class MetricsCsv:
  """Appends episodes to a CSV file.

  The columns are `EPISODE_COLUMNS`, then the metrics in alphabetical order. A metric
  that turns up later (the learner's, once learning has begun) becomes a column
  after all those before it, empty in the rows above: columns never move.
  """

  NAME = "metrics.csv"

  def __init__(self, directory: output.RunDirectory):
    self._directory = directory
    self._metrics: list[str] = []
    self._file = directory.append_to(self.NAME)
    self._file.append(_line([*EPISODE_COLUMNS]))

  def write(self, episode: "local.Episode") -> None:
    """Appends one `Episode` of a runner."""
    new = sorted(set(episode.metrics) - set(self._metrics))
    if new:
      self._widen(new)
    row = [getattr(episode, column) for column in EPISODE_COLUMNS]
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
    self._directory.write(self.NAME, lambda file: file.write(content))
    self._file.close()
    self._file = self._directory.append_to(self.NAME)
    self._metrics.extend(names)


def _line(values: list[Any]) -> bytes:
  text = io.StringIO()
  csv.writer(text, lineterminator="\n").writerow(values)
  return text.getvalue().encode()
