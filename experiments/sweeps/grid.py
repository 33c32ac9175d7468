"""A grid of runs: agents × environments × seeds, each run with its own directory.

OUTPUT/AGENT/ENV/seed0   a run, as `experiments.run` leaves it
OUTPUT/AGENT/ENV         the files of all seeds, if there are several
OUTPUT/sweep.json        the commands, and all runs that they asked for

`run --seeds=5` is a grid of one agent and environment, directly in OUTPUT.
"""

import contextlib
import dataclasses
import functools
import itertools
import pathlib
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import jax

from explorax import environments
from explorax.experiments import config as config_lib
from explorax.experiments import errors, job, output, overrides, resuming
from explorax.experiments.recording import console as console_lib
from explorax.experiments.recording import metrics_csv, recorder, returns, summary
from explorax.experiments.tasks import index, pool, runs

if TYPE_CHECKING:
  from explorax.experiments import command

Summaries = Mapping[int, Mapping[str, Any]]  # Seed → the content of `summary.json`.


@dataclasses.dataclass(frozen=True)
class Cell:
  """The runs of an agent in an environment.

  Attributes:
    config: of all seeds.
    left_out: why they do not run, in a few words; '' if they do.
    remark: a sentence for the user; '' if there is none, or another cell has it.
  """

  config: config_lib.RunConfig
  left_out: str = ""
  remark: str = ""


class Grid:
  """Runs in a directory, and which of them are missing.

  Attributes:
    cells: all agents in all environments.
    directory: locked until `close`.
  """

  def __init__(
    self,
    configs: Iterable[config_lib.RunConfig],
    directory: output.RunDirectory,
    argv: Sequence[str],
    console: console_lib.Console,
  ):
    """Checks the runs.

    Args:
      configs: one for each agent and environment, each with all seeds.
      directory: of all runs.
      argv: the command line.
      console: for progress and results.

    Raises:
      SetUpError: if a run cannot start.
      OutputError: if a directory holds another run.
    """
    self.directory = directory
    self._argv = argv
    self._console = console
    checked: set[tuple[str, ...]] = set()
    self.cells = [_check(config, checked) for config in configs]
    paths = [cell.config.output for cell in self.cells]
    if len(set(paths)) < len(paths):
      twice = next(path for path in paths if paths.count(path) > 1)
      raise errors.SetUpError(
        f"two agents or environments would share the directory {twice}; run one of "
        "them in a sweep of its own."
      )

  def compute(self, where: pool.Pool) -> int:
    """Computes the missing runs; returns the exit code.

    0: all done; 1: a run failed; otherwise that of the pool, which was stopped.
    """
    self._report_left_out()
    cells = [cell for cell in self.cells if not cell.left_out]
    for cell in cells:
      if cell.remark:
        self._console.line(cell.remark)
    each = [(cell.config, run) for cell in cells for run in cell.config.runs()]
    each.sort(key=lambda x: x[1].seed)
    tasks = [runs.task(run, self._argv, self.directory.given) for _, run in each]
    done = where.compute(runs.FUNCTION, tasks, runs.Store(self.directory))
    found: dict[str, dict[int, Any]] = {}
    for (config, run), result in zip(each, done, strict=True):
      if result is not None:
        found.setdefault(config.output, {})[run.seed] = result.results
    for cell in cells:
      config, of_seeds = cell.config, found.get(cell.config.output, {})
      if 1 < config.num_seeds == len(of_seeds):
        write_files(config, of_seeds)
    left = sum(result is None for result in done) - where.failed
    _report_missing(where.failed, left)
    return where.exit_code if left else 1 if where.failed else 0

  def entries(self) -> Iterator[index.Entry]:
    """The runs, for the index."""
    for cell in self.cells:
      config = cell.config
      agent = overrides.join_name(config.agent, config.settings)
      path = pathlib.Path(config.output).relative_to(self.directory.given)
      for seed in config.seeds:
        yield index.Entry(
          str(path / f"seed{seed}"), agent, config.env, seed, cell.left_out
        )

  def _report_left_out(self) -> None:
    reasons = {cell.left_out for cell in self.cells}
    if "" not in reasons:
      raise errors.SetUpError(f"no run can start: {'; '.join(reasons)}.")
    for reason in reasons - {""}:
      envs = {cell.config.env for cell in self.cells if cell.left_out == reason}
      self._console.line(
        f"{summary.count(len(envs), 'environment')} left out: {reason}."
      )


def configs(
  given: Mapping[str, Any], agents: Sequence[str], envs: Sequence[str], output: str
) -> list[config_lib.RunConfig]:
  """A config for each environment and agent, with all seeds.

  Args:
    given: the flags of a run, except for these.
    agents: names with settings (`overrides.join_name`), or `module:function`.
    envs: names of environments; bsuite's have bsuite's own number of episodes, or those
      that are given if they are fewer.
    output: the directory of all runs.

  Raises:
    SetUpError: if settings are invalid.
  """
  found = []
  for env, name in itertools.product(envs, agents):
    agent, settings = overrides.split_name(name)
    if not all(settings):
      raise errors.SetUpError(f"the agent {name!r} has an empty setting.")
    values = {
      **given,
      "agent": agent,
      "env": env,
      "set": [*given["set"], *settings],
      "episodes": _episodes(env, given["episodes"]),
      "output": str(pathlib.Path(output, folder(name), folder(env))),
    }
    try:
      config, _ = job.resolve(config_lib.from_flags(values))
    except ValueError as error:
      raise errors.SetUpError(f"{name} on {env}: {error}") from error
    found.append(config)
  return found


def set_up_seeds(
  config: config_lib.RunConfig, argv: Sequence[str], console: console_lib.Console
) -> "command.Work":
  """Checks an agent in an environment with several seeds, and returns the work.

  Args:
    config: with several seeds, which are separate runs.
    argv: the command line, for config.json.
    console: for progress and results.
  """
  config, agent_config = job.resolve(config)
  directory = output.RunDirectory.create(
    config.output, may_hold_run=True, is_locked=True
  )
  try:
    grid = Grid([config], directory, argv, console)
    directory.write_json("config.json", job.make_record(config, argv, agent_config))
  except BaseException:
    directory.discard()
    raise
  return functools.partial(_compute_seeds, grid, config, console)


def _compute_seeds(
  grid: Grid, config: config_lib.RunConfig, console: console_lib.Console
) -> int:
  """Computes the missing seeds, and prints the results of all."""
  directory, workers = grid.directory, num_workers(config, config.workers)
  with contextlib.ExitStack() as stack:
    stack.callback(directory.unlock)
    code = grid.compute(stack.enter_context(pool.Pool(console, workers=workers)))
  if code == 0:
    each = {seed: runs.summary(path) for path, seed in directories(config)}
    console.line(f"\n{summary.table(_title(config), each)}")
    path = shlex.quote(str(directory.given))
    report = f"python -m explorax.experiments.report {path}"
    console.line(f"\nThe files are in {directory.given}. To compare: {report}")
  return code


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
    return None if jax.default_backend() == "cpu" else 1
  return asked


def write_files(config: config_lib.RunConfig, each: Summaries) -> None:
  """Writes the files of all seeds."""
  directory = output.RunDirectory(pathlib.Path(config.output))
  curves = []
  for path, _ in directories(config):
    curve = returns.Returns()
    for episode in metrics_csv.read(path / "metrics.csv"):
      curve.add(episode)
    curves.append(curve)
  recorder.write_files_of_seeds(directory, _title(config), each, curves)


def _title(config: config_lib.RunConfig) -> str:
  return f"{config.agent} on {config.env}"


def folder(name: str) -> str:
  """A name as a folder's: `my_agents.make` for `my_agents:make`."""
  return config_lib.safe_name(re.sub(r"^([\w.]+):(?=[A-Za-z_]\w*$)", r"\1.", name))


def _episodes(env: str, given: int | None) -> int | None:
  """The limit of episodes: of bsuite's environments, at most bsuite's own."""
  if not env.startswith("bsuite:"):
    return given
  full = environments.bsuite_sweeps.num_episodes(env.removeprefix("bsuite:"))
  return full if given is None else min(full, given)


def _check(config: config_lib.RunConfig, checked: set[tuple[str, ...]]) -> Cell:
  """Refuses what cannot start, and directories of other runs.

  A run of each agent and environment is set up once; of bsuite's environments only one,
  since they are many and alike.
  """
  name = f"{overrides.join_name(config.agent, config.settings)} on {config.env}"
  if left_out := _left_out(config.env):
    return Cell(config, left_out)
  is_bsuite = config.env.startswith("bsuite:")
  key = config.agent, str(config.settings), "bsuite" if is_bsuite else config.env
  remark = ""
  try:
    if key not in checked:
      checked.add(key)
      first = config.runs()[0]
      with contextlib.closing(job.make_parts(first, job.Given())) as parts:
        config = dataclasses.replace(config, episodes=parts.config.episodes)
        if few := job.few_updates(parts):
          remark = f"{name}: {few}"
  except (ValueError, TypeError) as error:
    raise errors.SetUpError(f"{name}: {error}") from error
  _, agent_config = job.resolve(config)
  record = job.settings_record(config, agent_config)
  for run in config.runs():
    directory = output.RunDirectory(pathlib.Path(run.output))
    if (directory.path / "config.json").exists():
      of_run = {**record, "seed": run.seed, "num_seeds": run.num_seeds}
      resuming.check_same(directory, directory.read_settings(), of_run)
  return Cell(config, remark=remark)


def _left_out(env: str) -> str:
  """Why an environment cannot run, if its data are missing; ''."""
  if not env.startswith("bsuite:mnist"):
    return ""
  return _mnist_problem(environments.bsuite_mnist.directory())


@functools.cache
def _mnist_problem(directory: str) -> str:
  return environments.bsuite_mnist.problem(directory)


def _report_missing(failed: int, left: int) -> None:
  """Says how many runs have failed, and how many are left."""
  if failed:
    console_lib.print_error(
      f"{summary.count(failed, 'run')} failed; the results of the others are kept. "
      "Run the same command again to retry the failed ones."
    )
  if left:
    console_lib.print_error(
      f"stopped with {summary.count(left, 'run')} left; run the same command again "
      "to resume."
    )
