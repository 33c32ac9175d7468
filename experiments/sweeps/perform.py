"""Computes one task of a sweep, in whatever process it is called."""

import time
import traceback
from collections.abc import Callable
from typing import Any, NamedTuple

from explorax import environments
from explorax.environments import bsuite_environments, bsuite_sweeps
from explorax.experiments import presets
from explorax.experiments.sweeps import tasks, user_agents


class Outcome(NamedTuple):
  """What came of a task: plain data, which can cross processes.

  Attributes:
    rows: what bsuite logs; None if the task failed.
    problem: what went wrong, a sentence without its full stop; '' if nothing did.
    details: a traceback; '' if nothing went wrong.
    seconds: how long it took.
    runner: `local`, `device` or `own`, the loop of users' agents.
  """

  rows: list[dict[str, Any]] | None
  problem: str
  details: str
  seconds: float
  runner: str


Tick = Callable[[float], None]


def perform(task: tasks.Task, mnist_dir: str, tick: Tick) -> Outcome:
  """Runs the task from its beginning; whatever goes wrong is in the outcome.

  This is where a task that was interrupted would go on from a checkpoint.

  Args:
    task: to be done.
    mnist_dir: where the MNIST files are.
    tick: told now and then the share that is done.
  """
  runner = runner_of(task)
  run = {"local": _local, "device": _device, "own": _own}[runner]
  start = time.monotonic()
  try:
    rows = run(task, mnist_dir, tick)
  except (Exception, SystemExit) as error:
    # A SystemExit of a user's agent would end the whole process.
    problem = f"{type(error).__name__}: {str(error).rstrip('.')}{_place(error)}"
    seconds = time.monotonic() - start
    return Outcome(None, problem, traceback.format_exc(), seconds, runner)
  return Outcome(rows, "", "", time.monotonic() - start, runner)


def runner_of(task: tasks.Task) -> str:
  """The device runner where the environment has a twin in JAX, the local elsewhere."""
  if task.agent not in presets.PRESETS:
    return "own"
  return "local" if bsuite_sweeps.twin(task.bsuite_id) is None else "device"


def _load(
  task: tasks.Task, mnist_dir: str
) -> tuple[environments.StandardEnvironment, list[dict[str, Any]]]:
  """bsuite's environment, and the rows that it will have logged."""
  rows: list[dict[str, Any]] = []
  environment = bsuite_environments.load(
    task.bsuite_id,
    seed=task.seed,
    on_row=lambda row: rows.append({k: _plain(v) for k, v in row.items()}),
    mnist_dir=mnist_dir,
  )
  return environment, rows


def _agent(task: tasks.Task, environment: environments.StandardEnvironment) -> Any:
  preset = presets.PRESETS[task.agent]
  config = preset.config_for(f"bsuite:{task.bsuite_id}")
  return preset.make_agent(config, environments.spec(environment))


def _local(task: tasks.Task, mnist_dir: str, tick: Tick) -> list[dict[str, Any]]:
  from explorax.experiments.runners import local

  environment, rows = _load(task, mnist_dir)
  local.run(
    _agent(task, environment),
    environment,
    seed=task.seed,
    replay="memory",  # It repeats to the bit.
    num_episodes=task.num_episodes,
    on_episode=lambda episode: tick(episode.episode / task.num_episodes),
  )
  return rows


def _device(task: tasks.Task, mnist_dir: str, tick: Tick) -> list[dict[str, Any]]:
  from explorax.experiments.runners import device

  del mnist_dir
  rows: list[dict[str, Any]] = []
  log = bsuite_sweeps.TwinLog(lambda row: rows.append(dict(row)))
  environment = environments.make(
    bsuite_sweeps.twin(task.bsuite_id) or "", seed=task.seed
  )

  def on_episode(episode: Any) -> None:
    # The runner looks at the device now and then, and may see some more.
    if episode.episode <= task.num_episodes:
      log.take(episode.episode_length, episode.episode_return, episode.metrics)
      tick(episode.episode / task.num_episodes)

  device.run(
    _agent(task, environment),
    environment,
    seed=task.seed,
    num_episodes=task.num_episodes,
    on_episode=on_episode,
  )
  return rows


def _own(task: tasks.Task, mnist_dir: str, tick: Tick) -> list[dict[str, Any]]:
  environment, rows = _load(task, mnist_dir)
  agent = user_agents.make(task.agent, environment, task.seed)
  user_agents.run(
    agent,
    environment,
    task.num_episodes,
    lambda episode: tick(episode / task.num_episodes),
  )
  return rows


def _plain(value: Any) -> Any:
  """A number of Python's, of numpy's."""
  return value.item() if hasattr(value, "item") else value


def _place(error: BaseException) -> str:
  """` (my_agents.py, line 12)`: where it was raised."""
  frames = traceback.extract_tb(error.__traceback__)
  return f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""
