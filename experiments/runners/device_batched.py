"""An agent in environments that the host steps in batches: one inference per step.

Replay and learner are on the device, and the environments run in C++ threads on the
host (Sebulba in Hessel et al. 2021, "Podracer architectures"). In each step the host
gets all actions from one inference and sends them to the environments. While these
step, the device makes the updates that are due; then the answers are stored. An action
is therefore chosen before the updates of the previous step, one step later than in the
local runner; the number of updates is the same.
"""

import fractions
import functools
import math
from collections.abc import Callable
from typing import Any

import dm_env
import jax
import jax.numpy as jnp
import numpy as np

from explorax.agents import types
from explorax.agents.replay import device as device_replay
from explorax.environments import batched_types
from explorax.experiments import config as config_lib
from explorax.experiments import signals
from explorax.experiments.checkpoints import checkpointer, files
from explorax.experiments.runners import core, device_agent, device_host, errors

# Finer ratios of updates per step are rounded.
_MAX_DENOMINATOR = 10**6


class Program:
  """The device's part, as jitted functions of a `device_agent.State`."""

  def __init__(self, agent: types.Agent, num_envs: int):
    """Prepares the functions; nothing is compiled yet.

    Args:
      agent: made for the environments' spec.
      num_envs: E.
    """
    self._agent = device_agent.DeviceAgent(agent, num_envs)
    self._num_frames = agent.replay.num_frames
    self._num_envs = num_envs
    self.init = jax.jit(self._init)
    self._choose = jax.jit(self._choose_only, donate_argnums=0)
    self.observe = jax.jit(self._observe, donate_argnums=0)
    self.end_episodes = jax.jit(self._end_episodes, donate_argnums=0)
    self.no_update = self._agent.no_update
    self.update = jax.jit(self._agent.update, donate_argnums=(0, 1))
    self.fetch = jax.jit(lambda s: self._agent.fetch(s, 1), donate_argnums=0)

  def choose(self, state: device_agent.State) -> tuple[jax.Array, device_agent.State]:
    """`DeviceAgent.choose`."""
    # Replay is left out of this function, which does not need it.
    rest = state._replace(actors=None, replay=None)  # type: ignore[arg-type]
    action, actors, weights = self._choose(state.actors, rest)
    return action, state._replace(actors=actors, weights=weights)

  def _choose_only(
    self, actors: types.State, rest: device_agent.State
  ) -> tuple[jax.Array, types.State, types.Params]:
    action, state = self._agent.choose(rest._replace(actors=actors))
    return action, state.actors, state.weights

  def _init(self, key: jax.Array, frames: jax.Array) -> device_agent.State:
    """The state before the first step, for first frames `[E, ...]`."""
    learner_key, actor_key, key = jax.random.split(key, 3)
    return self._agent.init(learner_key, actor_key, key, self._first(frames))

  def _observe(
    self,
    state: device_agent.State,
    action: jax.Array,
    reward: jax.Array,
    discount: jax.Array,
    last: jax.Array,
    frames: jax.Array,
  ) -> device_agent.State:
    """Stores the answers to the actions; all arguments are `[E, ...]`."""
    mid, end = jnp.int32(dm_env.StepType.MID), jnp.int32(dm_env.StepType.LAST)
    timesteps = dm_env.TimeStep(jnp.where(last, end, mid), reward, discount, frames)
    timesteps = self._joined(state.timesteps.observation, timesteps)
    return self._agent.observe(state, action, timesteps)

  def _end_episodes(
    self, state: device_agent.State, first_frames: jax.Array
  ) -> tuple[device_agent.State, device_agent.Episodes]:
    """Starts new episodes with these frames where episodes have ended."""
    return self._agent.end_episodes(state, self._first(first_frames))

  def _first(self, frames: jax.Array) -> dm_env.TimeStep:
    """The first timesteps of episodes."""
    zeros = jnp.zeros((self._num_envs,), jnp.float32)
    types_ = jnp.full((self._num_envs,), jnp.int32(dm_env.StepType.FIRST))
    before = jnp.zeros_like(jnp.concatenate([frames] * self._num_frames, axis=-1))
    return self._joined(before, dm_env.TimeStep(types_, zeros, zeros + 1, frames))

  def _joined(self, before: jax.Array, timesteps: dm_env.TimeStep) -> dm_env.TimeStep:
    """Appends the newest frames to the frames of the previous observation."""
    timesteps = self._agent.encoded(timesteps)
    if self._num_frames == 1:
      return timesteps
    frames = timesteps.observation
    kept = before[..., frames.shape[-1] :].astype(frames.dtype)
    return timesteps._replace(observation=jnp.concatenate([kept, frames], axis=-1))


# Equal arguments share a program and its compiled functions.
make_program = functools.lru_cache(maxsize=8)(Program)


def shapes(agent: types.Agent, num_envs: int) -> device_agent.State:
  """The shapes of everything that a run keeps on the device."""
  program = make_program(agent, num_envs)
  spec = agent.spec.observations
  channels = (spec.shape[-1] // agent.replay.num_frames,) if spec.shape else ()
  shape = (num_envs, *spec.shape[:-1], *channels)
  frames = jax.ShapeDtypeStruct(shape, spec.dtype)
  return jax.eval_shape(program.init, jax.random.PRNGKey(0), frames)


class Training(device_host.Training):
  """Training with environments that the host steps, with one seed."""

  def __init__(
    self,
    agent: types.Agent,
    environment: batched_types.BatchedEnvironment,
    seed: int,
    config: config_lib.RunConfig,
    on_episode: Callable[[core.Episode], None],
  ):
    num_envs = environment.num_envs
    self._updates_per_step = core.updates_per_step(
      agent.replay, num_envs, _MAX_DENOMINATOR, device_agent.MAX_UPDATES
    )
    self._program = make_program(agent, num_envs)
    state = self._program.init(jax.random.PRNGKey(seed), environment.reset())
    super().__init__(agent, [seed], num_envs, state, config, on_episode)
    self._environment = environment
    self._due = fractions.Fraction(0)  # Updates.
    self._update = self._program.no_update(self.state)
    self._reports = True

  @property
  def may_evaluate(self) -> bool:
    """At reports: an episode has just ended, or none for a while."""
    return self._reports

  def advance(self) -> None:
    """A step of all environments, and the updates due after the previous step."""
    with signals.deferred():
      action, self.state = self._program.choose(self.state)
    sent = np.asarray(action)  # Waits for the device.
    self._guarded(self._environment.send, sent)
    with signals.deferred():
      self._learn()
    step = self._guarded(self._environment.recv)
    with signals.deferred():
      has_told = self._observe(action, step)
      if self.steps - self.empty_steps > self.fill_steps:
        self._due += self._updates_per_step
      if self.is_done:
        self._learn()
    self._reports = has_told or self.steps % device_host.STEPS_PER_REPORT == 0
    if self._reports:
      self.check_finite()

  def save(self, *, with_replay: bool) -> checkpointer.Snapshot:
    self._look()
    snapshot = super().save(with_replay=with_replay)
    due = [self._due.numerator, self._due.denominator]
    return snapshot._replace(counts={**snapshot.counts, "due": due})

  def restore(self, checkpoint: files.Checkpoint) -> None:
    """Resumes from a checkpoint, at the start of an episode in each environment.

    Open episodes are dropped, except for their windows in replay.
    """
    first, episodes = self.state.timesteps, self.state.episodes
    super().restore(checkpoint)
    if "replay" in checkpoint.groups:
      self._due = fractions.Fraction(*checkpoint.record["counts"]["due"])
    (metrics,) = self.metrics
    update = self._program.no_update(self.state, self.updates)
    latest = {name: jnp.float32(value) for name, value in metrics.items()}
    self._update = update._replace(metrics=latest or update.metrics)
    replay = device_replay.drop_open_episodes(self.state.replay)
    self.state = self.state._replace(timesteps=first, episodes=episodes, replay=replay)

  def _learn(self) -> None:
    """Starts the updates that are due without waiting for them."""
    for _ in range(math.floor(self._due)):
      self.state, self._update = self._program.update(self.state, self._update)
      self.updates += 1
    self._due %= 1
    if not self.updates:
      return
    self.clock.mark_warm(self.env_steps)
    if self.steps % self._agent.actor_update_period == 0:
      self.state = self._program.fetch(self.state)

  def _observe(self, action: jax.Array, step: batched_types.Step) -> bool:
    """Stores a step's answers; returns whether an episode has ended."""
    self.state = self._program.observe(
      self.state, action, step.reward, step.discount, step.last, step.frames
    )
    self.steps += 1
    if step.first_frames is None:
      return False
    self.state, ended = self._program.end_episodes(self.state, step.first_frames)
    self._look()
    ended = jax.device_get(ended)
    for env in np.flatnonzero(step.last):
      of_env = jax.tree.map(lambda x, env=env: x[env], ended)
      self.tell(0, self.steps, self.updates, of_env, step.metrics[int(env)])
    return True

  def _look(self) -> None:
    """Fetches the learner's latest metrics."""
    if self.updates:
      self.take([jax.device_get(self._update)])

  def check_finite(self) -> None:
    if not self._update.metrics["finite"] > 0:
      self._look()
      self.check_taken([jax.device_get(self._update)])

  def _guarded(self, function: Callable[..., Any], *arguments: Any) -> Any:
    """Calls the environments; a crash ends the run, as a batch cannot be recreated."""
    try:
      return function(*arguments)
    except Exception as error:
      raise errors.EnvironmentFailedError(
        f"the environments failed at environment step {self.env_steps}: "
        f"{type(error).__name__}: {error}; run the command again.",
        self.weights(),
      ) from error
