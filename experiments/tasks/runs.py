"""Runs of `experiments.run` as tasks of the pool; directories hold the results."""

import contextlib
import dataclasses
import json
import math
import pathlib
import shlex
from collections.abc import Sequence
from typing import Any

from explorax import environments
from explorax.experiments import (
  callbacks,
  errors,
  job,
  launch,
  output,
  resuming,
  signals,
)
from explorax.experiments import config as config_lib
from explorax.experiments.recording import console as console_lib
from explorax.experiments.runners import core
from explorax.experiments.tasks import store, types

FUNCTION = f"{__name__}:perform"
FAILURE = "failed.txt"  # In a run's directory: why the last attempt failed.
_MAY_BE_NAN = {"steps_per_second", "treasure_rate"}


def task(
  config: config_lib.RunConfig, argv: Sequence[str], root: pathlib.Path
) -> types.Task:
  """A run as a task.

  Args:
    config: of the run, with its limits and directory.
    argv: the command line, for the run's config.json.
    root: the directory of all runs, for the task's name.
  """
  path = pathlib.Path(config.output)
  name = str(path.relative_to(root)) if path != root else path.name
  settings = dataclasses.asdict(config)
  return types.Task(name, settings, _weight(config), {"argv": shlex.join(argv)})


class Store:
  """The results of runs, read from their own files.

  Attributes:
    directory: of all runs.
  """

  def __init__(self, directory: output.RunDirectory):
    self.directory = directory

  def read(self, task: types.Task) -> types.CompletedTask | None:
    """The run's `summary.json` and versions, if it is finished and not extended."""
    directory = _directory(task)
    if not resuming.is_finished(directory):
      return None
    record = directory.read_settings()
    if resuming.is_extended(record, task.settings):
      return None
    return types.CompletedTask(
      task.name, task.settings, summary(directory.path), 0.0, record["versions"]
    )

  def write(self, task: types.Task, done: types.CompletedTask) -> None:
    """Removes the failure; the run itself has written its files."""
    del done
    (_directory(task).path / FAILURE).unlink(missing_ok=True)

  def write_failure(self, task: types.Task, failure: types.Failure) -> pathlib.Path:
    """Saves why the run failed; returns the file."""
    directory = _directory(task)
    store.write_failure(directory, FAILURE, failure)
    return directory.path / FAILURE


def perform(settings: types.Settings, context: types.TaskContext) -> types.Results:
  """Runs the run, from its newest checkpoint if there is one.

  Args:
    settings: from `task`.
    context: its `report` receives the share of the run that is done.

  Returns:
    The content of `summary.json`.
  """
  fields = dict(settings)
  argv = shlex.split(fields.pop("argv"))
  with contextlib.closing(job.set_up(config_lib.RunConfig(**fields), argv)) as made:
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

  def share(episode: core.Episode) -> None:
    done = ((episode.episode, config.episodes), (episode.env_steps, config.steps))
    request.share = max(x / limit for x, limit in done if limit is not None)

  outcome = launch.run(
    made, console_lib.Console(None), callbacks.Functions(on_episode=share), request
  )
  if request.interruption is not None:
    raise request.interruption
  if outcome.error is not None:
    raise outcome.error
  if outcome.problems:
    raise errors.OutputError(str(outcome.problems[0]))


def _directory(task: types.Task) -> output.RunDirectory:
  return output.RunDirectory(pathlib.Path(task.settings["output"]))


def _weight(config: config_lib.RunConfig) -> float:
  """About how many steps the run takes, if its environment is bsuite's."""
  kind, _, bsuite_id = config.env.partition(":")
  if config.steps is not None:
    return float(config.steps)
  episodes = float(config.episodes or 1)
  if kind == "bsuite":
    return episodes * environments.bsuite_sweeps.steps_per_episode(bsuite_id)
  return episodes
