"""Where the records of a seed go beside its CSV files: loggers, and bsuite's CSV."""

import pathlib
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from explorax.experiments import errors, output
from explorax.experiments.recording import console, loggers

if TYPE_CHECKING:
  from explorax.experiments.runners import core


class Sink(Protocol):
  """Receives the records of one seed; an OutputError of any method ends the run."""

  def on_episode(self, episode: "core.Episode") -> None:
    """A training episode has ended."""

  def on_evaluation(self, evaluation: "core.Evaluation") -> None:
    """An evaluation has ended."""

  def close(self) -> None:
    """The run has ended."""


class Scalars:
  """Gives the scalars of episodes and evaluations to a logger."""

  def __init__(self, log: loggers.Logger):
    self._log = log
    self.close = log.close

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


class UsersLogger:
  """`--logger`: if it raises anything, the run goes on without it, after a warning."""

  def __init__(self, name: str, record: Mapping[str, Any], directory: pathlib.Path):
    self._name = name
    self._sink: Scalars | None = None
    make = loggers.find(name)
    self._attempt(lambda: setattr(self, "_sink", Scalars(make(record, directory))))

  def on_episode(self, episode: "core.Episode") -> None:
    if self._sink is not None:
      self._attempt(self._sink.on_episode, episode)

  def on_evaluation(self, evaluation: "core.Evaluation") -> None:
    if self._sink is not None:
      self._attempt(self._sink.on_evaluation, evaluation)

  def close(self) -> None:
    if self._sink is not None:
      self._attempt(self._sink.close)

  def _attempt(self, call: Callable[..., Any], *args: Any) -> None:
    try:
      call(*args)
    except Exception as error:
      self._sink = None
      console.print_error(
        f"--logger={self._name} failed ({errors.describe(error)}); the run goes on "
        "without it."
      )


class BsuiteCsv:
  """Writes bsuite's CSV of Deep Sea in JAX; bsuite's environments write their own."""

  def __init__(
    self,
    directory: output.RunDirectory,
    record: Mapping[str, Any],
    episodes: "Iterable[core.Episode]",
  ):
    """Args: episodes: the earlier ones of a run that resumes."""
    from explorax.environments import bsuite_sweeps

    bsuite_id = record["env"].removeprefix("bsuite:")
    self._directory = directory
    self._name = f"bsuite/{bsuite_sweeps.csv_name(bsuite_id)}"
    self._log = bsuite_sweeps.DeepSeaLog(record["episodes"])
    for episode in episodes:
      self._add(episode)

  def on_episode(self, episode: "core.Episode") -> None:
    if self._add(episode):
      self._directory.write(self._name, lambda file: file.write(self._log.csv()))

  def on_evaluation(self, evaluation: "core.Evaluation") -> None:
    """bsuite has no evaluations."""

  def close(self) -> None:
    """Does nothing, since each write is complete."""

  def _add(self, episode: "core.Episode") -> bool:
    log = self._log
    return log.add(episode.episode_length, episode.episode_return, episode.metrics)
