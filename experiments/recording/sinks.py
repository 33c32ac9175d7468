"""Where the records of a seed go: CSV files, TensorBoard and loggers."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from explorax.experiments import config, output
from explorax.experiments.recording import events, loggers, metrics_csv

if TYPE_CHECKING:
  from explorax.experiments.runners import core

Saved = Mapping[str, Any]


class Sink(Protocol):
  """Receives the records of one seed; an OutputError of any method ends the run."""

  def on_episode(self, episode: "core.Episode") -> None:
    """A training episode has ended."""

  def on_evaluation(self, evaluation: "core.Evaluation") -> None:
    """An evaluation has ended."""

  def save(self) -> Saved:
    """The state for a checkpoint, in JSON's types; syncs all records to disk."""

  def close(self) -> None:
    """The run has ended."""


class CsvFiles:
  """Writes `metrics.csv` and, if the run evaluates, `evaluation.csv`.

  Attributes:
    training: the file of training episodes.
    evaluation: the file of evaluation episodes, or None.
  """

  def __init__(
    self, directory: output.RunDirectory, *, evaluates: bool, saved: Saved | None
  ):
    self.training = metrics_csv.MetricsCsv(directory, saved=saved and saved["training"])
    self.evaluation: metrics_csv.MetricsCsv | None = None
    if evaluates:
      name, columns = "evaluation.csv", metrics_csv.EVALUATION_COLUMNS
      self.evaluation = metrics_csv.MetricsCsv(
        directory, name, columns, saved and saved["evaluation"]
      )

  def on_episode(self, episode: "core.Episode") -> None:
    self.training.write(episode)

  def on_evaluation(self, evaluation: "core.Evaluation") -> None:
    if self.evaluation is not None:
      for episode in evaluation.episodes:
        self.evaluation.write(episode)

  def save(self) -> Saved:
    saved = {"training": self.training.save()}
    if self.evaluation is not None:
      saved["evaluation"] = self.evaluation.save()
    return saved

  def close(self) -> None:
    self.training.close()
    if self.evaluation is not None:
      self.evaluation.close()


class Scalars:
  """Gives the scalars of episodes and evaluations to TensorBoard or a logger."""

  def __init__(
    self,
    log: Callable[[Mapping[str, float], int], None],
    close: Callable[[], None],
    save: Callable[[], Saved] = dict,
  ):
    """Args: log: receives scalars (tag → value) and environment steps."""
    self._log, self.close, self.save = log, close, save

  def on_episode(self, episode: "core.Episode") -> None:
    """Logs an episode; its return also under its policy."""
    scalars = {
      "return": episode.episode_return,
      f"return/{episode.policy}": episode.episode_return,
      "episode/length": episode.episode_length,
      "episode/number": episode.episode,
      "speed/learner_updates": episode.learner_updates,
      "speed/steps_per_second": episode.steps_per_second,
      **{f"metrics/{name}": value for name, value in episode.metrics.items()},
    }
    self._log(scalars, episode.env_steps)

  def on_evaluation(self, evaluation: "core.Evaluation") -> None:
    """Logs means over the episodes."""
    metrics: dict[str, list[float]] = {}
    for episode in evaluation.episodes:
      for name, value in episode.metrics.items():
        metrics.setdefault(name, []).append(value)
    scalars = {
      "evaluation/return": evaluation.mean_return,
      "evaluation/length": evaluation.mean_length,
    }
    for name, values in sorted(metrics.items()):
      scalars[f"evaluation/metrics/{name}"] = float(np.mean(values))
    self._log(scalars, evaluation.env_steps)


class BsuiteCsv:
  """Writes bsuite's CSV of Deep Sea in JAX; bsuite's environments write their own."""

  def __init__(
    self, directory: output.RunDirectory, record: Mapping[str, Any], csv_files: CsvFiles
  ):
    """Args: csv_files: whose earlier episodes are of a run that resumes."""
    from explorax.environments import bsuite_sweeps

    bsuite_id = record["env"].removeprefix("bsuite:")
    self._directory = directory
    self._name = f"bsuite/{bsuite_sweeps.csv_name(bsuite_id)}"
    self._log = bsuite_sweeps.DeepSeaLog(record["episodes"])
    for episode in csv_files.training.episodes():
      self._add(episode)

  def on_episode(self, episode: "core.Episode") -> None:
    if self._add(episode):
      self._directory.write(self._name, lambda file: file.write(self._log.csv()))

  def on_evaluation(self, evaluation: "core.Evaluation") -> None:
    """bsuite has no evaluations."""

  def save(self) -> Saved:
    """Nothing: `metrics.csv` has the episodes."""
    return {}

  def close(self) -> None:
    """Does nothing, since each write is complete."""

  def _add(self, episode: "core.Episode") -> bool:
    log = self._log
    return log.add(episode.episode_length, episode.episode_return, episode.metrics)


def make(
  directory: output.RunDirectory,
  record: Mapping[str, Any],
  *,
  csv_files: CsvFiles,
  logger: str | None,
  saved: Saved | None,
) -> dict[str, Sink]:
  """The sinks of a seed, by the names under which checkpoints hold their states.

  Args:
    directory: of the seed.
    record: the content of its config.json.
    csv_files: already open.
    logger: the run's `--logger`, or None.
    saved: name → what the sink's `save` returned; None without a checkpoint.
  """
  events_file = events.EventWriter(directory, saved and saved["events"])
  sinks: dict[str, Sink] = {
    "csv": csv_files,
    "events": Scalars(events_file.write, events_file.close, events_file.save),
  }
  is_on_device = record.get("runner") == config.DEVICE
  if is_on_device and record["env"].startswith("bsuite:"):
    sinks["bsuite"] = BsuiteCsv(directory, record, csv_files)
  if logger is not None:
    log = loggers.find(logger)(record, directory.path)
    sinks["logger"] = Scalars(log, log.close)
  return sinks
