"""Runs of `experiments.run` as tasks of a pool; a run's directory holds its results."""

import contextlib
import dataclasses
import json
import math
import pathlib
import shlex
from collections.abc import Sequence
from typing import Any

from explorax.experiments import config as config_lib
from explorax.experiments import errors, job, output, resuming, signals, supervision
from explorax.experiments.recording import console as console_lib
from explorax.experiments.runners import core
from explorax.experiments.tasks import store as store_lib
from explorax.experiments.tasks import types

_MAY_BE_NAN = {"steps_per_second", "treasure_rate"}
FUNCTION = f"{__name__}:perform"


def task(name: str, config: config_lib.RunConfig, argv: Sequence[str]) -> types.Task:
  """A run as a task.

  Args:
    name: unique among the tasks; the path of the run's directory within that of the
      store.
    config: of the run, with a single seed.
    argv: the command line, for the run's config.json.
  """
  settings = dataclasses.asdict(config)
  return types.Task(name, settings, context={"argv": shlex.join(argv)})


class Store(store_lib.Store):
  """The results of runs, read from their own files."""

  def read(self, task: types.Task) -> types.CompletedTask | None:
    """The run's `summary.json` and versions, if it is finished and not extended."""
    directory = output.RunDirectory(pathlib.Path(task.settings["output"]))
    if not resuming.is_finished(directory):
      return None
    record = directory.read_settings()
    if resuming.is_extended(record, task.settings):
      return None
    return types.CompletedTask(
      task.name, task.settings, summary(directory.path), 0.0, record["versions"]
    )

  def write(self, task: types.Task, done: types.CompletedTask) -> None:
    """Writes nothing, since the run has written its files."""
    del done
    self._file(task, ".failed.txt").unlink(missing_ok=True)


def perform(settings: types.Settings, context: types.TaskContext) -> types.Results:
  """Runs the run, from its newest checkpoint if there is one.

  Args:
    settings: from `task`.
    context: its `report` receives the share of the run that is done.

  Returns:
    The content of `summary.json`.
  """
  own = dict(settings)
  argv = shlex.split(own.pop("argv"))
  with contextlib.closing(job.set_up(config_lib.RunConfig(**own), argv)) as made:
    if made.checkpoints is not None:
      _run(made, context)
  return summary(made.directory.path)


def summary(path: pathlib.Path) -> dict[str, Any]:
  """The content of a run's `summary.json`; NaN, which JSON stores as null, is NaN."""
  content = json.loads((path / "summary.json").read_text(encoding="utf-8"))
  for name in _MAY_BE_NAN & content.keys():
    content[name] = math.nan if content[name] is None else content[name]
  return content


class _Request(signals.StopRequest):
  """Reports the progress to the pool, which may raise an InterruptedTaskError."""

  def __init__(self, context: types.TaskContext):
    super().__init__()
    self.share = 0.0
    self.interruption: types.InterruptedTaskError | None = None
    self._context = context

  def __call__(self) -> bool:
    try:
      self._context.report(self.share)
    except types.InterruptedTaskError as error:
      self.interruption = error
    return self.interruption is not None


def _run(made: job.Job, context: types.TaskContext) -> None:
  """Runs it; raises what has ended it too early."""
  config, request = made.config, _Request(context)

  def on_episode(episode: core.Episode) -> None:
    shares = [
      done / limit
      for done, limit in (
        (episode.episode, config.episodes),
        (episode.env_steps, config.steps),
      )
      if limit is not None
    ]
    request.share = max(shares)

  outcome = supervision.run(made, console_lib.Console(None), on_episode, request)
  if request.interruption is not None:
    raise request.interruption
  if outcome.error is not None:
    raise outcome.error
  if outcome.problems:
    raise errors.OutputError(str(outcome.problems[0]))
