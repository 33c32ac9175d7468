"""Runs one task of a sweep: an agent on one bsuite id with one seed.

Our agents resume bit for bit: on Deep Sea at the reports of the device runner; with
bsuite's own environments at the ends of episodes, since their state cannot be saved
within one. Users' agents cannot be saved, and their tasks restart.
"""

import hashlib
import json
import math
import shutil
from collections.abc import Callable, Mapping
from importlib import metadata
from typing import Any

from explorax import environments
from explorax.environments import bsuite_environments, bsuite_sweeps
from explorax.experiments import errors
from explorax.experiments.checkpoints import checkpointer
from explorax.experiments.sweeps import agents, records, user_agents
from explorax.experiments.tasks import types

FUNCTION = f"{__name__}:perform"
# A task restarts if these versions, on which its numbers depend, have changed.
_ARITHMETIC = ("explorax", "jax", "jaxlib", "dm-haiku", "optax", "numpy")

Rows = list[dict[str, Any]]


def perform(settings: types.Settings, context: types.TaskContext) -> types.Results:
  """Runs the task, from its newest checkpoint if there is one.

  Args:
    settings: from `records.task`; its context has `mnist_dir` (of the MNIST files) and
      `checkpoint_minutes` (between two checkpoints).
    context: its `report` receives the share of the episodes that is done.

  Returns:
    `rows`, which bsuite logs, and `runner`: `local`, `device` or `own`, the loop for
    users' agents.
  """
  runner = runner_of(settings["agent"], settings["bsuite_id"])
  rows = {"own": _own, "local": _local, "device": _device}[runner](settings, context)
  return {"rows": rows, "runner": runner}


def runner_of(agent: str, bsuite_id: str) -> str:
  """The device runner if the environment also exists in JAX, else the local runner."""
  if not agents.is_preset(agent):
    return "own"
  return "local" if bsuite_sweeps.jax_equivalent(bsuite_id) is None else "device"


def _local(settings: types.Settings, context: types.TaskContext) -> Rows:
  from explorax.experiments import config
  from explorax.experiments.runners import core, local

  checkpoints, found = _checkpoints(settings, context)
  rows: Rows = found.get("rows", [])
  environment = _load(settings, rows)
  num_episodes = settings["num_episodes"]
  episodes = asked_after = 0

  def on_episode(episode: core.Episode) -> None:
    nonlocal episodes
    episodes = episode.episode
    context.report(episodes / num_episodes)

  def at_an_end() -> bool:
    """Whether an episode has ended since the last call."""
    nonlocal asked_after
    ended, asked_after = episodes > asked_after, episodes
    return ended

  if checkpoints is not None:
    checkpoints.permits = at_an_end
    checkpoints.companion = _companion(rows, dict, lambda: episodes == num_episodes)
  local.run(
    agents.make(settings["agent"], settings["bsuite_id"], environment),
    environment,
    # The memory replay is reproducible bit for bit.
    config.RunConfig(seed=settings["seed"], replay="memory", episodes=num_episodes),
    core.Hooks(on_episode=on_episode, checkpoints=checkpoints),
  )
  return rows


def _device(settings: types.Settings, context: types.TaskContext) -> Rows:
  from explorax.experiments import config
  from explorax.experiments.runners import core, device

  checkpoints, found = _checkpoints(settings, context)
  rows: Rows = found.get("rows", [])
  log = bsuite_sweeps.DeepSeaLog(lambda row: rows.append(dict(row)))
  if found:
    log.restore(found["log"])
  twin = bsuite_sweeps.jax_equivalent(settings["bsuite_id"]) or ""
  environment = environments.make(twin, seed=settings["seed"])
  num_episodes = settings["num_episodes"]

  def on_episode(episode: Any) -> None:
    # The runner reports at intervals, and may report further episodes.
    if episode.episode <= num_episodes:
      log.add_episode(episode.episode_length, episode.episode_return, episode.metrics)
      context.report(episode.episode / num_episodes)

  if checkpoints is not None:
    complete = lambda: log.episodes >= num_episodes  # noqa: E731
    checkpoints.companion = _companion(rows, log.save, complete)
  device.run(
    agents.make(settings["agent"], settings["bsuite_id"], environment),
    environment,
    config.RunConfig(runner="device", seed=settings["seed"], episodes=num_episodes),
    core.Hooks(on_episode=on_episode, checkpoints=checkpoints),
  )
  return rows


def _own(settings: types.Settings, context: types.TaskContext) -> Rows:
  rows: Rows = []
  environment = _load(settings, rows)
  num_episodes = settings["num_episodes"]
  agent = user_agents.make(settings["agent"], environment, settings["seed"])
  on_episode = lambda episode: context.report(episode / num_episodes)  # noqa: E731
  user_agents.run(agent, environment, num_episodes, on_episode)
  return rows


def _load(settings: types.Settings, rows: Rows) -> environments.StandardEnvironment:
  """bsuite's environment, which appends its log to `rows`."""
  return bsuite_environments.load(
    settings["bsuite_id"],
    seed=settings["seed"],
    on_row=lambda row: rows.append({k: _plain(v) for k, v in row.items()}),
    mnist_dir=settings.get("mnist_dir", ""),
  )


def _checkpoints(
  settings: types.Settings, context: types.TaskContext
) -> tuple[checkpointer.Checkpointer | None, dict[str, Any]]:
  """The task's checkpoints, and what was saved beside the one it resumes from.

  None if there is no folder for them. The folder's name contains a hash of the
  settings, so they are this task's.
  """
  folder = context.folder
  if folder is None:
    return None, {}
  made_by = [records.REVISION, *(metadata.version(name) for name in _ARITHMETIC)]
  run = hashlib.sha256(json.dumps(made_by).encode()).hexdigest()
  minutes = settings.get("checkpoint_minutes", math.inf)

  def find() -> checkpointer.Checkpointer:
    folder.mkdir(parents=True, exist_ok=True)
    return checkpointer.Checkpointer(folder, run, with_replay=True, minutes=minutes)

  try:
    checkpoints = find()
  except OSError:  # On a full disk the task runs without checkpoints.
    return None, {}
  except errors.OutputError:  # Damaged, or from other versions.
    shutil.rmtree(folder, ignore_errors=True)
    checkpoints = find()
  context.seconds_before = checkpoints.seconds
  found = checkpoints.found
  return checkpoints, dict(found.record["companion"]) if found else {}


def _companion(
  rows: Rows, log: Callable[[], Mapping[str, Any]], complete: Callable[[], bool]
) -> Callable[[], Mapping[str, Any] | None]:
  """What a checkpoint contains besides the runner's state; None if nothing is needed.

  Args:
    rows: a growing list.
    log: further state of its writer.
    complete: whether the task is done.
  """
  return lambda: None if complete() else {"rows": rows, "log": log()}


def _plain(value: Any) -> Any:
  """Converts a number of numpy's to Python's."""
  return value.item() if hasattr(value, "item") else value
