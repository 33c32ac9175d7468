"""Everything that a run writes while it lasts and when it ends."""

import functools
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from explorax.experiments import errors, output
from explorax.experiments import weights as weights_lib
from explorax.experiments.recording import console as console_lib
from explorax.experiments.recording import (
  events,
  metrics_csv,
  plots,
  progress,
  returns,
  summary,
  video,
)

if TYPE_CHECKING:
  from explorax import environments
  from explorax.experiments.runners import core

WEIGHTS = "checkpoints/final.npz"


class Recorder:
  """Writes a run's files and shows its progress.

  Writing that fails does not raise: the run could then not save what it has learnt.
  It is kept in `problem`, which runners look at through `stop`.
  """

  def __init__(
    self,
    directory: output.RunDirectory,
    *,
    title: str,
    num_episodes: int | None,
    num_steps: int | None,
    solved_rule: "environments.SolvedRule | None",
    console: console_lib.Console,
    film: video.Film | None = None,
    resumed: Mapping[str, Any] | None = None,
  ):
    """Begins the files that grow, or goes on with them.

    Args:
      directory: of the run.
      title: of the curve and of the summary.
      num_episodes: after how many episodes the run ends, if it does.
      num_steps: after how many environment steps it ends, if it does.
      solved_rule: an `environments.SolvedRule`, or None where there is none.
      console: for the progress.
      film: watches the evaluations of the run; None if there are to be none.
      resumed: what `save` returned, from which on everything is written again; None
        to begin.

    Raises:
      OutputError: if the files cannot be written.
    """
    self.problem: errors.OutputError | None = None
    self._directory = directory
    self._title = title
    self._solved_rule = solved_rule
    self._returns = returns.Returns()
    self._film = film
    self._evaluations = returns.Evaluations()
    before = resumed or {}
    self._failures = before.get("failures", 0)
    self._replacements: dict[str, int] = dict(before.get("replacements", {}))
    self._last: core.Episode | None = None
    self._csv = metrics_csv.MetricsCsv(directory, resumed=before.get("metrics"))
    for row in self._csv.resumed_rows():
      self._take(row)
    self._evaluation_csv = None
    if film is not None:
      self._evaluation_csv = metrics_csv.MetricsCsv(
        directory,
        "evaluation.csv",
        metrics_csv.EVALUATION_COLUMNS,
        before.get("evaluation"),
      )
      self._evaluations.add(self._evaluation_csv.resumed_rows())
    self._events = events.EventWriter(directory, before.get("events"))
    self._progress = progress.RunProgress(
      console, num_episodes=num_episodes, num_steps=num_steps
    )

  @property
  def solved_episode(self) -> int | None:
    return self._solved_rule.solved_episode if self._solved_rule else None

  def on_episode(self, episode: "core.Episode") -> None:
    """Takes in an `Episode` of a runner; `policy` is its group."""
    self._take(episode)
    self._progress.update(episode, self._returns)
    if self.problem is not None:
      return
    try:
      self._csv.write(episode)
      self._events.write(episode.env_steps, _scalars(episode))
    except errors.OutputError as error:
      self.problem = error

  def on_evaluation(self, evaluation: "core.Evaluation") -> None:
    """Takes in an `Evaluation` of a runner."""
    self._evaluations.add(evaluation.episodes)
    self._progress.evaluated(evaluation)
    if self.problem is not None or self._evaluation_csv is None:
      return
    try:
      for episode in evaluation.episodes:
        self._evaluation_csv.write(episode)
      self._events.write(evaluation.env_steps, _evaluation_scalars(evaluation))
    except errors.OutputError as error:
      self.problem = error

  def on_env_failure(self, failure: "core.Failure") -> None:
    """Counts a crash of an environment, and ends the live line for what is said."""
    del failure
    self._failures += 1
    self.pause()

  def on_replacement(self, role: str) -> None:
    """Counts a process that another has the place of."""
    self._replacements[role] = self._replacements.get(role, 0) + 1
    self.pause()

  def pause(self) -> None:
    """Ends the live line, for what is said next."""
    self._progress.close()

  def finish(
    self, status: str, result: "core.Result | None", weights: Any, wall_seconds: float
  ) -> tuple[summary.Summary, list[errors.OutputError]]:
    """Writes the files of a run's end, each even if another one cannot be written.

    Args:
      status: one of `summary.STATUSES`.
      result: the runner's `Result`; None if it returned none.
      weights: those to save; None for none.
      wall_seconds: how long the run took.

    Returns:
      The summary, and what could not be written.
    """
    self._progress.close()
    self._csv.close()
    if self._evaluation_csv is not None:
      self._evaluation_csv.close()
    self._events.close()
    outcome = self._summarise(status, result, wall_seconds)
    problems = [] if self.problem is None else [self.problem]
    for name, write in self._last_files(weights).items():
      try:
        self._directory.write(name, write)
      except errors.OutputError as error:
        problems.append(error)
    try:
      self._directory.write_json("summary.json", outcome.to_dict())
    except errors.OutputError as error:
      problems.append(error)
    return outcome, problems

  def save(self) -> dict[str, Any] | None:
    """What goes into a checkpoint; None if there was a problem with writing."""
    if self.problem is not None:
      return None
    try:
      saved = {
        "failures": self._failures,
        "replacements": dict(self._replacements),
        "metrics": self._csv.save(),
        "events": self._events.save(),
      }
      if self._evaluation_csv is not None:
        saved["evaluation"] = self._evaluation_csv.save()
    except errors.OutputError as error:
      self.problem = error
      return None
    return saved

  def _take(self, episode: "core.Episode") -> None:
    """Counts an episode in."""
    self._last = episode
    self._returns.add(episode)
    if self._solved_rule:
      self._solved_rule.take(episode.episode, episode.metrics)

  def _last_files(self, weights: Any) -> dict[str, Callable[[BinaryIO], Any]]:
    files: dict[str, Callable[[BinaryIO], Any]] = {}
    if weights is not None:
      files[WEIGHTS] = lambda file: weights_lib.save(file, weights)
    if self._last is not None:
      files["curve.png"] = lambda file: plots.learning_curve(
        file,
        self._returns,
        title=self._title,
        evaluations=self._evaluations,
        solved_episode=self.solved_episode,
      )
    if self._film is not None:
      files.update(self._files_of_film(self._film))
    return files

  def _files_of_film(self, film: video.Film) -> dict[str, Callable[[BinaryIO], Any]]:
    """The videos, and the intrinsic rewards, of the episodes that the film kept."""
    files: dict[str, Callable[[BinaryIO], Any]] = {}
    r_int: dict[str, np.ndarray] = {}
    for which, recording in film.recordings().items():
      episode = recording.episode
      if episode is None:
        continue
      if film.draws:
        suffix = "" if which == "last" else f"_{which}"
        name = f"videos/step_{episode.env_steps:08d}{suffix}.gif"
        files[name] = functools.partial(video.write, recording=recording)
      if recording.r_int:
        title = (
          f"{which} episode of evaluation, after {episode.env_steps:,} steps: return "
          f"{episode.episode_return:.4g}"
        )
        r_int[title] = np.array(recording.r_int)
    if r_int:
      files["r_int.png"] = lambda file: plots.intrinsic_rewards(
        file, r_int, title=self._title
      )
    return files

  def _summarise(
    self, status: str, result: "core.Result | None", wall_seconds: float
  ) -> summary.Summary:
    # Without a result, the last episode knows best.
    known = self._last if result is None else result
    return summary.Summary(
      status=status,
      env_steps=known.env_steps if known else 0,
      learner_updates=known.learner_updates if known else 0,
      steps_per_second=known.steps_per_second if known else math.nan,
      wall_seconds=wall_seconds,
      returns=self._returns,
      solved_rule=self._solved_rule,
      evaluations=self._evaluations,
      environment_failures=self._failures,
      replacements=dict(self._replacements),
      last_metrics=dict(self._last.metrics) if self._last else {},
    )


def _scalars(episode: "core.Episode") -> dict[str, float]:
  """TensorBoard's tags: the returns by policy, what replay and learner report."""
  return {
    f"return/{episode.policy}": episode.episode_return,
    "episode/length": episode.episode_length,
    "episode/number": episode.episode,
    "speed/learner_updates": episode.learner_updates,
    "speed/steps_per_second": episode.steps_per_second,
    **{f"metrics/{name}": value for name, value in episode.metrics.items()},
  }


def _evaluation_scalars(evaluation: "core.Evaluation") -> dict[str, float]:
  """The means over the evaluation's episodes."""
  scalars = {
    "evaluation/return": evaluation.mean_return,
    "evaluation/length": evaluation.mean_length,
  }
  for name in sorted(set().union(*(each.metrics for each in evaluation.episodes))):
    values = [
      each.metrics[name] for each in evaluation.episodes if name in each.metrics
    ]
    scalars[f"evaluation/metrics/{name}"] = float(np.mean(values))
  return scalars
