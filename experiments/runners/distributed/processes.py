"""The Ray actors of a run, and their options."""

import secrets
import time
from typing import Any

import jax
import numpy as np

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
    handles: role → handle of each other process; replay first.
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
    import ray

    self._ray = ray
    found = None if hooks.checkpoints is None else hooks.checkpoints.found
    limit = rate_limit.rate_limit(agent.replay, config)
    self.run = messages.Run(
      secrets.token_hex(8),
      config,
      checkpoints.limit(found, config, limit),
      None if hooks.checkpoints is None else hooks.checkpoints.directory.absolute(),
    )
    num_actors, num_shards = config.num_actors or 1, config.replay_shards or 1
    actors = [messages.actor_role(i) for i in range(num_actors)]
    shards = [messages.replay_role(i) for i in range(num_shards)]
    roles = [*shards, messages.LEARNER, *actors, *evaluates * [messages.EVALUATOR]]
    self.board = self._start(
      messages.BOARD,
      board.Board,
      (roles, config, checkpoints.counts(found)),
      num_cpus=0,
    )
    self.handles: dict[str, Any] = {}
    self.tasks: dict[str, Any] = {}
    actor_key, learner_key = jax.random.split(jax.random.PRNGKey(config.seed))
    part = replay.of_shard(agent, num_shards)
    for i, role in enumerate(shards):
      self._start_worker(role, _shard(config), (part, i))
    self._start_worker(
      messages.LEARNER,
      learner.LearnerProcess,
      (agent, np.asarray(learner_key)),
      num_gpus=config.learner_gpus or 0,
      max_concurrency=2,  # `save` answers while `run` runs.
    )
    agent_and_make = ray.cloudpickle.dumps((agent, hooks.make_environment))
    for i, role in enumerate(actors):
      key = np.asarray(jax.random.fold_in(actor_key, i))
      self._start_worker(
        role, actor.ActorProcess, (agent_and_make, key, i), **_ONE_CORE
      )
    if evaluates:
      key = np.asarray(core.evaluation_key(actor_key))
      draws = None if hooks.observer is None else hooks.observer.draws
      self._start_worker(
        messages.EVALUATOR,
        evaluator.EvaluatorProcess,
        (agent_and_make, key, draws),
        **_ONE_CORE,
      )

  @property
  def shards(self) -> list[Any]:
    """The handles of replay."""
    return [handle for role, handle in self.handles.items() if _serves(role)]

  def replace(self, role: str) -> None:
    """Kills a process that hangs; Ray restarts it."""
    self._ray.kill(self.handles[role], no_restart=False)

  def kill(self) -> None:
    """Ends them at once; last replay and the board, which serve the others."""
    for role, handle in self.handles.items():
      if not _serves(role):
        self._ray.kill(handle)
    time.sleep(_SECONDS_BETWEEN_KILLS)
    for handle in (*self.shards, self.board):
      self._ray.kill(handle)

  def _start_worker(
    self, role: str, process: type, arguments: tuple[Any, ...], **options: Any
  ) -> None:
    """Starts a process that Ray restarts, and its task."""
    options = {"num_cpus": 1, **_RESTARTS, **options}
    self.handles[role] = self._start(role, process, (self.run, *arguments), **options)
    self.tasks[role] = self.handles[role].run.remote()

  def _start(
    self, role: str, process: type, arguments: tuple[Any, ...], **options: Any
  ) -> Any:
    options["name"] = f"{self.run.name} {role}"
    return self._ray.remote(process).options(**options).remote(*arguments)


def _serves(role: str) -> bool:
  return role.startswith("replay")


def _shard(config: config_lib.RunConfig) -> type:
  """The class of a shard of replay."""
  if config.replay == "memory":
    from explorax.experiments.runners.distributed import memory_shard

    return memory_shard.MemoryShard
  from explorax.experiments.runners.distributed import reverb_shard

  return reverb_shard.ReverbShard
