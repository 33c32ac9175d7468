"""Several seeds of the local runner, as tasks: `run --seeds=5`.

The directory holds config.json, curve.png and summary.json of all seeds, and the
directory of each seed's run, as with the device runner.
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
from explorax.experiments.recording import metrics_csv, plots, returns, summary
from explorax.experiments.tasks import pool, runs

if TYPE_CHECKING:
  from explorax.experiments import command


def set_up(
  config: config_lib.RunConfig, argv: Sequence[str], console: console_lib.Console
) -> "command.Work":
  """Checks everything, and returns the work.

  Args:
    config: with several seeds.
    argv: the command line, for config.json.
    console: for progress and results.
  """
  _, env, agent_config = job.find(config.agent, config.env, config.settings)
  config = dataclasses.replace(config, env=env)
  record = job.make_record(config, argv, agent_config)
  directory = output.RunDirectory.create(
    config.output, may_hold_run=config.resume, is_locked=True
  )
  try:
    if directory.holds_run:
      resuming.check_same(directory, directory.read_settings(), record)
    first = _of_seed(config, config.seed, directory)
    # What cannot start is refused here, once.
    with contextlib.closing(job.make_parts(first, job.Given())) as parts:
      config = dataclasses.replace(config, episodes=parts.config.episodes)
    directory.write_json("config.json", record)
  except BaseException:
    directory.discard()
    raise
  return functools.partial(_run, config, argv, directory, console)


def _of_seed(
  config: config_lib.RunConfig, seed: int, directory: output.RunDirectory
) -> config_lib.RunConfig:
  return dataclasses.replace(
    config,
    seed=seed,
    num_seeds=1,
    workers=None,
    resume=True,
    output=str(directory.path / f"seed{seed}"),
  )


def _run(
  config: config_lib.RunConfig,
  argv: Sequence[str],
  directory: output.RunDirectory,
  console: console_lib.Console,
) -> int:
  """Runs the missing seeds, writes the files of all, and prints their results."""
  with contextlib.ExitStack() as stack:
    stack.callback(directory.unlock)
    configs = [_of_seed(config, seed, directory) for seed in config.seeds]
    tasks = [runs.task(f"seed{each.seed}", each, argv) for each in configs]
    store = runs.Store(directory, ".")
    workers = stack.enter_context(pool.Pool(console, workers=config.workers))
    console.line(f"{config.length} of each seed, into {directory.path}")
    done = workers.compute(runs.FUNCTION, tasks, store)
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
      return workers.exit_code or 1
    _finish(config, directory, each, console)
    return 0


def _finish(
  config: config_lib.RunConfig,
  directory: output.RunDirectory,
  each: Mapping[int, Mapping[str, Any]],
  console: console_lib.Console,
) -> None:
  """Writes the files of all seeds, and prints the results."""
  content = summary.of_seeds(each)
  directory.write_json("summary.json", content)
  title = f"{config.agent} on {config.env}"
  curves = [_returns(directory.path / f"seed{seed}") for seed in config.seeds]
  if all(map(len, curves)) and plots.can_draw():
    draw = functools.partial(plots.seeds_curve, seeds=curves, title=title)
    directory.write("curve.png", draw)
  console.line(f"\n{summary.table_of_seeds(title, content)}")
  compare = f"python -m explorax.experiments.compare {shlex.quote(str(directory.path))}"
  console.line(f"\nThe files are in {directory.path}. To compare: {compare}")


def _returns(path: pathlib.Path) -> returns.Returns:
  found = returns.Returns()
  for episode in metrics_csv.read(path / "metrics.csv"):
    found.add(episode)
  return found
