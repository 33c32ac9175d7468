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

_FOREVER = {"max_restarts": -1, "max_task_retries": -1}
_ONE_CORE = {**threads.ONE_THREAD, "JAX_PLATFORMS": "cpu"}
_SECONDS_BETWEEN_KILLS = 0.2  # Between workers and the processes that serve them.


class Processes:
  """The Ray actors of a run.

  Attributes:
    board, shards, limit: for the driver.
    tasks: role → its running task; for shards, a call that fails with the process.
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
    self._run = secrets.token_hex(8)
    self._handles: list[Any] = []
    self.tasks: dict[str, Any] = {}
    num_actors, num_shards = config.num_actors or 1, config.replay_shards or 1
    actor_key, learner_key = jax.random.split(jax.random.PRNGKey(config.seed))
    limit = rate_limit.rate_limit(agent.replay, config)
    if hooks.checkpoints is not None and hooks.checkpoints.found is not None:
      limit = checkpoints.limit(
        hooks.checkpoints.found, config.replay, limit, num_shards
      )
    self.limit = limit
    part = replay.of_shard(agent, num_shards)
    actors = [messages.actor_role(i) for i in range(num_actors)]
    shards = [messages.replay_role(i) for i in range(num_shards)]
    roles = [*shards, messages.LEARNER, *actors, *evaluates * [messages.EVALUATOR]]
    self.board = self._start(
      messages.BOARD, board.Board, roles, config.episodes, config.steps, num_cpus=0
    )
    self.shards = []
    for i, role in enumerate(shards):
      self.shards.append(self._start_shard(role, config, part, limit, config.seed + i))
      self.tasks[role] = self.shards[i].ready.remote()
    self.tasks[messages.LEARNER] = self._start(
      messages.LEARNER,
      learner.LearnerProcess,
      agent,
      config,
      np.asarray(learner_key),
      self._run,
      num_gpus=config.learner_gpus or 0,
    ).run.remote()
    agent_and_make = ray.cloudpickle.dumps((agent, hooks.make_environment))
    for i, role in enumerate(actors):
      self.tasks[role] = self._start(
        role,
        actor.ActorProcess,
        agent_and_make,
        config,
        limit,
        np.asarray(jax.random.fold_in(actor_key, i)),
        i,
        self._run,
        runtime_env={"env_vars": _ONE_CORE},
      ).run.remote()
    if evaluates:
      self.tasks[messages.EVALUATOR] = self._start(
        messages.EVALUATOR,
        evaluator.EvaluatorProcess,
        agent_and_make,
        config,
        np.asarray(core.evaluation_key(actor_key)),
        None if hooks.observer is None else hooks.observer.draws,
        self._run,
        runtime_env={"env_vars": _ONE_CORE},
      ).run.remote()

  def kill(self) -> None:
    """Ends them at once; last replay and the board, which serve the others."""
    servers = [*self.shards, self.board]
    for handle in self._handles:
      if handle not in servers:
        self._ray.kill(handle)
    time.sleep(_SECONDS_BETWEEN_KILLS)
    for handle in servers:
      self._ray.kill(handle)

  def _start_shard(
    self,
    role: str,
    config: config_lib.RunConfig,
    part: types.Agent,
    limit: rate_limit.RateLimit,
    seed: int,
  ) -> Any:
    if config.replay == "memory":
      from explorax.experiments.runners.distributed import memory_shard

      process = memory_shard.MemoryShard
      return self._start(role, process, part, limit, self._run, role, seed)
    from explorax.experiments.runners.distributed import reverb_shard

    return self._start(role, reverb_shard.ReverbShard, part, limit, self._run, role)

  def _start(
    self, role: str, process: type, *arguments: Any, num_cpus: int = 1, **options: Any
  ) -> Any:
    options |= {"name": f"{self._run} {role}", "num_cpus": num_cpus, **_FOREVER}
    handle: Any = self._ray.remote(process).options(**options).remote(*arguments)
    self._handles.append(handle)
    return handle
