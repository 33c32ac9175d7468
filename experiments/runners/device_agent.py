"""An agent in several environments, as functions of a state on the device.

These functions do not depend on where the environments run. `device_program.py` scans
them with environments written in JAX; `device_batched.py` calls them around the steps
of environments on the host.
"""

from typing import NamedTuple

import dm_env
import jax
import jax.numpy as jnp
import numpy as np

from explorax.agents import types, updates
from explorax.agents.replay import device as device_replay
from explorax.environments import jax_types

_INT32_MAX = int(np.iinfo(np.int32).max)
MAX_UPDATES = 10_000  # Without a look at whether to stop.


class Episodes(NamedTuple):
  """The current episodes, or those that a step has ended; `[E]` each.

  Attributes:
    ended: bool, whether the step was an episode's last.
    episode_return, length: so far.
    policy: the index of the policy at the episode's start.
    intrinsic: Σ r_int over the rows; 0 if acting computes none.
    metrics: the environment's, if the episode has ended.
  """

  ended: jax.Array
  episode_return: jax.Array
  length: jax.Array
  policy: jax.Array
  intrinsic: jax.Array
  metrics: dict[str, jax.Array]


class State(NamedTuple):
  """The state of a run with one seed and E environments.

  Attributes:
    learner: the learner's state.
    weights: the weights of the actors; `[E, ...]` if each actor has its own, and ()
      if they act with the learner's newest.
    actors: their states, `[E, ...]`.
    timesteps: the newest, with encoded observations, `[E, ...]`.
    replay: rows and windows.
    episodes: the current ones.
    key: a random key.
    steps: int32 `[]`, of each environment; from 2³¹ on reduced by a multiple of the
      actors' update period.
    environments, params: states and parameters of the environments; () if the host
      steps them.
  """

  learner: types.State
  weights: types.Params
  actors: types.State
  timesteps: dm_env.TimeStep
  replay: device_replay.State
  episodes: Episodes
  key: jax.Array
  steps: jax.Array
  environments: jax_types.State = ()
  params: jax_types.Params = ()


class Update(NamedTuple):
  """The newest update, or the first that was not finite.

  Attributes:
    number: int32 `[]`, from 1; 0 before the first update.
    metrics: the learner's.
    keys: `[B]`, of the batch's windows in replay.
  """

  number: jax.Array
  metrics: dict[str, jax.Array]
  keys: jax.Array


class DeviceAgent:
  """Functions of the state of one seed; they are not jitted here."""

  def __init__(self, agent: types.Agent, num_envs: int):
    """Prepares the functions.

    Args:
      agent: made for the environments' spec.
      num_envs: E, each of them with an actor.
    """
    self._agent = agent
    self._num_envs = num_envs
    self._core = agent.actor()
    period = agent.actor_update_period
    self._last_step = _INT32_MAX // period * period
    # Other actors use the learner's own: a copy in each step costs memory traffic.
    self._actors_keep_weights = period > 1 or agent.refresh is not None
    self.replay = device_replay.DeviceReplay(agent, num_envs)

  def init(
    self,
    learner_key: jax.Array,
    actor_key: jax.Array,
    key: jax.Array,
    timesteps: dm_env.TimeStep,
    metrics: dict[str, jax.Array] | None = None,
  ) -> State:
    """The state before the first step.

    Args:
      learner_key: of the learner's weights.
      actor_key: of the actors.
      key: of all that follows.
      timesteps: the first ones, encoded, `[E, ...]`.
      metrics: those of environments on the device.
    """
    num_envs = self._num_envs
    learner = self._agent.learner.init(learner_key)
    weights: types.Params = ()
    if self._actors_keep_weights:
      weights = self._agent.learner.params(learner)
    if self._agent.refresh is not None:
      weights = jax.tree.map(
        lambda x: jnp.broadcast_to(x, (num_envs, *x.shape)), weights
      )
    actors = jax.vmap(self._core.init, (0, 0, None))(
      jax.random.split(actor_key, num_envs), jnp.arange(num_envs), num_envs
    )
    zeros = jnp.zeros((num_envs,), jnp.float32)
    counts = jnp.zeros((num_envs,), jnp.int32)
    episodes = Episodes(
      jnp.zeros((num_envs,), bool),
      zeros,
      counts,
      counts,
      zeros,
      jax.tree.map(jnp.zeros_like, metrics or {}),
    )
    return State(
      learner=learner,
      weights=weights,
      actors=actors,
      timesteps=timesteps,
      replay=self.replay.init(),
      episodes=episodes,
      key=key,
      steps=jnp.int32(0),
    )

  def choose(self, state: State) -> tuple[jax.Array, State]:
    """Chooses actions `[E]` for the newest timesteps; returns them and the state."""
    weights = state.weights
    if self._agent.refresh is not None:
      begins = state.timesteps.step_type == dm_env.StepType.FIRST
      fresh = self._agent.learner.params(state.learner)
      weights = jax.vmap(updates.keep_if, (0, None, 0))(begins, fresh, weights)
    action, actors = self._select(weights, state)
    return action, state._replace(weights=weights, actors=actors)

  def observe(
    self, state: State, action: jax.Array, timesteps: dm_env.TimeStep
  ) -> State:
    """Stores the environments' answers to the actions of `choose`.

    Args:
      state: from `choose`.
      action: `[E]`.
      timesteps: the answers, encoded, `[E, ...]`.
    """
    extras = jax.vmap(self._core.extras)(state.actors)
    ones = jnp.ones((self._num_envs,))
    row = {
      **extras,
      "observation": self._newest_frames(state.timesteps),
      "action": action,
      "reward": timesteps.reward,
      "discount": timesteps.discount,
      "mask": ones,
    }
    old = state.episodes
    episodes = Episodes(
      ended=timesteps.step_type == dm_env.StepType.LAST,
      episode_return=old.episode_return + timesteps.reward,
      length=old.length + 1,
      policy=jnp.where(old.length == 0, extras["policy"], old.policy),
      intrinsic=old.intrinsic + extras.get("r_int", 0.0),
      metrics=old.metrics,
    )
    return state._replace(
      timesteps=timesteps,
      replay=self.replay.append(state.replay, row, ones > 0),
      episodes=episodes,
      steps=self._next_step(state.steps),
    )

  def end_episodes(
    self,
    state: State,
    first: dm_env.TimeStep,
    metrics: dict[str, jax.Array] | None = None,
  ) -> tuple[State, Episodes]:
    """For each ended episode: gives the actor the last observation and stores it.

    Args:
      state: after `observe`.
      first: the first timesteps of the next episodes, encoded, `[E, ...]`; ignored
        where no episode has ended.
      metrics: those of environments on the device.

    Returns:
      The state, and the episodes.
    """
    ended = state.episodes.ended
    where = jax.vmap(updates.keep_if)
    actors = where(ended, self._select(state.weights, state)[1], state.actors)
    extras = jax.vmap(self._core.extras)(actors)
    zeros = jnp.zeros((self._num_envs,))
    row = {
      **extras,
      "observation": self._newest_frames(state.timesteps),
      **dict.fromkeys(("action", "reward", "discount", "mask"), zeros),
    }
    replay = self.replay.append(state.replay, row, ended)
    done = state.episodes._replace(
      intrinsic=state.episodes.intrinsic + extras.get("r_int", 0.0),
      metrics=metrics or {},
    )
    nothing = jax.tree.map(jnp.zeros_like, state.episodes)
    return state._replace(
      actors=actors,
      timesteps=where(ended, first, state.timesteps),
      replay=self.replay.end_episodes(replay, ended),
      episodes=where(ended, nothing, state.episodes),
    ), done

  def no_update(self, state: State, number: int = 0) -> Update:
    """A placeholder for the update before number `number` + 1."""
    _, metrics, keys = jax.eval_shape(self._update, state)
    zeros = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), metrics)
    return Update(
      number=jnp.int32(number),
      metrics={**zeros, "finite": zeros["finite"] + 1},
      keys=jnp.zeros(keys.shape, keys.dtype),
    )

  def update(self, state: State, before: Update) -> tuple[State, Update]:
    """One update of the learner, after those that `before` stands for."""
    state, metrics, keys = self._update(state)
    update = Update(before.number + 1, metrics, keys)
    return state, updates.keep_if(before.metrics["finite"] > 0, update, before)

  def _update(self, state: State) -> tuple[State, dict[str, jax.Array], jax.Array]:
    """Returns (the state, the learner's metrics, the keys of its batch)."""
    key, sample_key = jax.random.split(state.key)
    keys, sample = self.replay.sample(state.replay, sample_key)
    learner, output = self._agent.learner.update(state.learner, sample)
    replay = self.replay.update_priorities(state.replay, keys, output.priorities)
    # A priority that is NaN would poison replay.
    is_finite = output.metrics["finite"] > 0
    priorities = updates.keep_if(is_finite, replay.priorities, state.replay.priorities)
    replay = replay._replace(priorities=priorities)
    state = state._replace(learner=learner, replay=replay, key=key)
    return state, output.metrics, keys

  def fetch(self, state: State, num_steps: int) -> State:
    """Copies the learner's weights to the actors if their period is over.

    Args:
      state: of any time.
      num_steps: since the last call; may exceed the period.
    """
    if not self._actors_keep_weights:
      return state
    is_due = state.steps % self._agent.actor_update_period < num_steps
    fresh = self._agent.learner.params(state.learner)
    if self._agent.refresh is not None:
      fresh = jax.vmap(self._agent.refresh, (0, None))(state.weights, fresh)
    return state._replace(weights=updates.keep_if(is_due, fresh, state.weights))

  def encoded(self, timesteps: dm_env.TimeStep) -> dm_env.TimeStep:
    """The timesteps with observations `[E, ...]` as actors see them."""
    encode = jax.vmap(self._agent.encoding.on_device)
    return timesteps._replace(observation=encode(timesteps.observation))

  def _select(
    self, weights: types.Params, state: State
  ) -> tuple[jax.Array, types.State]:
    axis = None if self._agent.refresh is None else 0
    if not self._actors_keep_weights:
      weights = self._agent.learner.params(state.learner)
    select = jax.vmap(self._core.select_action, (types.ActorParams(axis, None), 0, 0))
    # All schedules have ended long before this counter saturates.
    most = _INT32_MAX // self._num_envs
    env_steps = jnp.minimum(state.steps, most) * self._num_envs
    params = types.ActorParams(weights, env_steps)
    return select(params, state.timesteps, state.actors)

  def _next_step(self, steps: jax.Array) -> jax.Array:
    """Adds 1 without int32 overflow; `fetch` only needs the remainder of a division."""
    period = self._agent.actor_update_period
    return jnp.where(steps < self._last_step, steps, self._last_step - period) + 1

  def _newest_frames(self, timesteps: dm_env.TimeStep) -> jax.Array:
    """The part of the observations that rows store."""
    num_frames = self._agent.replay.num_frames
    if num_frames == 1:
      return timesteps.observation
    channels = timesteps.observation.shape[-1] // num_frames
    return timesteps.observation[..., -channels:]
