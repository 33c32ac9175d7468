"""The `local` runner: one machine, one thread, acting and learning in turn."""

import math
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import acme
import acme.core
import dm_env
import jax
from acme.utils import counting, loggers

from explorax import environments
from explorax.agents import types
from explorax.agents.wiring import actor as actor_lib
from explorax.agents.wiring import adder as adder_lib
from explorax.agents.wiring import builder as builder_lib
from explorax.agents.wiring import learner as learner_lib
from explorax.experiments.runners import errors

# Updates left out of the steps per second: the first ones compile.
_WARM_UP_UPDATES = 2


class Episode(NamedTuple):
  """What is known at an episode's end."""

  episode: int  # How many have ended, this one included.
  env_steps: int  # Environment steps so far.
  episode_return: float
  episode_length: int  # Environment steps.
  policy: str  # The group of the policy followed, of `Agent.policy_names`.
  learner_updates: int
  steps_per_second: float  # Of the whole run, after compilation.
  wall_seconds: float  # Since the run's start.
  metrics: dict[str, float]  # The learner's latest, and the environment's.


class Result(NamedTuple):
  """What a run leaves in memory."""

  weights: types.Params  # On the host.
  env_steps: int
  episodes: int
  learner_updates: int
  steps_per_second: float  # After compilation; NaN if nothing was learnt yet.
  interrupted: bool


class Clock:
  """Steps per second, from the first steps after compilation on."""

  def __init__(self):
    self.start = time.monotonic()
    self._warm: tuple[float, int] | None = None

  def mark_warm(self, env_steps: int) -> None:
    """Starts the measurement, once."""
    if self._warm is None:
      self._warm = (time.monotonic(), env_steps)

  def steps_per_second(self, env_steps: int) -> float:
    if self._warm is None:
      return math.nan
    since, steps = self._warm
    seconds = time.monotonic() - since
    return (env_steps - steps) / seconds if seconds > 0 else math.nan


class _StoppedError(Exception):
  """Leaves Acme's loop in mid-episode."""


class LocalAgent(acme.core.Actor):
  """Acts, and after each step makes the updates that are due.

  Updates are due from the step on at which replay has its minimum size, and holds
  one whole window: `updates_per_step` for each step.
  """

  def __init__(
    self,
    agent: types.Agent,
    actor: actor_lib.Actor,
    learner: learner_lib.Learner,
    adder: adder_lib.WindowAdder,
    clock: Clock,
    stop: Callable[[], bool],
  ):
    self._spec = agent.replay
    self._stop = stop
    self._actor = actor
    self._learner = learner
    self._adder = adder
    self._clock = clock
    self._due = 0.0  # Updates.
    self._starting = True
    self._ended = False
    self.episode_policy = 0

  @property
  def env_steps(self) -> int:
    return self._actor.env_steps

  def observe_first(self, timestep: dm_env.TimeStep) -> None:
    self._actor.observe_first(timestep)
    self._starting = True

  def select_action(self, observation: Any) -> Any:
    action = self._actor.select_action(observation)
    if self._starting:
      self.episode_policy = self._actor.policy
      self._starting = False
    return action

  def observe(self, action: Any, next_timestep: dm_env.TimeStep) -> None:
    self._actor.observe(action, next_timestep)
    self._ended = next_timestep.last()

  def update(self, wait: bool = False) -> None:
    if not self._ended and self._stop():
      raise _StoppedError
    if self.env_steps < self._spec.min_size or not self._adder.num_windows:
      return
    self._due += self._spec.updates_per_step
    while self._due >= 1.0:
      # The first of them was waited for already: its weights were acted with.
      self.check_finite()
      self._learner.step()
      self._due -= 1.0
    if self._learner.num_updates >= _WARM_UP_UPDATES:
      self._clock.mark_warm(self.env_steps)
    self._actor.update(wait)

  def check_finite(self) -> None:
    """Raises FloatingPointError if the learner's last update was not finite."""
    if not self._learner.is_finite():
      raise FloatingPointError(
        f"the loss became {self._learner.metrics()['loss']} in learner update "
        f"{self._learner.num_updates}; lower the learning rate or clip the gradient."
      )


class _EpisodeLogger(loggers.Logger):
  """Acme's logger, seen from the loop: turns what it writes into an Episode."""

  def __init__(
    self,
    agent: types.Agent,
    environment: dm_env.Environment,
    local_agent: LocalAgent,
    learner: learner_lib.Learner,
    clock: Clock,
    on_episode: Callable[[Episode], None],
  ):
    self._policy_names = agent.policy_names
    self._environment = environment
    self._local_agent = local_agent
    self._learner = learner
    self._clock = clock
    self._on_episode = on_episode

  def write(self, data: loggers.LoggingData) -> None:
    steps = self._local_agent.env_steps
    metrics = self._learner.metrics()
    metrics.update(environments.episode_metrics(self._environment))
    self._on_episode(
      Episode(
        episode=int(data["episodes"]),
        env_steps=steps,
        episode_return=float(data["episode_return"]),
        episode_length=int(data["episode_length"]),
        policy=self._policy_names[self._local_agent.episode_policy],
        learner_updates=self._learner.num_updates,
        steps_per_second=self._clock.steps_per_second(steps),
        wall_seconds=time.monotonic() - self._clock.start,
        metrics=metrics,
      )
    )

  def close(self) -> None:
    """There is nothing to close."""


def run(
  agent: types.Agent,
  environment: dm_env.Environment,
  *,
  seed: int,
  replay: str = "reverb",
  num_episodes: int | None = None,
  num_steps: int | None = None,
  on_episode: Callable[[Episode], None] = lambda episode: None,
  stop: Callable[[], bool] = lambda: False,
) -> Result:
  """Trains an agent.

  Args:
    agent: made for this environment's spec.
    environment: of `environments.make`.
    seed: of the initialisation, of acting, and of sampling from the memory replay.
    replay: `reverb` or `memory`.
    num_episodes: stop after so many; None: no limit.
    num_steps: stop at the end of the episode in which so many environment steps are
      reached; None: no limit.
    on_episode: called at each episode's end.
    stop: asked after each step and each episode, whether to end the run at once.

  Returns:
    What was learnt. If a stop or a KeyboardInterrupt came in mid-episode,
    `interrupted` is true, and that episode is not counted.

  Raises:
    errors.NonFiniteError: if a reward, an observation or the loss is NaN or infinite.
    ImportError: if Reverb is asked for and cannot be imported.
  """
  if num_episodes is None and num_steps is None:
    raise ValueError("nothing says when to stop; give num_episodes or num_steps.")
  builder = builder_lib.Builder(agent)
  actor_key, learner_key = jax.random.split(jax.random.PRNGKey(seed))
  store = builder.make_replay_tables(replay, seed)
  try:
    counter = counting.Counter()
    adder = builder.make_adder(store)
    batches = builder.make_dataset_iterator(store)
    learner = builder.make_learner(learner_key, batches, store, counter)
    actor = builder.make_actor(actor_key, learner, adder)
    clock = Clock()
    local_agent = LocalAgent(agent, actor, learner, adder, clock, stop)
    logger = _EpisodeLogger(agent, environment, local_agent, learner, clock, on_episode)
    loop = acme.EnvironmentLoop(environment, local_agent, counter, logger)

    def finished() -> bool:
      return (
        (num_episodes is not None and counter.get_counts()["episodes"] >= num_episodes)
        or (num_steps is not None and local_agent.env_steps >= num_steps)
        or stop()
      )

    interrupted = False
    counter.increment(episodes=0)
    try:
      while not finished():
        loop.run(num_episodes=1)
      local_agent.check_finite()
    except (KeyboardInterrupt, _StoppedError):
      interrupted = True
    except FloatingPointError as e:
      raise errors.NonFiniteError(
        f"stopped at environment step {local_agent.env_steps}, seed {seed}: {e}",
        _host_weights(learner),
      ) from e
    return Result(
      weights=_host_weights(learner),
      env_steps=local_agent.env_steps,
      episodes=counter.get_counts()["episodes"],
      learner_updates=learner.num_updates,
      steps_per_second=clock.steps_per_second(local_agent.env_steps),
      interrupted=interrupted,
    )
  finally:
    store.close()


def _host_weights(learner: learner_lib.Learner) -> types.Params:
  (weights,) = learner.get_variables(["params"])
  return jax.device_get(weights)
