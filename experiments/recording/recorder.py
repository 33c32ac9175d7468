"""Records a run of one seed or of several, and shows its progress.

Each seed has a directory with the files of a run. A run of several seeds also has:

    config.json       of all seeds
    curve.png         the mean over seeds with its interval
    summary.json      the results of each seed, and of all
    seed0/, seed1/, …
"""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from explorax.experiments import config as config_lib
from explorax.experiments import errors, output, recording
from explorax.experiments.recording import console as console_lib
from explorax.experiments.recording import (
  plots,
  returns,
  seed_recorder,
  summary,
  video,
)

if TYPE_CHECKING:
  from explorax import environments
  from explorax.experiments.runners import common

WEIGHTS = seed_recorder.WEIGHTS


class Recorder:
  """Gives the records of a run to those of its seeds.

  A write failure raises no error, which would prevent the run from saving its results:
  the run checks `problem` in its stop hook.
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
      video_recorder: records the evaluations; None to record none.
      resumed: what `save` returned; later rows are cut. None creates the files.

    Raises:
      OutputError: if the files cannot be written or resumed.
    """
    self._problems: list[errors.OutputError] = []
    self._directory = directory
    self._has_one_environment = (
      config.runner != config_lib.DISTRIBUTED and config.num_envs in (None, 1)
    )
    self._title = f"{config.agent} on {config.env}"
    self._seeds = {
      seed: seed_recorder.SeedRecorder(
        seed_directory,
        seed_record,
        title=f"{self._title}, seed {seed}",
        solved_rule=solved_rule(),
        evaluates=config.evaluates,
        video_recorder=video_recorder,
        logger=config.logger,
        saved=resumed[str(seed)] if resumed else None,
      )
      for seed, seed_directory, seed_record in _directories(directory, config, record)
    }
    self._first = self._seeds[config.seed]
    self._has_warned = {
      type(warning)
      for seed in self._seeds.values()
      for warning in seed.warnings
      if warning.message
    }
    self._progress = recording.progress.RunProgress(
      console,
      num_episodes=config.episodes,
      num_steps=config.steps,
      num_seeds=config.num_seeds,
    )

  @property
  def problem(self) -> errors.OutputError | None:
    """The first write failure; None if there is none."""
    return self._problems[0] if self._problems else None

  def on_activity(self, activity: "common.Activity") -> None:
    """Shows what the runner does next."""
    self._progress.on_activity(activity)

  def on_log(self, row: "common.LogRow") -> None:
    """Records a row of the log of a runner."""
    if self.problem is None:
      self._attempt(self._seeds[row.seed].on_log, row)
    self._progress.on_log(row)

  def on_episode(self, episode: "common.Episode") -> None:
    """Records an episode of a runner."""
    seed = self._first if len(self._seeds) == 1 else self._seeds[episode.seed]
    if self.problem is None:
      self._attempt(seed.on_episode, episode)
    self._progress.on_episode(episode)
    for warning in seed.warnings:
      if warning.message and type(warning) not in self._has_warned:  # Once per run.
        self._has_warned.add(type(warning))
        which = f"in seed {episode.seed} " if len(self._seeds) > 1 else ""
        console_lib.print_error(which + warning.message)

  def on_evaluation(self, evaluation: "common.Evaluation") -> None:
    """Records an evaluation of a runner."""
    if self.problem is None:
      self._attempt(self._seeds[evaluation.seed].on_evaluation, evaluation)
    self._progress.on_evaluation(evaluation)

  def save(self) -> dict[str, Any] | None:
    """The state for a checkpoint; None after a write failure."""
    for seed in self._seeds.values():
      if self.problem is None:
        self._attempt(seed.sync)
    if self.problem is not None:
      return None
    return {str(number): seed.state() for number, seed in self._seeds.items()}

  def finish(
    self,
    status: str,
    results: "Mapping[int, common.Result]",
    weights: Mapping[int, Any],
    wall_seconds: float,
    stop_reason: str | None = None,
  ) -> tuple[str, list[errors.OutputError]]:
    """Writes the files at the end of a run; one that fails does not affect the others.

    Args:
      status: one of `summary.STATUSES`.
      results: seed → the runner's `Result`, if it returned one.
      weights: seed → the weights to save, if there are any.
      wall_seconds: how long the run took.
      stop_reason: why a callback has ended it; None if none has.

    Returns:
      A table for the terminal, and the write failures.
    """
    self._progress.close()
    outcomes = {
      number: seed.finish(
        results.get(number),
        weights.get(number),
        attempt=self._attempt,
        has_one_environment=self._has_one_environment,
        status=status,
        wall_seconds=wall_seconds,
        stop_reason=stop_reason,
      )
      for number, seed in self._seeds.items()
    }
    if len(outcomes) == 1:
      return summary.table(self._first.title, outcomes), self._problems
    curves = [seed.returns for seed in self._seeds.values()]
    self._attempt(write_files_of_seeds, self._directory, self._title, outcomes, curves)
    return summary.table(self._title, outcomes), self._problems

  def _attempt(self, write: Callable[..., Any], *args: Any) -> bool:
    """Writes; keeps an OutputError, and returns whether there was none."""
    try:
      write(*args)
    except errors.OutputError as error:
      self._problems.append(error)
      return False
    return True


def write_files_of_seeds(
  directory: output.RunDirectory,
  title: str,
  outcomes: summary.Seeds,
  seeds: Sequence[returns.Returns],
) -> None:
  """Writes `summary.json` and `curve.png` of several seeds.

  Nothing is drawn if a seed has ended no episode, or matplotlib is missing.

  Args:
    directory: of all seeds.
    title: above the curve.
    outcomes: seed → its `summary.json`.
    seeds: the returns of each seed.

  Raises:
    OutputError: if a file cannot be written.
  """
  directory.write_json("summary.json", summary.of_seeds(outcomes))
  if all(map(len, seeds)) and plots.can_draw():
    draw = functools.partial(plots.learning_curve, seeds=seeds, title=title)
    plots.write(directory, "curve.png", draw)


def _directories(
  directory: output.RunDirectory,
  config: config_lib.RunConfig,
  record: Mapping[str, Any],
) -> Iterator[tuple[int, output.RunDirectory, Mapping[str, Any]]]:
  """(seed, its directory, the content of its config.json) of each seed."""
  if config.num_seeds == 1:
    yield config.seed, directory, record
    return
  for seed in config.seeds:
    path = directory.path / f"seed{seed}"
    seed_directory = output.RunDirectory.create(path, may_hold_run=directory.holds_run)
    seed_record = {**record, "seed": seed, "num_seeds": 1}
    seed_directory.write_json("config.json", seed_record)
    yield seed, seed_directory, seed_record
