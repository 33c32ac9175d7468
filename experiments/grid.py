"""A grid of runs: agents × environments × seeds, each in a directory of its own.

OUTPUT/AGENT/ENV/seed0   a run, as `experiments.run` leaves it
OUTPUT/AGENT/ENV         the files of all seeds, if there are several

`run --seeds=5` is a grid of one agent and environment, directly in OUTPUT.
"""

import contextlib
import itertools
import operator
import pathlib
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import jax

from explorax import environments as environments_lib
from explorax import notation
from explorax.environments import atari57, atari_profiles
from explorax.experiments import command, errors, output, pool, session, signals
from explorax.experiments import config as config_lib
from explorax.experiments import parts as parts_lib
from explorax.experiments import settings as settings_lib
from explorax.experiments.recording import console as console_lib
from explorax.experiments.recording import recorder, summary
from explorax.experiments.reports import runs as runs_lib

# A comma before an agent; others are in a value: `tdu@hidden_sizes=8,8`, `F(a=1,b=2)`.
_BEFORE_AGENT = re.compile(r",(?=\s*[A-Za-z_][\w.:]*\s*(?:[@,]|$))")
# A comma between environments is followed by a kind or a group; one within a profile is
# followed by a setting.
_BEFORE_ENV = re.compile(r",(?=\s*(?:[\w.]+:|\w+(?:[/,]|\s*$)))")

Configs = Sequence[config_lib.RunConfig]


def agents(names: str | None) -> list[str]:
  """Splits a list of agents, presets with settings or `module:function`.

  Raises:
    SetUpError: if there is none.
  """
  agents = [name.strip() for name in _BEFORE_AGENT.split(names or "")]
  if not any(agents):
    raise errors.SetUpError(
      "--agents is missing; `python -m explorax.experiments.run --list_agents` shows "
      "the names."
    )
  return list(dict.fromkeys(filter(None, agents)))


def environments(sweep: str | None, envs: str | None) -> list[str]:
  """The names `kind:name` of all environments, without duplicates.

  bsuite's mnist is left out, with a message, if its files are missing.

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
    _check_known(name, known, "--sweep", "a name of bsuite")
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
  is_mnist = [name.startswith("bsuite:mnist") for name in names]
  if any(is_mnist) and (
    problem := environments_lib.bsuite_environments.missing_mnist()
  ):
    console_lib.print_error(f"bsuite's mnist is left out: {problem}.")
    names = list(itertools.compress(names, (not x for x in is_mnist)))
  if not names:
    raise errors.SetUpError(
      "--sweep and --envs name no environment: the first takes names of bsuite, the "
      "second environments of any kind (`run --list_envs`)."
    )
  return list(dict.fromkeys(names))


def _check_known(name: str, known: Mapping[str, Any], flag: str, what: str) -> None:
  if name not in known:
    raise errors.SetUpError(
      f"{flag} has {name!r}, which is not {what}.{notation.nearest(name, list(known))}"
    )


def configs(
  flags: Mapping[str, Any],
  agents: Sequence[str],
  envs: Sequence[str],
  folder: pathlib.Path,
) -> list[config_lib.RunConfig]:
  """A config for each environment and agent, with all seeds, in a folder of all runs.

  Raises:
    SetUpError, ValueError, TypeError: if a run cannot start.
  """
  configs = []
  for env, name in itertools.product(envs, agents):
    agent, settings = settings_lib.split_name(name)
    path = folder / config_lib.safe_name(name) / config_lib.safe_name(env)
    values = {**flags, "agent": agent, "env": env, "output": str(path)}
    values["set"] = [*flags["set"], *settings]
    configs.append(parts_lib.resolve(config_lib.from_flags(values))[0])
  return configs


def check(configs: Configs) -> None:
  """Sets up a run of each agent in each environment, of bsuite's in one.

  Atari's games take long to load: each is set up once, and each agent in one of them.

  Raises:
    SetUpError, ValueError, TypeError: if one cannot start.
  """
  kinds: dict[Any, config_lib.RunConfig] = {}
  for config in configs:
    kind = config.env.partition(":")[0]
    env = kind if kind in ("atari", "bsuite") else config.env
    kinds[config.agent, config.settings, env] = config
    if kind == "atari":
      kinds[config.env] = config
  for config in kinds.values():
    with parts_lib.opened(config.runs()[0]):
      pass


def compute(
  configs: Configs,
  console: console_lib.Console,
  *,
  workers: int | None = None,
  ray_address: str | None = None,
) -> int:
  """Computes the runs that are missing; returns the exit code.

  0: all are finished; 1: a run failed; 130 or 143: a signal has stopped it.

  `workers` and `ray_address` are those of `pool.compute`; by default one run at a time
  if they share an accelerator or have processes of their own.
  """
  runs = [run for config in configs for run in config.runs()]
  tasks = [
    pool.Task(run.output, run)
    for run in sorted(runs, key=lambda run: run.seed)
    if not _is_finished(run)
  ]
  is_device = configs[0].runner == config_lib.DEVICE
  if is_device and workers is None and jax.default_backend() != "cpu":
    workers = 1
  if configs[0].runner == config_lib.DISTRIBUTED:
    workers = 1
  done, failed = 0, 0
  with signals.stop_on_signals() as stop:
    for task, outcome in pool.compute(
      perform, tasks, workers=workers, ray_address=ray_address, stop=stop
    ):
      done += 1
      if isinstance(outcome, pool.Failure):
        failed += 1
        if not pathlib.Path(task.name, session.ERROR).exists():  # Else by the run.
          text = f"{outcome.details}{outcome.problem}\n".encode()
          directory = output.RunDirectory(task.name)
          directory.write(session.ERROR, operator.methodcaller("write", text))
        console_lib.print_error(f"{task.name} failed: {outcome.problem}.")
      else:
        console.line(f"{done} of {len(tasks)}: {task.name}")
  for config in configs:
    if config.num_seeds > 1 and all(map(_is_finished, config.runs())):
      directory = output.RunDirectory(config.output)
      recorder.write_files_of_seeds(directory, config, _summaries(config))
  if missing := failed + len(tasks) - done:
    console_lib.print_error(
      f"{summary.count(missing, 'run')} missing; the same command again "
      "computes only these."
    )
  return stop.exit_code if done < len(tasks) else 1 if failed else 0


def perform(config: config_lib.RunConfig) -> bool:
  """Runs a run, from its newest checkpoint if there is one; raises what ended it."""
  # The command that repeats it, for config.json.
  names = {"settings": "set", "num_seeds": "seeds"}
  argv = [
    f"--{names.get(name, name)}={value}"
    for name, values in config.chosen().items()
    for value in (values if isinstance(values, tuple) else [values])
  ]
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
  _, requested = parts_lib.resolve(run)
  return not config_lib.check_resumable(directory.path, recorded, requested)


def set_up_seeds(
  config: config_lib.RunConfig, argv: Sequence[str], console: console_lib.Console
) -> command.Work:
  """Checks a run with several seeds, which are separate runs, and returns the work."""
  config, settings = parts_lib.resolve(config)
  check([config])
  directory = output.RunDirectory.create(config.output)

  def work() -> int:
    with contextlib.ExitStack() as stack:
      stack.callback(directory.unlock)
      record = {**session.record_of_command(argv), **settings}
      directory.write_json("config.json", record)
      code = compute([config], console, workers=config.workers)
    if code == 0:
      title = f"{config.agent} on {config.env}"
      path = shlex.quote(str(directory.path))
      console.line(f"\n{summary.to_text(title, _summaries(config))}")
      console.line(f"\nTo compare: python -m explorax.experiments.report {path}")
    return code

  return work


def directories(config: config_lib.RunConfig) -> dict[int, pathlib.Path]:
  """Seed → the directory of its run."""
  return {run.seed: pathlib.Path(run.output) for run in config.of_seeds()}


def _summaries(config: config_lib.RunConfig) -> dict[int, Any]:
  """Seed → the content of its `summary.json`."""
  paths = directories(config)
  return {seed: runs_lib.read_summary(path) for seed, path in paths.items()}
