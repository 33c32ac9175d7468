"""Computes one task of a sweep, in whatever process it is called."""

import time
import traceback
from collections.abc import Callable
from typing import Any, NamedTuple

from explorax import environments
from explorax.environments import bsuite_environments, bsuite_sweeps
from explorax.experiments.sweeps import agents, tasks, unfinished, user_agents


class Outcome(NamedTuple):
  """What came of a task: plain data, which can cross processes.

  Attributes:
    rows: what bsuite logs; None if the task failed.
    problem: what went wrong, a sentence without its full stop; '' if nothing did.
    details: a traceback; '' if nothing went wrong.
    seconds: how long it took, in all processes that it went on in.
    runner: `local`, `device` or `own`, the loop of users' agents.
  """

  rows: list[dict[str, Any]] | None
  problem: str
  details: str
  seconds: float
  runner: str


Tick = Callable[[float], None]
Rows = list[dict[str, Any]]


def perform(
  task: tasks.Task,
  mnist_dir: str,
  tick: Tick,
  place: unfinished.Place | None = None,
) -> Outcome:
  """Runs the task, from its newest checkpoint if there is one.

  Whatever goes wrong is in the outcome.

  Args:
    task: to be done.
    mnist_dir: where the MNIST files are.
    tick: told now and then the share that is done.
    place: of checkpoints; None for none.
  """
  runner = runner_of(task)
  start = time.monotonic()
  before = 0.0
  try:
    if runner == "own":
      rows = _own(task, mnist_dir, tick)
    else:
      run = _local if runner == "local" else _device
      settings = agents.identity(task.agent)
      with unfinished.open_saves(place, task, settings) as saves:
        before = saves.seconds if saves else 0.0
        rows = run(task, mnist_dir, tick, saves)
  except (Exception, SystemExit) as error:
    # A SystemExit of a user's agent would end the whole process.
    problem = f"{type(error).__name__}: {str(error).rstrip('.')}{_place(error)}"
    seconds = before + time.monotonic() - start
    return Outcome(None, problem, traceback.format_exc(), seconds, runner)
  return Outcome(rows, "", "", before + time.monotonic() - start, runner)


def runner_of(task: tasks.Task) -> str:
  """The device runner where the environment has a twin in JAX, the local elsewhere."""
  if not agents.is_preset(task.agent):
    return "own"
  return "local" if bsuite_sweeps.twin(task.bsuite_id) is None else "device"


def _load(
  task: tasks.Task, mnist_dir: str, rows: Rows
) -> environments.StandardEnvironment:
  """bsuite's environment, which will add to the rows what it logs."""
  return bsuite_environments.load(
    task.bsuite_id,
    seed=task.seed,
    on_row=lambda row: rows.append({k: _plain(v) for k, v in row.items()}),
    mnist_dir=mnist_dir,
  )


def _local(
  task: tasks.Task, mnist_dir: str, tick: Tick, saves: unfinished.Saves | None
) -> Rows:
  from explorax.experiments.runners import local

  rows = saves.rows if saves else []
  environment = _load(task, mnist_dir, rows)
  episodes = asked_after = 0

  def on_episode(episode: local.Episode) -> None:
    nonlocal episodes
    episodes = episode.episode
    tick(episodes / task.num_episodes)

  def at_an_end() -> bool:
    """Whether an episode has ended since the last time that this was asked."""
    nonlocal asked_after
    ended, asked_after = episodes > asked_after, episodes
    return ended

  if saves:
    saves.attach(rows, dict, lambda: episodes == task.num_episodes)
    saves.keeper.permits = at_an_end
  local.run(
    agents.make(task.agent, task.bsuite_id, environment),
    environment,
    seed=task.seed,
    replay="memory",  # It repeats to the bit.
    num_episodes=task.num_episodes,
    on_episode=on_episode,
    checkpoints=saves.keeper if saves else None,
  )
  return rows


def _device(
  task: tasks.Task, mnist_dir: str, tick: Tick, saves: unfinished.Saves | None
) -> Rows:
  from explorax.experiments.runners import device

  del mnist_dir
  rows = saves.rows if saves else []
  log = bsuite_sweeps.TwinLog(lambda row: rows.append(dict(row)))
  if saves and saves.log:
    log.restore(saves.log)
  environment = environments.make(
    bsuite_sweeps.twin(task.bsuite_id) or "", seed=task.seed
  )

  def on_episode(episode: Any) -> None:
    # The runner looks at the device now and then, and may see some more.
    if episode.episode <= task.num_episodes:
      log.take(episode.episode_length, episode.episode_return, episode.metrics)
      tick(episode.episode / task.num_episodes)

  if saves:
    saves.attach(rows, log.save, lambda: log.episodes >= task.num_episodes)
  device.run(
    agents.make(task.agent, task.bsuite_id, environment),
    environment,
    seed=task.seed,
    num_episodes=task.num_episodes,
    on_episode=on_episode,
    checkpoints=saves.keeper if saves else None,
  )
  return rows


def _own(task: tasks.Task, mnist_dir: str, tick: Tick) -> Rows:
  rows: Rows = []
  environment = _load(task, mnist_dir, rows)
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
