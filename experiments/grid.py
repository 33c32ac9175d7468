"""A grid of runs: agents × environments × seeds, each in a directory of its own.

OUTPUT/AGENT/ENV/seed0   a run, as `experiments.run` leaves it
OUTPUT/AGENT/ENV         the files of all seeds, if there are several

`run --seeds=5` is a grid of one agent and environment, directly in OUTPUT.
"""

import contextlib
import dataclasses
import itertools
import pathlib
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jax

from explorax import environments as environments_lib
from explorax import notation
from explorax.environments import atari57, atari_profiles
from explorax.experiments import (
  command,
  errors,
  output,
  pool,
  session,
  signals,
)
from explorax.experiments import config as config_lib
from explorax.experiments import parts as parts_lib
from explorax.experiments import settings as settings_lib
from explorax.experiments.recording import console as console_lib
from explorax.experiments.recording import summary
from explorax.experiments.reports import runs as runs_lib

# A comma inside a tuple without brackets is followed by a number; one between agents is
# followed by a name.
_BEFORE_AGENT = re.compile(r",(?=\s*[A-Za-z_])")
# A comma between environments is followed by a kind or a group; one within a profile is
# followed by a setting.
_BEFORE_ENV = re.compile(r",(?=\s*(?:[\w.]+:|\w+(?:[/,]|\s*$)))")

Configs = Sequence[config_lib.RunConfig]


def agents(names: str | None) -> list[str]:
  """Splits a list of agents, presets with settings or `module:function`.

  Commas within values are kept: `tdu@hidden_sizes=8,8, dqn`.

  Raises:
    SetUpError: if there is none.
  """
  agents = [""]
  for piece in _BEFORE_AGENT.split(names or ""):
    if agents[-1].count("(") > agents[-1].count(")"):
      agents[-1] += f",{piece}"
    else:
      agents.append(piece.strip())
  if not any(agents):
    raise errors.SetUpError(
      "--agents is missing; `python -m explorax.experiments.run --list_agents` shows "
      "the names."
    )
  return list(dict.fromkeys(filter(None, agents)))


def environments(sweep: str | None, envs: str | None) -> list[str]:
  """The names `kind:name` of all environments, without duplicates.

  Args:
    sweep: names of bsuite's sweeps, experiments, tags and ids, in any case, separated
      by commas: `SWEEP`, `deep_sea`, `memory`, `deep_sea/0`.
    envs: names of environments, and of groups of `atari57.groups()`, whose games'
      preprocessing may be set: `atari57_sparse_reward/sticky=0.25`.

  Raises:
    SetUpError: if there is none, or for a name that does not exist.
  """
  names = []
  groups = environments_lib.bsuite_sweeps.groups()
  known = {name.lower(): ids for name, ids in groups.items()}
  known |= {bsuite_id: (bsuite_id,) for bsuite_id in groups["SWEEP"]}
  for name in filter(None, map(str.strip, (sweep or "").lower().split(","))):
    _check_known(name, known, "--sweep", "a name of bsuite (--list)")
    names += [f"bsuite:{bsuite_id}" for bsuite_id in known[name]]
  games = atari57.groups()
  for name in filter(None, map(str.strip, _BEFORE_ENV.split(envs or ""))):
    group, slash, settings = name.partition("/")
    if ":" in name:
      names.append(name)
      continue
    _check_known(group, games, "--envs", "a 'kind:name' or a group of Atari games")
    for game in map(atari_profiles.camel_case, games[group]):
      names.append(f"atari:{game}{slash}{settings}")
  if not names:
    raise errors.SetUpError(
      "--sweep and --envs are missing: the first takes names of bsuite (--list), the "
      "second environments of any kind (`run --list_envs`)."
    )
  return list(dict.fromkeys(names))


def _check_known(name: str, known: Mapping[str, Any], flag: str, what: str) -> None:
  if name not in known:
    raise errors.SetUpError(
      f"{flag} has {name!r}, which is not {what}.{notation.nearest(name, list(known))}"
    )


def listing() -> str:
  """The names of groups of ids and of Atari games, with the size of each."""
  groups = environments_lib.bsuite_sweeps.groups()
  rows = [[name, f"{len(ids):3} ids"] for name, ids in groups.items()]
  rows += [[name, f"{len(games):3} games"] for name, games in atari57.groups().items()]
  return "\n".join(line.strip() for line in summary.aligned(rows))


def configs(
  flags: Mapping[str, Any],
  agents: Sequence[str],
  envs: Sequence[str],
  folder: pathlib.Path,
) -> list[config_lib.RunConfig]:
  """A config for each environment and agent, with all seeds.

  Args:
    flags: of a run; those below replace them.
    agents: names with settings (`settings_lib.join_name`), or `module:function`.
    envs: names of environments; bsuite's have bsuite's own number of episodes, or those
      of the flags if they are fewer.
    folder: of all runs.

  Raises:
    SetUpError: if a run cannot start.
  """
  configs = []
  for env, name in itertools.product(envs, agents):
    agent, settings = settings_lib.split_name(name)
    values = {
      **flags,
      "agent": agent,
      "env": env,
      "set": [*flags["set"], *settings],
      "episodes": _episodes(env, flags["episodes"]),
      "output": str(folder / _folder_name(name) / _folder_name(env)),
    }
    with _naming(name, env):
      configs.append(parts_lib.resolve(config_lib.from_flags(values))[0])
  return configs


def _folder_name(name: str) -> str:
  """A name as a folder's: `my_agents.make` for `my_agents:make`."""
  return config_lib.safe_name(re.sub(r"^([\w.]+):(?=[A-Za-z_]\w*$)", r"\1.", name))


def _episodes(env: str, limit: int | None) -> int | None:
  """The limit of episodes: of bsuite's environments, at most bsuite's own."""
  if not env.startswith("bsuite:"):
    return limit
  full = environments_lib.bsuite_sweeps.num_episodes(env.removeprefix("bsuite:"))
  return full if limit is None else min(full, limit)


@contextlib.contextmanager
def _naming(agent: str, env: str) -> Iterator[None]:
  """Makes errors in the block say for which agent and environment they are."""
  try:
    yield
  except (ValueError, TypeError) as error:
    raise errors.SetUpError(f"{agent} on {env}: {error}") from error


def checked(configs: Configs, console: console_lib.Console) -> list[Any]:
  """The configs that can run, with their limits; says which lack their data.

  One run of each agent and environment is set up, of bsuite's environments only one
  each: they are many and alike.

  Raises:
    SetUpError: if one cannot start, or none is left.
  """
  mnist = [config for config in configs if config.env.startswith("bsuite:mnist")]
  if mnist and (problem := environments_lib.bsuite_environments.missing_mnist()):
    console.line(f"bsuite's mnist is left out: {problem}.")
    configs = [config for config in configs if config not in mnist]
    if not configs:
      raise errors.SetUpError(f"no run can start: {problem}.")
  seen: set[Any] = set()
  runnable = []
  for config in configs:
    env = "bsuite" if config.env.startswith("bsuite:") else config.env
    key = config.agent, config.settings, env
    if key not in seen:
      seen.add(key)
      name = settings_lib.join_name(config.agent, config.settings)
      with _naming(name, config.env):
        parts = parts_lib.make(config.runs()[0])
      with contextlib.closing(parts):
        config = dataclasses.replace(config, episodes=parts.config.episodes)
    runnable.append(config)
  return runnable


def compute(
  configs: Configs,
  argv: Sequence[str],
  console: console_lib.Console,
  *,
  workers: int | None = None,
  ray_address: str | None = None,
) -> int:
  """Computes the runs that are missing; returns the exit code.

  0: all are finished; 1: a run failed; 130 or 143: a signal has stopped it.

  Args:
    configs: of all agents and environments, each with all seeds.
    argv: the command line, for config.json.
    console: for a line for each run that ends.
    workers, ray_address: see `pool.compute`.
  """
  runs = [run for config in configs for run in config.runs()]
  tasks = [
    pool.Task(run.output, (run, tuple(argv)))
    for run in sorted(runs, key=lambda run: run.seed)
    if not _is_finished(run)
  ]
  done, failed = 0, 0
  with signals.stop_on_signals() as stop:
    for task, outcome in pool.compute(
      perform, tasks, workers=workers, ray_address=ray_address, stop=stop
    ):
      done += 1
      if isinstance(outcome, pool.Failure):
        failed += 1
        _write_failure(pathlib.Path(task.name), outcome)
        console_lib.print_error(f"{task.name} failed: {outcome.problem}.")
      else:
        console.line(f"{done} of {len(tasks)}: {task.name}")
  for config in configs:
    if config.num_seeds > 1 and all(map(_is_finished, config.runs())):
      session.write_files_of_seeds(config, _summaries(config))
  left = len(tasks) - done
  for number, why in ((failed, "failed"), (left, "left")):
    if number:
      console_lib.print_error(
        f"{summary.count(number, 'run')} {why}; the same command again computes only "
        "what is missing."
      )
  return stop.exit_code if left else 1 if failed else 0


def _write_failure(directory: pathlib.Path, failure: pool.Failure) -> None:
  """Writes `error.txt`, unless the run has begun and has written it itself."""
  if not (directory / session.ERROR).exists():
    text = f"{failure.details}{failure.problem}\n".encode()
    output.RunDirectory(directory).write(session.ERROR, lambda file: file.write(text))


def perform(argument: tuple[config_lib.RunConfig, tuple[str, ...]]) -> bool:
  """Runs a run, from its newest checkpoint if there is one; raises what ended it."""
  config, argv = argument
  with contextlib.closing(session.set_up(config, argv)) as made:
    if made.run(console_lib.Console(None)):
      raise pool.StoppedError
  return True


def _is_finished(run: config_lib.RunConfig) -> bool:
  """Whether the run has ended, no earlier than it now should.

  Raises:
    OutputError: if its directory holds a run with other settings.
  """
  directory = output.RunDirectory(run.output)
  if not directory.is_finished():
    return False
  recorded = directory.read_settings()
  requested = session.settings_record(*parts_lib.resolve(run))
  return not config_lib.check_resumable(directory.given, recorded, requested)


def set_up_seeds(
  config: config_lib.RunConfig, argv: Sequence[str], console: console_lib.Console
) -> command.Work:
  """Checks an agent in an environment with several seeds, and returns the work.

  Args:
    config: with several seeds, which are separate runs.
    argv: the command line, for config.json.
    console: for progress and results.
  """
  config, agent_config = parts_lib.resolve(config)
  directory = output.RunDirectory.create(config.output)
  try:
    (config,) = checked([config], console)
    directory.write_json("config.json", session.make_record(config, argv, agent_config))
  except BaseException:
    directory.unlock()
    raise

  def work() -> int:
    workers = num_workers(config, config.workers)
    try:
      code = compute([config], argv, console, workers=workers)
    finally:
      directory.unlock()
    if code == 0:
      title = f"{config.agent} on {config.env}"
      path = shlex.quote(str(directory.given))
      console.line(f"\n{summary.to_text(title, _summaries(config))}")
      console.line(f"\nTo compare: python -m explorax.experiments.report {path}")
    return code

  return work


def num_workers(config: config_lib.RunConfig, workers: int | None) -> int | None:
  """The number of runs at a time; None for one per core.

  One if the runs share an accelerator, or have processes of their own.
  """
  if config.runner == config_lib.DISTRIBUTED:
    return 1
  if config.runner == config_lib.DEVICE and jax.default_backend() != "cpu":
    return workers or 1
  return workers


def directories(config: config_lib.RunConfig) -> Iterator[tuple[pathlib.Path, int]]:
  """The directory of each seed's run, and the seed."""
  for seed in config.seeds:
    yield pathlib.Path(config.output) / f"seed{seed}", seed


def _summaries(config: config_lib.RunConfig) -> dict[int, Any]:
  """Seed → the content of its `summary.json`."""
  return {seed: runs_lib.read_summary(path) for path, seed in directories(config)}
