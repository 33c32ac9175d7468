"""Several seeds of an agent in an environment: a run each, and the files of all.

OUTPUT/seed0, OUTPUT/seed1, …                   the directories of the runs
OUTPUT/config.json, curve.png, summary.json     of all seeds
"""

import contextlib
import dataclasses
import functools
import pathlib
import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from explorax.experiments import config as config_lib
from explorax.experiments import job, output, resuming
from explorax.experiments.recording import console as console_lib
from explorax.experiments.recording import metrics_csv, recorder, returns, summary
from explorax.experiments.tasks import pool, runs

if TYPE_CHECKING:
  from explorax.experiments import command

Summaries = Mapping[int, Mapping[str, Any]]  # Seed → the content of `summary.json`.


def directories(config: config_lib.RunConfig) -> list[tuple[pathlib.Path, int]]:
  """The directory of each seed's run, and the seed."""
  return [(pathlib.Path(config.output) / f"seed{s}", s) for s in config.seeds]


def num_workers(config: config_lib.RunConfig, asked: int | None) -> int | None:
  """The number of runs at a time; None for one per core.

  One if the runs share an accelerator, or have processes of their own.
  """
  if config.runner == config_lib.DISTRIBUTED:
    return 1
  if config.runner == config_lib.DEVICE and asked is None:
    import jax

    return None if jax.default_backend() == "cpu" else 1
  return asked


def set_up(
  config: config_lib.RunConfig, argv: Sequence[str], console: console_lib.Console
) -> "command.Work":
  """Checks everything, and returns the work.

  Args:
    config: with several seeds, which are separate runs.
    argv: the command line, for config.json.
    console: for progress and results.
  """
  config, agent_config = job.resolve(config)
  record = job.make_record(config, argv, agent_config)
  directory = output.RunDirectory.create(
    config.output, may_hold_run=config.resume, is_locked=True
  )
  try:
    if directory.holds_run:
      resuming.check_same(directory, directory.read_settings(), record)
    # What cannot start is refused here, once.
    with contextlib.closing(job.make_parts(config.runs()[0], job.Given())) as parts:
      config = dataclasses.replace(config, episodes=parts.config.episodes)
    directory.write_json("config.json", record)
  except BaseException:
    directory.discard()
    raise
  return functools.partial(_run, config, argv, directory, console)


def write_files(config: config_lib.RunConfig, each: Summaries) -> str:
  """Writes the files of all seeds; returns their results as a table."""
  directory = output.RunDirectory(pathlib.Path(config.output))
  title = f"{config.agent} on {config.env}"
  curves = [_returns(directory.path / f"seed{seed}") for seed in config.seeds]
  recorder.write_files_of_seeds(directory, title, each, curves)
  return summary.table(title, each)


def _run(
  config: config_lib.RunConfig,
  argv: Sequence[str],
  directory: output.RunDirectory,
  console: console_lib.Console,
) -> int:
  """Runs the missing seeds, writes the files of all, and prints their results."""
  with contextlib.ExitStack() as stack:
    stack.callback(directory.unlock)
    tasks = [
      runs.task(dataclasses.replace(each, resume=True), argv, directory.path)
      for each in config.runs()
    ]
    workers = num_workers(config, config.workers)
    where = stack.enter_context(pool.Pool(console, workers=workers))
    console.line(f"{config.length} of each seed, into {directory.path}")
    done = where.compute(runs.FUNCTION, tasks, runs.Store(directory))
    each = {
      seed: found.results
      for seed, found in zip(config.seeds, done, strict=True)
      if found is not None
    }
    if len(each) < config.num_seeds:
      left = summary.count(config.num_seeds - len(each), "seed")
      console_lib.print_error(
        f"{left} of {config.num_seeds} not finished; the same command again resumes."
      )
      return where.exit_code or 1
    console.line(f"\n{write_files(config, each)}")
    path = shlex.quote(str(directory.path))
    report = f"python -m explorax.experiments.report {path}"
    console.line(f"\nThe files are in {directory.path}. To compare: {report}")
    return 0


def _returns(path: pathlib.Path) -> returns.Returns:
  found = returns.Returns()
  for episode in metrics_csv.read(path / "metrics.csv"):
    found.add(episode)
  return found
