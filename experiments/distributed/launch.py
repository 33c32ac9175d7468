"""How the processes of a run are started, the first time and every time after it."""

import contextlib
import math
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from explorax.agents import types
from explorax.experiments import threads
from explorax.experiments.distributed import (
  actor_process,
  collector,
  evaluator,
  learner_process,
  rates,
  replay_server,
)
from explorax.experiments.distributed import layout as layout_lib
from explorax.experiments.runners import core

# Of a collector by Ray, while the driver cannot ask it anything.
_RESTARTS = 20

_ON_ONE_CORE = (actor_process.ActorProcess, evaluator.EvaluatorProcess)
_ONE_CORE = {**threads.ONE_THREAD, "JAX_PLATFORMS": "cpu"}


class Launcher:
  """Starts processes; each gets all that it needs, and no state of its own is kept."""

  def __init__(
    self,
    agent: types.Agent,
    layout: layout_lib.Layout,
    limits: rates.Limits,
    *,
    seed: int,
    replay: str,
    make_environment: actor_process.MakeEnvironment,
    remakes: bool,
    max_env_failures: int,
    num_episodes: int | None,
    evaluating: layout_lib.Evaluating | None,
  ):
    """Starts the collector, whom all others are told; the rest when it is asked to."""
    self._agent = agent
    self._layout = layout
    self._limits = limits
    self._seed = seed
    self._replay = replay
    self._evaluating = evaluating
    self._of_environment: dict[str, Any] = {
      "make_environment": make_environment,
      "remakes": remakes,
      "max_env_failures": max_env_failures,
      "environment_timeout": layout.environment_timeout,
    }
    self._actor_key, self._learner_key = jax.random.split(jax.random.PRNGKey(seed))
    self._ports: dict[int, Any] = {}  # Shard → its Reverb server's answer.
    self.started: list[Any] = []  # All of them, the dead included.
    self.collector = self._start(
      collector.Collector,
      limits,
      cpus=0,
      num_actors=layout.num_actors,
      num_shards=layout.num_shards,
      num_episodes=num_episodes,
      eval_every=evaluating.every if evaluating else None,
      evaluates=evaluating is not None,
      patience=layout.patience,
      environment_timeout=layout.environment_timeout,
    )

  def server(self, shard: int, kept: Any) -> Any:
    """That of a shard, with what was kept of it; None for nothing."""
    part = replay_server.of_shard(self._agent, self._layout.num_shards)
    if self._replay == "memory":
      seed = self._seed + shard
      return self._start(replay_server.MemoryServer, part, seed=seed, kept=kept)
    server = self._start(
      replay_server.ReverbServer, part, folder=kept, port=self._port(shard)
    )
    self._ports[shard] = server.port.remote()
    return server

  def _port(self, shard: int) -> int | None:
    """Of the shard's last Reverb server; None if there was none."""
    import ray

    with contextlib.suppress(ray.exceptions.RayError):
      if shard in self._ports:
        return ray.get(self._ports[shard], timeout=0)
    return None

  def learner(
    self,
    generation: int,
    servers: Sequence[replay_server.Server],
    start: learner_process.Start | None,
  ) -> Any:
    spec, pull_every = self._agent.replay, self._limits.pull_every
    return self._start(
      learner_process.LearnerProcess,
      self._agent,
      np.asarray(self._learner_key),
      gpus=self._layout.learner_gpus,
      servers=list(servers),
      publish_every=max(1, math.floor(spec.updates_per_step * pull_every)),
      replay=self._replay,
      collector=self.collector,
      generation=generation,
      start=start,
    )

  def actor(self, number: int, generation: int, server: replay_server.Server) -> Any:
    return self._start(
      actor_process.ActorProcess,
      self._agent,
      np.asarray(jax.random.fold_in(self._actor_key, number)),
      actor_id=number,
      generation=generation,
      num_actors=self._layout.num_actors,
      num_envs=self._layout.num_envs,
      server=server,
      num_shards=self._layout.num_shards,
      pull_every=self._limits.pull_every,
      replay=self._replay,
      collector=self.collector,
      **self._of_environment,
    )

  def evaluator(self, generation: int) -> Any:
    if self._evaluating is None:
      raise ValueError("this run has no evaluations.")
    key = core.evaluation_key(self._actor_key)
    return self._start(
      evaluator.EvaluatorProcess,
      self._agent,
      np.asarray(key),
      generation=generation,
      num_episodes=self._evaluating.num_episodes,
      draws=self._evaluating.draws,
      collector=self.collector,
      **self._of_environment,
    )

  def _start(
    self, process: type, *arguments: Any, cpus: int = 1, gpus: int = 0, **named: Any
  ) -> Any:
    import ray

    options: dict[str, Any] = {"num_cpus": cpus, "num_gpus": gpus, "max_concurrency": 1}
    if process in _ON_ONE_CORE:
      # What these take holds arrays: jax has begun before they could say so.
      options["runtime_env"] = {"env_vars": _ONE_CORE}
    if process is collector.Collector:
      options |= {"max_concurrency": 1000, "max_task_retries": -1}
      options["max_restarts"] = _RESTARTS
    actor: Any = ray.remote(process).options(**options).remote(*arguments, **named)
    self.started.append(actor)
    return actor
