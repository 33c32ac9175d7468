"""Records one seed: the files of its directory, while the run lasts and at its end."""

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from explorax.experiments import errors, output, weights
from explorax.experiments.recording import (
  divergence,
  plots,
  returns,
  sinks,
  summary,
  video,
)

if TYPE_CHECKING:
  from explorax import environments
  from explorax.experiments.runners import core

WEIGHTS = "checkpoints/final.npz"


class SeedRecorder:
  """Writes the files of a run directory; methods raise an OutputError if they fail.

  Attributes:
    directory: of the seed.
    title: of its curve.
    returns: of its episodes so far.
    divergence: whether its values diverge.
    failures: how many crashes of environments there were.
    replacements: role → number of processes that replaced one that died.
  """

  def __init__(
    self,
    directory: output.RunDirectory,
    record: Mapping[str, Any],
    *,
    title: str,
    solved_rule: "environments.SolvedRule | None",
    video_recorder: video.EpisodeRecorder | None,
    logger: str | None,
    saved: Mapping[str, Any] | None,
  ):
    """Creates the growing files, or resumes them.

    Args:
      directory: of the seed.
      record: the content of its config.json.
      title: of its curve.
      solved_rule: the rule for solving the environment, or None.
      video_recorder: records the evaluations; None without evaluations.
      logger: the run's `--logger`, or None.
      saved: what `save` returned; later records are cut. None creates the files.
    """
    self.directory = directory
    self.title = title
    self.returns = returns.Returns()
    self.divergence = divergence.Divergence()
    self.failures: int = saved["failures"] if saved else 0
    self.replacements: dict[str, int] = dict(saved["replacements"]) if saved else {}
    self._evaluations = returns.Evaluations()
    self._solved_rule = solved_rule
    self._video_recorder = video_recorder
    self._last: core.Episode | None = None
    of_sinks = saved and saved["sinks"]
    csv_files = sinks.CsvFiles(
      directory,
      evaluates=video_recorder is not None,
      saved=of_sinks and of_sinks["csv"],
    )
    for episode in csv_files.training.episodes():
      self._count(episode)
    if csv_files.evaluation is not None:
      self._evaluations.add(csv_files.evaluation.episodes())
    self._sinks = sinks.make(
      directory, record, csv_files=csv_files, logger=logger, saved=of_sinks
    )

  def on_episode(self, episode: "core.Episode") -> None:
    """Records a training episode."""
    self._count(episode)
    for sink in self._sinks.values():
      sink.on_episode(episode)

  def on_evaluation(self, evaluation: "core.Evaluation") -> None:
    """Records an evaluation."""
    self._evaluations.add(evaluation.episodes)
    for sink in self._sinks.values():
      sink.on_evaluation(evaluation)

  def save(self) -> dict[str, Any]:
    """The state for a checkpoint, in JSON's types; syncs the files to disk."""
    return {
      "failures": self.failures,
      "replacements": dict(self.replacements),
      "sinks": {name: sink.save() for name, sink in self._sinks.items()},
    }

  def finish(
    self, result: "core.Result | None", params: Any, **facts: Any
  ) -> tuple[dict[str, Any], list[errors.OutputError]]:
    """Writes the files at the end; one that fails does not affect the others.

    Args:
      result: what the runner returned, if it did.
      params: the weights to save, or None.
      **facts: other arguments of `summary.of_run`.

    Returns:
      The content of `summary.json`, and the write failures.
    """
    outcome = summary.of_run(
      last=result or self._last,
      returns=self.returns,
      evaluations=self._evaluations,
      solved_rule=self._solved_rule,
      environment_failures=self.failures,
      replacements=self.replacements,
      last_metrics=self._last.metrics if self._last else {},
      **facts,
    )
    attempts: list[Callable[[], None]] = [sink.close for sink in self._sinks.values()]
    for name, write in self._last_files(params):
      attempts.append(functools.partial(self.directory.write, name, write))
    attempts.append(
      functools.partial(self.directory.write_json, "summary.json", outcome)
    )
    problems = []
    for attempt in attempts:
      try:
        attempt()
      except errors.OutputError as error:
        problems.append(error)
    return outcome, problems

  def unfinished_steps(self, result: "core.Result | None") -> int:
    """Environment steps since the last episode's end."""
    if result is None:
      return 0
    return result.env_steps - (self._last.env_steps if self._last else 0)

  def _count(self, episode: "core.Episode") -> None:
    self._last = episode
    self.returns.add(episode)
    self.divergence.add(episode)
    if self._solved_rule:
      has_learnt = episode.learner_updates > 0
      self._solved_rule.add_episode(
        episode.episode, episode.metrics, has_learnt=has_learnt
      )

  def _last_files(self, params: Any) -> Iterator[tuple[str, Callable[[BinaryIO], Any]]]:
    """(name, what writes it): weights, curve, videos and intrinsic rewards.

    Nothing is drawn if matplotlib is missing.
    """
    if params is not None:
      yield WEIGHTS, functools.partial(weights.save, weights=params)
    if self._last is not None and plots.can_draw():
      draw = functools.partial(
        plots.learning_curve,
        returns=self.returns,
        title=self.title,
        evaluations=self._evaluations,
        solved=self._solved_rule,
      )
      yield "curve.png", draw
    if self._video_recorder is None:
      return
    r_int: dict[str, np.ndarray] = {}
    for which, recording in self._video_recorder.recordings().items():
      episode = recording.episode
      if episode is None:
        continue
      if self._video_recorder.draws:
        suffix = "" if which == "last" else f"_{which}"
        name = f"videos/step_{episode.env_steps:08d}{suffix}.gif"
        yield name, functools.partial(video.write, recording=recording)
      if recording.r_int:
        title = (
          f"{which} episode of evaluation, after {episode.env_steps:,} steps: return "
          f"{episode.episode_return:.4g}"
        )
        r_int[title] = np.array(recording.r_int)
    if r_int and plots.can_draw():
      draw = functools.partial(
        plots.intrinsic_rewards, episodes=r_int, title=self.title
      )
      yield "r_int.png", draw
