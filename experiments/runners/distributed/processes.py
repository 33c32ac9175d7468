"""The Ray actors of a run, and their options."""

import secrets
import time
from typing import Any, NamedTuple

import jax
import numpy as np
import ray

from explorax.agents import types
from explorax.experiments import config as config_lib
from explorax.experiments import threads
from explorax.experiments.runners import core
from explorax.experiments.runners.distributed import (
  actor,
  board,
  checkpoints,
  evaluator,
  learner,
  messages,
  rate_limit,
  replay,
)

# Of all processes but the board: Ray restarts them, and repeats the calls under way.
_RESTARTS = {"max_restarts": -1, "max_task_retries": -1}
_ONE_CORE = {
  "runtime_env": {"env_vars": {**threads.ONE_THREAD, "JAX_PLATFORMS": "cpu"}}
}
_SECONDS_BETWEEN_KILLS = 0.2  # Between workers and the processes that serve them.


class Processes:
  """The Ray actors of a run.

  Attributes:
    run: what each of them knows.
    board: handle of the board.
    handles: role → handle of each other process.
    shards: those of replay.
    tasks: role → its running task; of replay, a call that fails if it cannot start.
  """

  def __init__(
    self,
    agent: types.Agent,
    config: config_lib.RunConfig,
    hooks: core.Hooks,
    evaluates: bool,
  ):
    """Starts all of them."""
    found = None if hooks.checkpoints is None else hooks.checkpoints.restored
    limit = rate_limit.rate_limit(agent.replay, config)
    self.run = messages.Run(
      secrets.token_hex(8),
      config,
      checkpoints.limit(found, config, limit),
      None if hooks.checkpoints is None else hooks.checkpoints.directory.absolute(),
    )
    workers = _workers(agent, config, hooks, evaluates)
    counts = checkpoints.counts(found)
    self.board = self._start(
      messages.BOARD, board.Board, [*workers], config, counts, num_cpus=0
    )
    self.handles = {
      role: self._start(
        role,
        worker.process,
        self.run,
        *worker.arguments,
        num_cpus=1,
        **_RESTARTS,
        **worker.options,
      )
      for role, worker in workers.items()
    }
    self.shards = [h for role, h in self.handles.items() if role.startswith("replay")]
    self.tasks = {role: handle.run.remote() for role, handle in self.handles.items()}

  def replace(self, role: str) -> None:
    """Kills a process that hangs; Ray restarts it."""
    ray.kill(self.handles[role], no_restart=False)

  def kill(self) -> None:
    """Ends them at once; last replay and the board, which serve the others."""
    for handle in self.handles.values():
      if handle not in self.shards:
        ray.kill(handle)
    time.sleep(_SECONDS_BETWEEN_KILLS)
    for handle in (*self.shards, self.board):
      ray.kill(handle)

  def _start(self, role: str, process: type, *arguments: Any, **options: Any) -> Any:
    options["name"] = f"{self.run.name} {role}"
    return ray.remote(process).options(**options).remote(*arguments)


class _Worker(NamedTuple):
  """How a process is started: `process(run, *arguments)`, with options of Ray."""

  process: type
  arguments: tuple[Any, ...]
  options: dict[str, Any]


def _workers(
  agent: types.Agent,
  config: config_lib.RunConfig,
  hooks: core.Hooks,
  evaluates: bool,
) -> dict[str, _Worker]:
  """Role → its process, in the order of starting."""
  actor_key, learner_key = jax.random.split(jax.random.PRNGKey(config.seed))
  num_shards = config.replay_shards or 1
  part = replay.of_shard(agent, num_shards)
  workers = {
    messages.replay_role(i): _Worker(replay.process(config), (part, i), {})
    for i in range(num_shards)
  }
  workers[messages.LEARNER] = _Worker(
    learner.LearnerProcess,
    (agent, np.asarray(learner_key)),
    # `save` answers while `run` runs.
    {"num_gpus": config.learner_gpus or 0, "max_concurrency": 2},
  )
  agent_and_make = ray.cloudpickle.dumps((agent, hooks.make_environment))
  for i in range(config.num_actors or 1):
    key = np.asarray(jax.random.fold_in(actor_key, i))
    workers[messages.actor_role(i)] = _Worker(
      actor.ActorProcess, (agent_and_make, key, i), _ONE_CORE
    )
  if evaluates:
    key = np.asarray(core.evaluation_key(actor_key))
    draws = None if hooks.observer is None else hooks.observer.draws
    workers[messages.EVALUATOR] = _Worker(
      evaluator.EvaluatorProcess, (agent_and_make, key, draws), _ONE_CORE
    )
  return workers
