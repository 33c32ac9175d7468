"""Records a run of one seed or of several: its rows, and the files at its end.

Each seed has a directory with the files of a run. A run of several seeds also has:

    config.json       of all seeds
    curve.png         the mean over seeds
    summary.json      the results of each seed, and of all
    seed0/, seed1/, …
"""

import functools
import importlib.util
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from explorax.experiments import checkpoint, output
from explorax.experiments import config as config_lib
from explorax.experiments.recording import (
  bsuite_csv,
  drawing,
  loggers,
  rows,
  summary,
  video,
  warnings,
)
from explorax.experiments.recording import console as console_lib
from explorax.experiments.runners import common

WEIGHTS = "checkpoints/final.npz"


class Recorder:
  """Writes each row of a run to its files and loggers.

  A logger or a file that fails raises its exception in the method called.

  Attributes:
    evaluation_environment: that of the run, which films episodes if there is a video.
  """

  def __init__(
    self,
    directory: output.RunDirectory,
    config: config_lib.RunConfig,
    record: Mapping[str, Any],
    *,
    learner_metrics: Collection[str] = (),
    restored: checkpoint.Checkpoint | None = None,
    evaluation_environment: Any = None,
  ):
    """Creates the growing files, or resumes them.

    Args:
      directory: of the run.
      config: of the run.
      record: the content of `config.json`; that of each of several seeds is written.
      learner_metrics: the names of the learner's metrics.
      restored: the checkpoint from which the run resumes; later rows are cut.
      evaluation_environment: of the run.

    Raises:
      OutputError: if the files cannot be written.
    """
    self._directory = directory
    self._config = config
    self._seeds: dict[int, _SeedRecorder] = {}
    for index, seed in enumerate(_directories(directory, config, record)):
      last_steps = None
      if restored is not None:
        evaluated_at = restored.record["counts"]["evaluated_at"][index]
        last_steps = restored.record["env_steps"], evaluated_at
      self._seeds[config.seeds[index]] = _SeedRecorder(
        *seed, config, learner_metrics, last_steps
      )
    self._has_warned: set[type] = set()
    self._weights: Mapping[int, Any] = {}
    self.evaluation_environment, self._filmed = evaluation_environment, None
    if config.video and config.num_seeds == 1:
      self._filmed = video.Filmed(evaluation_environment)
      self.evaluation_environment = self._filmed

  def on_log(self, row: common.LogRow) -> None:
    """Records a row of the log."""
    self._seeds[row.seed].files[rows.LEARNER](row)
    self._seeds[row.seed].tell(row)

  def on_episodes(self, episodes: Sequence[common.Episode]) -> None:
    """Records training episodes, and warns of what they show, once in a run."""
    of_seeds: dict[int, list[common.Episode]] = {}
    for episode in episodes:
      of_seeds.setdefault(episode.seed, []).append(episode)
    for number, ended in of_seeds.items():
      seed = self._seeds[number]
      if seed.totals:
        metrics = [bsuite_csv.continued(x.metrics, seed.totals) for x in ended]
        ended[:] = [x._replace(metrics=y) for x, y in zip(ended, metrics, strict=True)]
      for watch in seed.watches:
        message = watch(ended)
        if message and type(watch) not in self._has_warned:
          self._has_warned.add(type(watch))
          which = f"in seed {number} " if len(self._seeds) > 1 else ""
          console_lib.print_error(which + message)
      seed.files[rows.METRICS](*ended)
    for number, ended in of_seeds.items():
      for episode in ended:
        self._seeds[number].tell(episode)

  def on_evaluation(self, evaluation: common.Evaluation) -> None:
    """Records an evaluation."""
    seed = self._seeds[evaluation.seed]
    seed.files[rows.EVALUATION](*evaluation.episodes)
    seed.tell(evaluation)
    if self._filmed is not None:
      self._filmed.on_evaluation(evaluation)

  def on_failure(self, weights: Sequence[Any]) -> None:
    """Keeps the weights of each seed, which `finish` saves."""
    self._weights = dict(zip(self._seeds, weights, strict=True))

  def finish(self, end: summary.End, results: Mapping[int, common.Result]) -> str:
    """Writes the files at the end of a run, and returns a table for the terminal.

    Args:
      end: how it has ended.
      results: seed → the runner's `Result`, if it returned one.
    """
    for number, seed in self._seeds.items():
      result = results.get(number)
      seed.close(result.weights if result else self._weights.get(number))
    outcomes = {x: s.finish(end, results.get(x)) for x, s in self._seeds.items()}
    if len(outcomes) > 1:
      write_files_of_seeds(self._directory, self._config, outcomes)
    if self._filmed is not None:
      self._filmed.write(self._directory)
    for number, seed in self._seeds.items():  # When all summaries are written.
      which = f", seed {number}" if len(outcomes) > 1 else ""
      shown, title = seed.columns, _title(self._config) + which
      _draw(seed.directory, title, [shown[rows.METRICS]], shown.get(rows.EVALUATION))
    return summary.to_text(_title(self._config), outcomes)


class _SeedRecorder:
  """The files and loggers of one seed.

  Attributes:
    directory: of its files.
    totals: the environment's, when the run resumed.
    watches: functions of episodes that return what to warn of.
    files: by name.
    columns: file → the columns of its rows, once the run has ended.
  """

  def __init__(
    self,
    directory: output.RunDirectory,
    record: Mapping[str, Any],
    config: config_lib.RunConfig,
    learner_metrics: Collection[str],
    last_steps: tuple[int, int] | None,
  ):
    """Creates the files, or resumes them.

    `last_steps` are the environment steps of the checkpoint and of the last evaluation
    before it.
    """
    self.watches = (warnings.Divergence(), warnings.CutTargets(record))
    self.columns: Mapping[str, rows.Rows] = {}
    self.directory, self._config, self._record = directory, config, record
    path, (last_step, evaluated_at) = directory.path, last_steps or (None, None)
    find, name = loggers.find, config.logger
    users = [] if name is None else [find(name)(record, path)]
    later = set(learner_metrics)
    self.files = {
      rows.METRICS: rows.CsvFile(path / rows.METRICS, later, last_step),
      rows.LEARNER: rows.CsvFile(path / rows.LEARNER, later - {"finite"}, last_step),
    }
    if config.evaluates:
      evaluations = rows.CsvFile(path / rows.EVALUATION, ("left",), evaluated_at)
      self.files[rows.EVALUATION] = evaluations
    self.totals: Mapping[str, float] = {}
    if bsuite_csv.is_for(config):
      self.totals = bsuite_csv.last_totals(rows.read(path / rows.METRICS))
    self._events = loggers.TensorBoard(path, last_step, config.num_seeds)
    self._loggers: list[Any] = [self._events, *users]

  def tell(self, event: Any) -> None:
    """Gives the scalars of an episode, an evaluation or a row of the log to loggers."""
    if due := [x for x in self._loggers if x is not self._events or x.is_due(event)]:
      scalars = loggers.scalars(event)
      for logger in due:
        logger(scalars, event.env_steps)

  def close(self, params: Any) -> None:
    """Closes files and loggers, and saves the weights, unless they are None."""
    for file in self.files.values():
      file.close()
    for logger in self._loggers:
      logger.close()
    if params is not None:
      checkpoint.write(self.directory.path / WEIGHTS, params, self._record)

  def finish(self, end: summary.End, result: common.Result | None) -> dict[str, Any]:
    """Writes what is made of the rows; returns the content of `summary.json`."""
    self.columns = {name: rows.read(file.path) for name, file in self.files.items()}
    content = summary.summarize_run(end, self._record, self.columns, result)
    self.directory.write_json("summary.json", content)
    episodes = self.columns[rows.METRICS]
    if len(episodes["episode"]) and bsuite_csv.is_for(self._config):
      bsuite_csv.write(self.directory, self._config, episodes)
    return content


def write_files_of_seeds(
  directory: output.RunDirectory, config: config_lib.RunConfig, outcomes: summary.Seeds
) -> None:
  """Writes `summary.json` and `curve.png` of several seeds that have ended.

  `outcomes` are the `summary.json` of each seed.
  """
  directory.write_json("summary.json", summary.summarize_seeds(outcomes))
  paths = [directory.path / f"seed{seed}" / rows.METRICS for seed in config.seeds]
  _draw(directory, _title(config), [*map(rows.read, paths)])


def _title(config: config_lib.RunConfig) -> str:
  return f"{config.agent} on {config.env}"


def _draw(
  directory: output.RunDirectory,
  title: str,
  seeds: Sequence[rows.Rows],
  evaluations: rows.Rows | None = None,
) -> None:
  """Draws `curve.png`, unless a seed has no episode or matplotlib is missing."""
  can_draw = importlib.util.find_spec("matplotlib") is not None
  if can_draw and all(len(columns["episode"]) for columns in seeds):
    draw: Callable[..., Any] = functools.partial(
      drawing.learning_curve, runs=seeds, title=title, evaluations=evaluations
    )
    directory.write("curve.png", draw)


def _directories(
  directory: output.RunDirectory,
  config: config_lib.RunConfig,
  record: Mapping[str, Any],
) -> Iterator[tuple[output.RunDirectory, Mapping[str, Any]]]:
  """The directory of each seed, and the content of its config.json."""
  if config.num_seeds == 1:
    yield directory, record
    return
  for seed in config.seeds:
    seed_directory = output.RunDirectory(directory.path / f"seed{seed}")
    seed_record = {**record, "seed": seed, "num_seeds": 1}
    seed_directory.write_json("config.json", seed_record)
    yield seed_directory, seed_record
