"""An actor's process: its environments, and its reports to replay and the board."""

import contextlib
import time
from collections.abc import Sequence
from typing import Any

import dm_env
import jax
import jax.numpy as jnp
import numpy as np

from explorax import environments
from explorax.agents.replay import adder as adder_lib
from explorax.agents.wiring import actor as actor_lib
from explorax.experiments import config as config_lib
from explorax.experiments.runners import core, recovery
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


class EnvSlot:
  """One of the environments of a process, and its episode.

  Attributes:
    environment: the current one, or a replacement.
    adder, writer: write to replay.
    timestep: the newest, encoded; None if an episode is about to start.
    extras: the actor's answer to the timestep.
    tracker: of the episode.
    totals: the environment's counts, as reported so far.
  """

  def __init__(
    self,
    environment: recovery.RecoverableEnvironment,
    adder: adder_lib.WindowAdder,
    writer: replay.Writer,
  ):
    self.environment = environment
    self.adder = adder
    self.writer = writer
    self.tracker = core.EpisodeTracker(np.float64)
    self.totals: dict[str, float] = {}
    self.timestep: dm_env.TimeStep | None = None
    self.extras: dict[str, np.ndarray] = {}

  @property
  def has_ended(self) -> bool:
    return self.timestep is not None and self.timestep.last()

  def begin(self, timestep: dm_env.TimeStep) -> None:
    self.adder.add_first(timestep)
    self.tracker.begin()
    self.timestep = timestep

  def answered(self, extras: dict[str, np.ndarray]) -> None:
    self.extras = extras
    self.tracker.acted(extras)

  def observe(self, action: Any, timestep: dm_env.TimeStep) -> None:
    self.adder.add(action, timestep, self.extras)
    self.tracker.stepped(timestep.reward)
    self.timestep = timestep

  def truncate_episode(self) -> None:
    """Truncates the current episode."""
    if self.timestep is not None and self.timestep.first():
      self.adder.reset()
    elif self.timestep is not None:
      self.adder.add_last(self.extras)
    self.timestep = None


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
    self._actor = actor_lib.Actor(
      agent,
      agent.actor(),
      self._client,
      jax.random.fold_in(jnp.asarray(key), incarnation),
      actor_ids=ids,
      num_actors=num_envs * num_actors,
    )
    self._weights: messages.Version | None = None
    num_shards = config.replay_shards or 1
    part = replay.of_shard(agent, num_shards)
    shard = messages.handle(run, messages.replay_role(number % num_shards))
    connection = replay.connect(config.replay, shard, part)
    self._limiter = connection.limiter()
    self._limit = limit
    self._uncounted = 0  # Steps since the last insert into the limiter.
    factory = guarding.EnvironmentFactory(make_environment, config, self._client)

    def make_slot(env: int) -> EnvSlot:
      environment = factory.make(core.TRAINING, env, num_envs * num_actors, self._role)
      writer = connection.writer(f"{self._role}, environment {env}", incarnation)
      return EnvSlot(environment, adder_lib.WindowAdder(part, writer), writer)

    self._slots = [make_slot(env) for env in ids]
    self._everyone = np.ones(num_envs, bool)
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
      for slot in self._slots:
        slot.writer.wait(_SECONDS_TO_FLUSH)
    self._client.close()

  def _act_once(self) -> None:
    """Takes a step in each environment."""
    self._update()
    for slot in self._slots:
      while slot.timestep is None:
        try:
          slot.begin(self._actor.encoded(slot.environment.reset()))
        except recovery.CrashError as crash:
          self._recover(slot, crash)
    actions = self._infer(self._slots, self._everyone)
    for slot, action in zip(self._slots, actions, strict=True):
      try:
        timestep = self._actor.encoded(slot.environment.step(action))
      except recovery.CrashError as crash:
        self._recover(slot, crash)
      else:
        slot.observe(action, timestep)
        self._client.steps += 1
        self._uncounted += 1
    ended = [slot for slot in self._slots if slot.has_ended]
    if ended:
      self._infer(ended, np.array([slot.has_ended for slot in self._slots]))
      for slot in ended:
        self._end_episode(slot)
    if self._uncounted >= self._limit.steps_per_insert:
      self._keep_pace()

  def _update(self) -> None:
    """Takes the weights that the client fetched, and the step count."""
    self._actor.env_steps = self._client.env_steps
    fetched = self._client.weights
    if fetched is not None and fetched[0] is not self._weights:
      self._weights = fetched[0]
      self._actor.fetch()

  def _infer(self, answered: Sequence[EnvSlot], acts: np.ndarray) -> np.ndarray:
    """Computes the actions, and stores the actor's extras in the answered slots."""
    filler = answered[0].timestep  # In place of a crashed environment; never used.
    timesteps = [slot.timestep or filler for slot in self._slots]
    actions, extras = self._actor.act(timesteps, acts)
    for slot, own in zip(self._slots, extras, strict=True):
      if slot in answered:
        slot.answered(own)
    return actions

  def _keep_pace(self) -> None:
    """Sends rows to replay and counts steps in the limiter; blocks if necessary."""
    for slot in self._slots:
      self._wait("waits for replay to take its rows", slot.writer.wait)
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

  def _recover(self, slot: EnvSlot, crash: recovery.CrashError) -> None:
    """Recreates the environment; its episode is truncated."""
    slot.truncate_episode()
    slot.environment.recover(crash, self._episodes + 1, self._client.env_steps)
    slot.totals = {}

  def _end_episode(self, slot: EnvSlot) -> None:
    slot.adder.add_last(slot.extras)
    self._episodes += 1
    environment, tracker = slot.environment.current, slot.tracker
    metrics = environments.episode_metrics(environment)
    totals: dict[str, float] = {}
    if environments.counts_over_episodes(environment):
      # `best_episode` is the only number of bsuite's that is not a sum.
      for name in [name for name in metrics if name != "best_episode"]:
        totals[name] = metrics[name] - slot.totals.get(name, 0.0)
        slot.totals[name] = metrics.pop(name)
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
    slot.timestep = None
