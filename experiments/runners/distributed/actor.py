"""An actor's process: its environments, and its reports to replay and the board."""

import contextlib
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from explorax import environments
from explorax.agents.replay import adder as adder_lib
from explorax.agents.wiring import actor as actor_lib
from explorax.experiments.runners import core, loop, recovery
from explorax.experiments.runners.distributed import (
  board_client,
  envs,
  messages,
  replay,
)

_SECONDS_BETWEEN_LOOKS = 0.2  # Between checks for the end of the run while blocked.
_SECONDS_TO_FLUSH = 2.0


class _RunOverError(Exception):
  """Acting is over, possibly within an episode."""


class ActorProcess:
  """Acts in its environments, with one inference for all of them; a Ray actor.

  It blocks only on replay and the rate limiter: weights, counts and the end of the run
  arrive through the thread of a `BoardClient`.
  """

  def __init__(self, run: messages.Run, agent_and_make: bytes, key: Any, number: int):
    """Prepares to act; a replacement process uses other random numbers.

    Args:
      run: of the process.
      agent_and_make: see `envs.unpickled`.
      key: of acting.
      number: of the actor, i. With E environments per process, it runs the agent's
        actors from E · i on, out of E · num_actors.
    """
    agent, make_environment = envs.unpickled(agent_and_make)
    config, role = run.config, messages.actor_role(number)
    num_envs = config.num_envs or 1
    num_total = num_envs * (config.num_actors or 1)
    ids = range(num_envs * number, num_envs * (number + 1))
    period = config.variable_update_period
    if period is None:
      period = agent.actor_update_period * num_envs
    self._policy_names = agent.policy_names
    self._client = client = board_client.BoardClient(
      run, role, variable_update_period=period
    )
    self._fetched: Any = None  # Reference to the weights of `self._actor`.
    num_shards = config.replay_shards or 1
    part = replay.of_shard(agent, num_shards)
    shard = run.handle(messages.replay_role(number % num_shards))
    self._inserter = replay.connect(run, shard, part).inserter(role, num_envs)
    self._steps_per_insert = run.limit.steps_per_insert
    self._uncounted = 0  # Steps since the last insert into the limiter.
    self._actor = actor_lib.Actor(
      agent,
      agent.actor(),
      client,
      jax.random.fold_in(jnp.asarray(key), client.number),
      [adder_lib.WindowAdder(part, self._inserter.writer(i)) for i in range(num_envs)],
      actor_ids=ids,
      num_actors=num_total,
    )
    self._environments = [
      envs.make(make_environment, run, client, core.TRAINING, i, num_total, role)
      for i in ids
    ]
    self._loop = loop.EnvironmentLoop(
      self._environments, self._actor, on_crash=self._recover
    )
    # The environments' counts, as reported so far.
    self._reported: list[dict[str, float]] = [{} for _ in ids]
    self._episodes = 0

  def run(self) -> None:
    """Acts until acting is over.

    Raises:
      environments.NonFiniteError: if a reward or an observation is.
      recovery.UnrecoverableError: if an environment crashed too often in a row.
    """
    with contextlib.suppress(_RunOverError):
      self._wait(
        "waits for the learner to publish its first weights", self._has_weights
      )
      while self._client.phase == messages.ACTING:
        self._act()
        self._keep_pace()
    if self._client.phase != messages.STOPPED:
      self._inserter.send(0)
      self._inserter.wait(_SECONDS_TO_FLUSH)
    self._inserter.close()
    self._client.close()

  def _act(self) -> None:
    """Takes a step in each environment, with the newest weights."""
    self._actor.env_steps = before = self._client.env_steps
    if self._client.fetched is not self._fetched:
      self._fetched = self._client.fetched
      self._actor.fetch()
    ended = self._loop.step()
    num_steps = self._actor.env_steps - before
    self._client.steps += num_steps
    self._uncounted += num_steps
    for env in ended:
      self._report(env)

  def _keep_pace(self) -> None:
    """Sends rows to replay and counts steps in the limiter; blocks if necessary."""
    num_inserts, self._uncounted = divmod(self._uncounted, self._steps_per_insert)
    if num_inserts:
      self._inserter.send(num_inserts)
      self._wait(
        "waits for replay, or for the learner, which is behind by more than the error "
        "buffer",
        self._inserter.wait,
      )

  def _has_weights(self, seconds: float) -> bool:
    if self._client.fetched is None:
      time.sleep(seconds)
    return self._client.fetched is not None

  def _wait(self, doing: str, done: Callable[[float], bool]) -> None:
    """Waits in short intervals until `done(seconds)` is true, or acting is over."""
    with self._client.doing(doing):
      while not done(_SECONDS_BETWEEN_LOOKS):
        if self._client.phase != messages.ACTING:
          raise _RunOverError

  def _recover(self, env: int, crash: recovery.CrashError) -> None:
    """Recreates an environment."""
    self._environments[env].recover(crash, self._episodes + 1, self._client.env_steps)
    self._reported[env] = {}

  def _report(self, env: int) -> None:
    """Reports an ended episode."""
    self._episodes += 1
    environment, reported = self._environments[env].current, self._reported[env]
    tracker = self._loop.slots[env].tracker
    metrics = environments.episode_metrics(environment)
    totals: dict[str, float] = {}
    if environments.counts_over_episodes(environment):
      # `best_episode` is the only number of bsuite's that is not a sum.
      for name in [name for name in metrics if name != "best_episode"]:
        totals[name] = metrics[name] - reported.get(name, 0.0)
        reported[name] = metrics.pop(name)
    self._client.add(
      messages.EndedEpisode(
        0,
        float(tracker.episode_return),
        tracker.length,
        self._policy_names[tracker.policy or 0],
        metrics | tracker.metrics(),
        totals,
      )
    )
