"""Records a run of one seed or of several: its rows, and the files at its end.

Each seed has a directory with the files of a run. A run of several seeds also has:

    config.json       of all seeds
    curve.png         the mean over seeds with its interval
    summary.json      the results of each seed, and of all
    seed0/, seed1/, …
"""

import functools
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from explorax import environments
from explorax.experiments import checkpoint, output
from explorax.experiments import config as config_lib
from explorax.experiments.recording import (
  bsuite_csv,
  loggers,
  plots,
  progress,
  rows,
  summary,
  video,
  warnings,
)
from explorax.experiments.recording import console as console_lib
from explorax.experiments.runners import common

WEIGHTS = "checkpoints/final.npz"

_FLUSH_SECONDS = 1.0  # Rows are written to the files at least this often.


class Recorder:
  """Writes each row of a run to its files and loggers, and shows the progress.

  A logger or a file that fails raises its exception in the method called.

  Attributes:
    observer: films the evaluations; None if the run has no video.
  """

  def __init__(
    self,
    directory: output.RunDirectory,
    config: config_lib.RunConfig,
    record: Mapping[str, Any],
    *,
    console: console_lib.Console,
    learner_metrics: Collection[str] = (),
    resumed: Mapping[str, Any] | None = None,
  ):
    """Creates the growing files, or resumes them.

    Args:
      directory: of the run.
      config: of the run.
      record: the content of `config.json`; that of each of several seeds is written.
      console: for the progress.
      learner_metrics: the names of the learner's metrics.
      resumed: what `save` returned; later rows are cut. None creates the files.

    Raises:
      OutputError: if the files cannot be written or resumed.
    """
    self._directory = directory
    self._title = f"{config.agent} on {config.env}"
    self.observer = None
    if config.video and config.num_seeds == 1:
      self.observer = video.EpisodeRecorder()
    saved = resumed or {}
    self._seeds = {
      seed: _SeedRecorder(
        of_seed, config, settings, learner_metrics, saved.get(str(seed), {})
      )
      for seed, of_seed, settings in _directories(directory, config, record)
    }
    self._progress = progress.RunProgress(
      console,
      num_episodes=config.episodes,
      num_steps=config.steps,
      num_seeds=config.num_seeds,
    )
    self._has_warned: set[type] = set()
    self._flushed_at = time.monotonic()

  def on_activity(self, activity: common.Activity) -> None:
    """Shows what the runner does next, and writes rows that have waited long enough."""
    if time.monotonic() - self._flushed_at > _FLUSH_SECONDS:
      for seed in self._seeds.values():
        seed.flush()
      self._flushed_at = time.monotonic()
    self._progress.on_activity(activity)

  def on_log(self, row: common.LogRow) -> None:
    """Records a row of the log."""
    self._seeds[row.seed].write(rows.LEARNER, row, loggers.learner_scalars(row))
    self._progress.on_log(row)

  def on_episode(self, episode: common.Episode) -> None:
    """Records a training episode, and warns of what it shows, once in a run."""
    seed = self._seeds[episode.seed]
    metrics = bsuite_csv.continued(episode.metrics, seed.totals)
    episode = episode._replace(metrics=metrics)
    seed.write(rows.METRICS, episode, loggers.episode_scalars(episode))
    self._progress.on_episode(episode)
    for watch in seed.watches:
      message = watch(episode)
      if message and type(watch) not in self._has_warned:
        self._has_warned.add(type(watch))
        which = f"in seed {episode.seed} " if len(self._seeds) > 1 else ""
        console_lib.print_error(which + message)

  def on_evaluation(self, evaluation: common.Evaluation) -> None:
    """Records an evaluation."""
    scalars = loggers.evaluation_scalars(evaluation)
    self._seeds[evaluation.seed].write(rows.EVALUATION, evaluation, scalars)
    self._progress.on_evaluation(evaluation)

  def save(self) -> dict[str, Any]:
    """The state for a checkpoint, once all rows so far are on disk."""
    return {str(number): seed.save() for number, seed in self._seeds.items()}

  def finish(
    self,
    end: summary.End,
    results: Mapping[int, common.Result],
    params: Mapping[int, Any],
  ) -> str:
    """Writes the files at the end of a run, and returns a table for the terminal.

    Args:
      end: how it has ended.
      results: seed → the runner's `Result`, if it returned one.
      params: seed → the weights to save, if there are any.
    """
    self._progress.close()
    outcomes, episodes, is_one = {}, [], len(self._seeds) == 1
    for number, seed in self._seeds.items():
      seed.close(params.get(number))
    for number, seed in self._seeds.items():
      result = results.get(number)
      outcomes[number] = seed.finish(end, result and result._asdict())
      episodes.append(rows.read(seed.path / rows.METRICS))
    if self.observer is not None:
      self.observer.write(self._directory)
    if len(outcomes) > 1:
      write_files_of_seeds(self._directory, self._title, outcomes, episodes)
    for number, seed in self._seeds.items():  # When all summaries are written.
      seed.draw(self._title if is_one else f"{self._title}, seed {number}")
    return summary.to_text(self._title, outcomes)


class _SeedRecorder:
  """The files and loggers of one seed.

  Attributes:
    path: of the directory.
    totals: the environment's, when the run resumed.
    watches: functions of an episode that return what to warn of.
  """

  def __init__(
    self,
    directory: output.RunDirectory,
    config: config_lib.RunConfig,
    record: Mapping[str, Any],
    learner_metrics: Collection[str],
    saved: Mapping[str, Any],
  ):
    """Creates the files, or resumes them from what `save` returned."""
    self.path = directory.path
    self.watches = (warnings.Divergence(), warnings.CutTargets(record))
    self._directory, self._config, self._record = directory, config, record
    self._loggers: list[loggers.Logger] = []
    if config.logger is not None:
      self._loggers.append(loggers.make(config.logger, record, self.path))
    self._last_step: int = saved.get("last_step", 0)
    later = {
      rows.METRICS: learner_metrics,
      rows.EVALUATION: ("left",),
      rows.LEARNER: set(learner_metrics) - {"finite"},
    }
    if not config.evaluates:
      del later[rows.EVALUATION]
    sizes = saved.get("sizes", {})
    self._files = {
      name: rows.CsvFile(self.path / name, metrics, sizes.get(name, 0))
      for name, metrics in later.items()
    }
    self.totals: Mapping[str, float] = {}
    if bsuite_csv.is_for(config):
      self.totals = bsuite_csv.last_totals(rows.read(self.path / rows.METRICS))
    self._events = loggers.TensorBoard(self.path, self._last_step, 1 / config.num_seeds)
    self._loggers.append(self._events)

  def write(self, name: str, row: Any, scalars: Mapping[str, float]) -> None:
    """Writes a row, or an evaluation's rows, to the file `name` and to the loggers."""
    for one in getattr(row, "episodes", (row,)):
      self._files[name].write(one)
    self._last_step = max(self._last_step, row.env_steps)
    for logger in self._loggers:
      logger(scalars, row.env_steps)

  def flush(self) -> None:
    """Writes the rows so far to the files."""
    for file in self._files.values():
      file.flush()

  def save(self) -> dict[str, Any]:
    self._events.flush()
    sizes = {name: file.flush(to_disk=True) for name, file in self._files.items()}
    return {"sizes": sizes, "last_step": self._last_step}

  def close(self, params: Any) -> None:
    """Closes files and loggers, and saves the weights, unless they are None."""
    for file in self._files.values():
      file.close()
    for logger in self._loggers:
      logger.close()
    if params is not None:
      checkpoint.write(self._directory.path / WEIGHTS, params, self._record)

  def finish(
    self, end: summary.End, totals: Mapping[str, Any] | None
  ) -> dict[str, Any]:
    """Writes what is made of the rows; returns the content of `summary.json`."""
    self._read = {name: rows.read(self.path / name) for name in self._files}
    episodes, evaluations = self._read[rows.METRICS], self._read.get(rows.EVALUATION)
    self._solved = _solved_rule(self._config.env, episodes)
    content = summary.summarize_run(
      end, self._record, episodes, evaluations, totals=totals, solved=self._solved
    )
    self._directory.write_json("summary.json", content)
    if len(episodes["episode"]) and bsuite_csv.is_for(self._config):
      bsuite_csv.write(self._directory, self._config, episodes)
    return content

  def draw(self, title: str) -> None:
    """Draws the curve of the rows that `finish` has read, if there are any."""
    episodes = self._read[rows.METRICS]
    if len(episodes["episode"]) and plots.can_draw():
      draw = functools.partial(
        plots.learning_curve,
        seeds=[episodes],
        title=title,
        evaluations=self._read.get(rows.EVALUATION),
        solved=self._solved,
      )
      self._directory.write("curve.png", draw)


def _solved_rule(env: str, episodes: rows.Rows) -> environments.SolvedRule | None:
  """The environment's rule, if it has one, after these episodes."""
  rule = environments.solved_rule(env)
  if rule is not None:
    names = {"total_bad_episodes", "bad_episode", "denoised_return"} & episodes.keys()
    for i, number in enumerate(episodes["episode"].tolist()):
      metrics = {name: float(episodes[name][i]) for name in names}
      has_learnt = bool(episodes["learner_updates"][i])
      rule.add_episode(number, metrics, has_learnt=has_learnt)
  return rule


def write_files_of_seeds(
  directory: output.RunDirectory,
  title: str,
  outcomes: summary.Seeds,
  episodes: Sequence[rows.Rows],
) -> None:
  """Writes `summary.json` and `curve.png` of several seeds.

  Nothing is drawn if a seed has ended no episode, or matplotlib is missing.

  Args:
    directory: of all seeds.
    title: above the curve.
    outcomes: seed → its `summary.json`.
    episodes: the columns of each seed's `metrics.csv`.
  """
  directory.write_json("summary.json", summary.summarize_seeds(outcomes))
  if all(len(columns["episode"]) for columns in episodes) and plots.can_draw():
    draw = functools.partial(plots.learning_curve, seeds=episodes, title=title)
    directory.write("curve.png", draw)


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
