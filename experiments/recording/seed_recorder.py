"""Records one seed: the files of its directory, while the run lasts and at its end."""

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from explorax.experiments import checkpoint, config, output, recording
from explorax.experiments.recording import (
  divergence,
  loggers,
  metrics_csv,
  plots,
  returns,
  scalars,
  summary,
  video,
)

if TYPE_CHECKING:
  from explorax import environments
  from explorax.experiments.runners import common

WEIGHTS = "checkpoints/final.npz"


class SeedRecorder:
  """Writes the files of a run directory; methods raise an OutputError if they fail.

  A resumed run rebuilds its statistics from the rows of its CSV files.

  Attributes:
    title: of its curve.
    returns: of its episodes and evaluations so far.
    warnings: what to warn of, once in a run.
    failures: how many crashes of environments there were.
  """

  def __init__(
    self,
    directory: output.RunDirectory,
    record: Mapping[str, Any],
    *,
    title: str,
    solved_rule: "environments.SolvedRule | None",
    evaluates: bool,
    video_recorder: video.EpisodeRecorder | None,
    logger: str | None,
    saved: Mapping[str, Any] | None,
  ):
    """Creates the growing files, or resumes them.

    Args:
      directory: of the seed.
      record: the content of its config.json.
      title: of its curve.
      solved_rule: of the environment, if it has one.
      evaluates: whether the run has evaluations.
      video_recorder: records the evaluations; None to record none.
      logger: the run's `--logger`.
      saved: an earlier `state`; later rows are cut. None creates the files.
    """
    saved = {
      "failures": 0,
      "rows": 0,
      "learner_rows": 0,
      "evaluation_rows": 0,
      **(saved or {}),
    }
    self.title = title
    self.returns = returns.Returns()
    self.warnings = (divergence.Divergence(), divergence.CutTargets(record))
    self.failures: int = saved["failures"]
    self._directory = directory
    self._record = record
    self._evaluation_policy = summary.evaluation_policy(record)
    self._solved_rule = solved_rule
    self._video_recorder = video_recorder
    self._last: common.Episode | None = None
    self._episodes = metrics_csv.MetricsCsv(directory, num_rows=saved["rows"])
    earlier = list(self._episodes.rows())
    for episode in earlier:
      self._add(episode)
    self._evaluations: metrics_csv.MetricsCsv | None = None
    if evaluates:
      name, columns = "evaluation.csv", metrics_csv.EVALUATION_COLUMNS
      self._evaluations = metrics_csv.MetricsCsv(
        directory, name, columns, saved["evaluation_rows"]
      )
      self.returns.evaluations.add(self._evaluations.rows())
    self._log = metrics_csv.MetricsCsv(
      directory, "learner.csv", metrics_csv.LEARNER_COLUMNS, saved["learner_rows"]
    )
    logged_at = max((row.env_steps for row in self._log.rows()), default=0)
    last_step = max(self.returns.num_steps, logged_at)
    self._events = recording.events.EventWriter(directory, last_step)
    self._loggers: list[loggers.Logger] = [self._events]
    if logger is not None:
      make = loggers.find(logger)
      self._loggers.append(loggers.Guarded(logger, make, record, directory.path))
    self._bsuite_csv: Any = None
    if record.get("runner") == config.DEVICE and record["env"].startswith("bsuite:"):
      self._bsuite_csv = recording.bsuite_csv.BsuiteCsv(directory, record, earlier)

  def on_log(self, row: "common.LogRow") -> None:
    """Records a row of the log."""
    self._log.write(row)
    for log in self._loggers:
      log(scalars.of_log(row), row.env_steps)

  def on_episode(self, episode: "common.Episode") -> None:
    """Records a training episode."""
    self._add(episode)
    self._episodes.write(episode)
    for log in self._loggers:
      log(scalars.of_episode(episode), episode.env_steps)
    if self._bsuite_csv is not None:
      self._bsuite_csv.write(episode)

  def on_evaluation(self, evaluation: "common.Evaluation") -> None:
    """Records an evaluation."""
    self.returns.evaluations.add(evaluation.episodes)
    if self._evaluations is not None:
      for episode in evaluation.episodes:
        self._evaluations.write(episode)
    for log in self._loggers:
      log(scalars.of_evaluation(evaluation), evaluation.env_steps)

  def sync(self) -> None:
    """Waits until the files are on disk, before a checkpoint."""
    self._events.sync()
    self._episodes.sync()
    self._log.sync()
    if self._evaluations is not None:
      self._evaluations.sync()

  def state(self) -> dict[str, Any]:
    """The state for a checkpoint, in JSON's types."""
    return {
      "failures": self.failures,
      "rows": self._episodes.num_rows,
      "learner_rows": self._log.num_rows,
      "evaluation_rows": self._evaluations.num_rows if self._evaluations else 0,
    }

  def finish(
    self,
    result: "common.Result | None",
    params: Any,
    *,
    attempt: Callable[..., bool],
    has_one_environment: bool,
    status: str,
    wall_seconds: float,
    stop_reason: str | None,
  ) -> dict[str, Any]:
    """Writes the files at the end.

    Args:
      result: what the runner returned, if it did.
      params: the weights to save, or None.
      attempt: calls a function with arguments, and handles its OutputError; returns
        whether there was none.
      has_one_environment: whether the steps since the last episode's end belong to one
        unfinished episode.
      status: one of `summary.STATUSES`; a run whose weights are lost has failed.
      wall_seconds: how long the run took.
      stop_reason: why a callback has ended it; None if none has.

    Returns:
      The content of `summary.json`.
    """
    self._episodes.close()
    self._log.close()
    if self._evaluations is not None:
      self._evaluations.close()
    for log in self._loggers:
      attempt(log.close)
    if params is not None:
      save = functools.partial(checkpoint.dump, tree=params, extra=self._record)
      if not attempt(self._directory.write, WEIGHTS, save):
        status = "failed"
    unfinished_steps = 0
    if has_one_environment and result is not None:
      unfinished_steps = result.env_steps - (self._last.env_steps if self._last else 0)
    outcome = summary.of_run(
      last=result or self._last,
      last_metrics=self._last.metrics if self._last else {},
      returns=self.returns,
      evaluation_policy=self._evaluation_policy,
      solved_rule=self._solved_rule,
      unfinished_steps=unfinished_steps,
      environment_failures=self.failures,
      status=status,
      wall_seconds=wall_seconds,
      stop_reason=stop_reason,
    )
    attempt(self._directory.write_json, "summary.json", outcome)
    for name, draw in self._pictures():
      attempt(plots.write, self._directory, name, draw)
    return outcome

  def _add(self, episode: "common.Episode") -> None:
    """Adds an episode, new or of a resumed run's file, to the statistics."""
    self._last = episode
    self.returns.add(episode)
    for warning in self.warnings:
      warning.add(episode)
    if self._solved_rule:
      has_learnt = episode.learner_updates > 0
      self._solved_rule.add_episode(
        episode.episode, episode.metrics, has_learnt=has_learnt
      )

  def _pictures(self) -> Iterator[tuple[str, Callable[[BinaryIO], Any]]]:
    """(name, what writes it): curve, videos and intrinsic rewards.

    Nothing is drawn if matplotlib is missing.
    """
    if self._last is not None and plots.can_draw():
      draw = functools.partial(
        plots.learning_curve,
        seeds=[self.returns],
        title=self.title,
        solved=self._solved_rule,
      )
      yield "curve.png", draw
    if self._video_recorder is None:
      return
    r_int: dict[str, np.ndarray] = {}
    for which, kept in self._video_recorder.recordings().items():
      episode = kept.episode
      if episode is None:
        continue
      if self._video_recorder.draws:
        suffix = "" if which == "last" else f"_{which}"
        name = f"videos/step_{episode.env_steps:08d}{suffix}.gif"
        yield name, functools.partial(recording.gif.write, recording=kept)
      if kept.r_int:
        title = (
          f"{which} episode of evaluation, after {episode.env_steps:,} steps: return "
          f"{episode.episode_return:.4g}"
        )
        r_int[title] = np.array(kept.r_int)
    if r_int and plots.can_draw():
      draw = functools.partial(
        plots.intrinsic_rewards, episodes=r_int, title=self.title
      )
      yield "r_int.png", draw
