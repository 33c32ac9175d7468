"""An actor's process: its environments, and its reports to replay and the board."""

import contextlib
import time
from typing import Any

import jax
import jax.numpy as jnp

from explorax import environments
from explorax.agents.replay import adder as adder_lib
from explorax.agents.wiring import actor as actor_lib
from explorax.experiments import config as config_lib
from explorax.experiments.runners import core, loop, recovery
from explorax.experiments.runners.distributed import (
  board_client,
  guarding,
  messages,
  rate_limit,
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

  def __init__(
    self,
    agent_and_make: bytes,
    config: config_lib.RunConfig,
    limit: rate_limit.RateLimit,
    key: Any,
    number: int,
    run: str,
  ):
    """Prepares to act; a replacement process uses other random numbers.

    Args:
      agent_and_make: see `guarding.unpickled`.
      config: of the run.
      limit: of the shard.
      key: of acting.
      number: of the process, i. With E environments per process, it runs the agent's
        actors from E · i on, out of E · num_actors.
      run: its name.
    """
    agent, make_environment = guarding.unpickled(agent_and_make)
    num_envs, num_actors = config.num_envs or 1, config.num_actors or 1
    period = config.variable_update_period
    if period is None:
      period = agent.actor_update_period * num_envs
    self._client = board_client.BoardClient(
      run,
      messages.actor_role(number),
      variable_update_period=period,
      num_steps=config.steps,
    )
    incarnation = self._client.incarnation
    self._policy_names = agent.policy_names
    self._role = messages.actor_role(number)
    ids = range(num_envs * number, num_envs * (number + 1))
    self._weights: messages.Version | None = None
    num_shards = config.replay_shards or 1
    part = replay.of_shard(agent, num_shards)
    shard = messages.handle(run, messages.replay_role(number % num_shards))
    connection = replay.connect(config.replay, shard, part)
    self._limiter = connection.limiter()
    self._limit = limit
    self._uncounted = 0  # Steps since the last insert into the limiter.
    factory = guarding.EnvironmentFactory(make_environment, config, self._client)
    self._writers = [
      connection.writer(f"{self._role}, environment {env}", incarnation) for env in ids
    ]
    self._actor = actor_lib.Actor(
      agent,
      agent.actor(),
      self._client,
      jax.random.fold_in(jnp.asarray(key), incarnation),
      [adder_lib.WindowAdder(part, writer) for writer in self._writers],
      actor_ids=ids,
      num_actors=num_envs * num_actors,
    )
    self._environments = [
      factory.make(core.TRAINING, env, num_envs * num_actors, self._role) for env in ids
    ]
    self._loop = loop.EnvironmentLoop(
      self._environments, self._actor, on_crash=self._recover
    )
    # The environments' counts, as reported so far.
    self._totals: list[dict[str, float]] = [{} for _ in ids]
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
        self._act_once()
    if self._client.phase != messages.STOPPED:
      for writer in self._writers:
        writer.wait(_SECONDS_TO_FLUSH)
    self._client.close()

  def _act_once(self) -> None:
    """Takes a step in each environment."""
    self._update()
    before = self._actor.env_steps
    ended = self._loop.step()
    num_steps = self._actor.env_steps - before
    self._client.steps += num_steps
    self._uncounted += num_steps
    for env in ended:
      self._report(env)
    if self._uncounted >= self._limit.steps_per_insert:
      self._keep_pace()

  def _update(self) -> None:
    """Takes the weights that the client fetched, and the step count."""
    self._actor.env_steps = self._client.env_steps
    fetched = self._client.weights
    if fetched is not None and fetched[0] is not self._weights:
      self._weights = fetched[0]
      self._actor.fetch()

  def _keep_pace(self) -> None:
    """Sends rows to replay and counts steps in the limiter; blocks if necessary."""
    for writer in self._writers:
      self._wait("waits for replay to take its rows", writer.wait)
    while self._uncounted >= self._limit.steps_per_insert:
      self._uncounted -= self._limit.steps_per_insert
      self._limiter.insert()
      self._wait(
        "waits for the learner, which is behind by more than the error buffer",
        self._limiter.wait,
      )

  def _has_weights(self, seconds: float) -> bool:
    if self._client.weights is None:
      time.sleep(seconds)
    return self._client.weights is not None

  def _wait(self, doing: str, done: Any) -> None:
    """Waits in short intervals until `done(seconds)` is true, or acting is over."""
    if done(0.02):
      return
    with self._client.blocked(doing):
      while not done(_SECONDS_BETWEEN_LOOKS):
        if self._client.phase != messages.ACTING:
          raise _RunOverError

  def _recover(self, env: int, crash: recovery.CrashError) -> None:
    """Recreates the environment; its episode is truncated."""
    self._environments[env].recover(crash, self._episodes + 1, self._client.env_steps)
    self._totals[env] = {}

  def _report(self, env: int) -> None:
    """Reports an ended episode."""
    self._episodes += 1
    environment, reported = self._environments[env].current, self._totals[env]
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
