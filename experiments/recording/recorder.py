"""Writes all files of a run while it runs and when it ends.

A run of several seeds has a directory for each seed, with the same files as a run of
that seed alone, and beside these:

    config.json       of all seeds
    curve.png         the mean over seeds with its interval
    summary.json      the results of each seed, and of all
    seed0/, seed1/, …
"""

import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from explorax.experiments import config as config_lib
from explorax.experiments import errors, output, weights
from explorax.experiments.recording import console as console_lib
from explorax.experiments.recording import (
  divergence,
  events,
  loggers,
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

_Write = Callable[[BinaryIO], Any]


class Recorder:
  """Writes the files of a run, of one seed or of several, and shows its progress.

  A write failure does not raise an error, which would prevent the run from saving its
  results. It is stored in `problem`, which the run checks in its stop hook.

  Attributes:
    problem: the first write failure; None if there is none.
  """

  def __init__(
    self,
    directory: output.RunDirectory,
    config: config_lib.RunConfig,
    record: Mapping[str, Any],
    *,
    solved_rule: "Callable[[], environments.SolvedRule | None]",
    console: console_lib.Console,
    video_recorder: video.EpisodeRecorder | None = None,
    resumed: Mapping[str, Any] | None = None,
  ):
    """Creates the growing files, or resumes them.

    Args:
      directory: of the run.
      config: of the run.
      record: the content of `config.json`; with several seeds, each seed's is written
        here.
      solved_rule: makes a rule for a seed, or None if the environment has none.
      console: for the progress.
      video_recorder: records the evaluations; None without evaluations.
      resumed: what `save` returned; later records are removed. None creates the
        files.

    Raises:
      OutputError: if the files cannot be written.
    """
    self.problem: errors.OutputError | None = None
    self._directory = directory
    self._is_single = config.runner != config_lib.DISTRIBUTED and not config.is_batched
    self._title = f"{config.agent} on {config.env}"
    self._seeds: dict[int, _Seed] = {}
    for seed in config.seeds:
      own, own_record = directory, record
      if config.num_seeds > 1:
        own = output.RunDirectory.create(
          directory.path / f"seed{seed}", may_hold_run=directory.holds_run
        )
        own_record = {**record, "seed": seed, "num_seeds": 1}
        own.write_json("config.json", own_record)
      before = resumed[str(seed)] if resumed else {}
      title = f"{self._title}, seed {seed}"
      logger = None
      if config.logger is not None:
        logger = loggers.find(config.logger)(own_record, own.path)
      self._seeds[seed] = _Seed(
        own, title, solved_rule(), video_recorder, before, logger
      )
    self._first = next(iter(self._seeds.values()))
    self._returns = self._first.returns  # Of all seeds, for the progress.
    if config.num_seeds > 1:
      self._returns = returns.Returns()
    self._progress = progress.RunProgress(
      console,
      num_episodes=config.episodes,
      num_steps=config.steps,
      episodes_before=min(len(each.returns) for each in self._seeds.values()),
    )

  def on_activity(self, activity: "core.Activity") -> None:
    """Shows what the runner does next."""
    self._progress.doing(activity)

  def on_episode(self, episode: "core.Episode") -> None:
    """Takes an episode of a runner; the progress is that of the slowest seed."""
    is_slowest = True
    if len(self._seeds) == 1:
      seed = self._first
    else:
      seed = self._seeds[episode.seed]
      self._returns.add(episode)
      is_slowest = all(
        episode.episode <= len(each.returns)
        for each in self._seeds.values()
        if each is not seed
      )
    has_warned = any(each.divergence.message for each in self._seeds.values())
    seed.take(episode)
    if is_slowest:
      self._progress.update(episode, self._returns)
    if seed.divergence.message and not has_warned:  # Once per run.
      of_seed = f"in seed {episode.seed} " if len(self._seeds) > 1 else ""
      console_lib.print_error(of_seed + seed.divergence.message)
    self._attempt(lambda: seed.write(episode))

  def on_evaluation(self, evaluation: "core.Evaluation") -> None:
    """Takes an evaluation of a runner."""
    self._first.evaluations.add(evaluation.episodes)
    self._progress.evaluated(evaluation)
    self._attempt(lambda: self._first.write_evaluation(evaluation))

  def on_env_failure(self, failure: "core.Failure") -> None:
    """Counts a crash of an environment."""
    del failure
    self._first.failures += 1

  def on_replacement(self, role: str) -> None:
    """Counts a process that replaced one that died."""
    counts = self._first.replacements
    counts[role] = counts.get(role, 0) + 1

  def save(self) -> dict[str, Any] | None:
    """The state for a checkpoint; None after a write failure."""
    if self.problem is not None:
      return None
    try:
      return {str(number): seed.save() for number, seed in self._seeds.items()}
    except errors.OutputError as error:
      self.problem = error
      return None

  def finish(
    self,
    status: str,
    results: "Mapping[int, core.Result]",
    weights: Mapping[int, Any],
    wall_seconds: float,
  ) -> tuple[str, list[errors.OutputError]]:
    """Writes the files at the end of a run; one that fails does not affect the others.

    Args:
      status: one of `summary.STATUSES`.
      results: seed → the runner's `Result`, if it returned one.
      weights: seed → the weights to save, if there are any.
      wall_seconds: how long the run took.

    Returns:
      A table for the terminal, and the write failures.
    """
    self._progress.close()
    problems = [] if self.problem is None else [self.problem]

    def attempt(write: Callable[..., None], name: str, content: Any) -> None:
      try:
        write(name, content)
      except errors.OutputError as error:
        problems.append(error)

    outcomes = {}
    for number, seed in self._seeds.items():
      outcome = seed.finish(
        status, results.get(number), wall_seconds, has_one_environment=self._is_single
      )
      for name, write in seed.last_files(weights.get(number)).items():
        attempt(seed.directory.write, name, write)
      attempt(seed.directory.write_json, "summary.json", outcome)
      outcomes[number] = outcome
    if len(outcomes) == 1:
      return summary.table(self._first.title, *outcomes.values()), problems
    content = summary.of_seeds(outcomes)
    curves = [seed.returns for seed in self._seeds.values()]
    if all(map(len, curves)) and plots.can_draw():
      draw = functools.partial(plots.seeds_curve, seeds=curves, title=self._title)
      attempt(self._directory.write, "curve.png", draw)
    attempt(self._directory.write_json, "summary.json", content)
    return summary.table_of_seeds(self._title, content), problems

  def _attempt(self, write: Callable[[], Any]) -> None:
    """Writes, unless an earlier write failed."""
    if self.problem is None:
      try:
        write()
      except errors.OutputError as error:
        self.problem = error


class _Seed:
  """The files of one seed and their content."""

  def __init__(
    self,
    directory: output.RunDirectory,
    title: str,
    solved_rule: "environments.SolvedRule | None",
    video_recorder: video.EpisodeRecorder | None,
    resumed: Mapping[str, Any],
    logger: loggers.Logger | None,
  ):
    self.directory = directory
    self.returns = returns.Returns()
    self.evaluations = returns.Evaluations()
    self.divergence = divergence.Divergence()
    self.failures: int = resumed.get("failures", 0)
    self.replacements: dict[str, int] = dict(resumed.get("replacements", {}))
    self.title = title
    self._solved_rule = solved_rule
    self._video_recorder = video_recorder
    self._last: core.Episode | None = None
    self._csv = metrics_csv.MetricsCsv(directory, resumed=resumed.get("metrics"))
    for row in self._csv.resumed_rows():
      self.take(row)
    self._evaluation_csv = None
    if video_recorder is not None:
      self._evaluation_csv = metrics_csv.MetricsCsv(
        directory,
        "evaluation.csv",
        metrics_csv.EVALUATION_COLUMNS,
        resumed.get("evaluation"),
      )
      self.evaluations.add(self._evaluation_csv.resumed_rows())
    self._events = events.EventWriter(directory, resumed.get("events"))
    self._logger = logger

  def take(self, episode: "core.Episode") -> None:
    """Counts an episode."""
    self._last = episode
    self.returns.add(episode)
    self.divergence.add(episode)
    if self._solved_rule:
      has_learnt = episode.learner_updates > 0
      self._solved_rule.take(episode.episode, episode.metrics, has_learnt=has_learnt)

  def write(self, episode: "core.Episode") -> None:
    """Adds an episode to the files; TensorBoard gets its return by policy."""
    self._csv.write(episode)
    scalars = {
      "return": episode.episode_return,
      f"return/{episode.policy}": episode.episode_return,
      "episode/length": episode.episode_length,
      "episode/number": episode.episode,
      "speed/learner_updates": episode.learner_updates,
      "speed/steps_per_second": episode.steps_per_second,
      **{f"metrics/{name}": value for name, value in episode.metrics.items()},
    }
    self._log(episode.env_steps, scalars)

  def write_evaluation(self, evaluation: "core.Evaluation") -> None:
    """Adds an evaluation to the files; TensorBoard gets means over its episodes."""
    if self._evaluation_csv is None:
      return
    metrics: dict[str, list[float]] = {}
    for episode in evaluation.episodes:
      self._evaluation_csv.write(episode)
      for name, value in episode.metrics.items():
        metrics.setdefault(name, []).append(value)
    scalars = {
      "evaluation/return": evaluation.mean_return,
      "evaluation/length": evaluation.mean_length,
    }
    for name, values in sorted(metrics.items()):
      scalars[f"evaluation/metrics/{name}"] = float(np.mean(values))
    self._log(evaluation.env_steps, scalars)

  def _log(self, step: int, scalars: Mapping[str, float]) -> None:
    self._events.write(step, scalars)
    if self._logger is not None:
      self._logger(scalars, step)

  def save(self) -> dict[str, Any]:
    saved = {
      "failures": self.failures,
      "replacements": dict(self.replacements),
      "metrics": self._csv.save(),
      "events": self._events.save(),
    }
    if self._evaluation_csv is not None:
      saved["evaluation"] = self._evaluation_csv.save()
    return saved

  def finish(
    self,
    status: str,
    result: "core.Result | None",
    wall_seconds: float,
    *,
    has_one_environment: bool,
  ) -> dict[str, Any]:
    """Closes the growing files; returns the content of `summary.json`."""
    for file in (self._csv, self._evaluation_csv, self._events, self._logger):
      if file is not None:
        file.close()
    unfinished_steps = 0
    if result is not None and has_one_environment:
      unfinished_steps = result.env_steps - (self._last.env_steps if self._last else 0)
    return summary.of_run(
      status=status,
      unfinished_steps=unfinished_steps,
      last=result or self._last,
      wall_seconds=wall_seconds,
      returns=self.returns,
      evaluations=self.evaluations,
      solved_rule=self._solved_rule,
      environment_failures=self.failures,
      replacements=self.replacements,
      last_metrics=self._last.metrics if self._last else {},
    )

  def last_files(self, params: Any) -> dict[str, _Write]:
    """Name → its writer: weights, curve, videos and intrinsic rewards.

    Nothing is drawn if matplotlib is missing.
    """
    files: dict[str, _Write] = {}
    if params is not None:
      files[WEIGHTS] = functools.partial(weights.save, weights=params)
    if self._last is not None and plots.can_draw():
      files["curve.png"] = functools.partial(
        plots.learning_curve,
        returns=self.returns,
        title=self.title,
        evaluations=self.evaluations,
        solved=self._solved_rule,
      )
    r_int: dict[str, np.ndarray] = {}
    recordings = self._video_recorder.recordings() if self._video_recorder else {}
    for which, recording in recordings.items():
      episode = recording.episode
      if episode is None:
        continue
      if self._video_recorder is not None and self._video_recorder.draws:
        suffix = "" if which == "last" else f"_{which}"
        name = f"videos/step_{episode.env_steps:08d}{suffix}.gif"
        files[name] = functools.partial(video.write, recording=recording)
      if recording.r_int:
        title = (
          f"{which} episode of evaluation, after {episode.env_steps:,} steps: return "
          f"{episode.episode_return:.4g}"
        )
        r_int[title] = np.array(recording.r_int)
    if r_int and plots.can_draw():
      files["r_int.png"] = functools.partial(
        plots.intrinsic_rewards, episodes=r_int, title=self.title
      )
    return files
