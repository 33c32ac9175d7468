"""An agent in environments written in JAX, as one program on the device.

The agent's parts are those that the `local` runner calls; here they are scanned over
time, and vmapped over environments and over seeds. `device.py` is the host's half.
"""

import fractions
import math
from typing import Any, NamedTuple

import dm_env
import jax
import jax.numpy as jnp
import numpy as np

from explorax.agents import types
from explorax.agents.wiring import device_replay
from explorax.environments import jax_types

# Of the ratio of updates to steps: rounds are not made longer than that.
_MAX_STEPS_PER_ROUND = 1000


class Episodes(NamedTuple):
  """The episodes under way, or those that a step has ended; `[E]` each.

  Attributes:
    ended: bool, whether the step was an episode's last.
    episode_return, length: so far.
    policy: the index followed at the episode's start.
    intrinsic: Σ r_int over the rows; 0 where acting computes none.
    metrics: the environment's, where an episode has ended.
  """

  ended: jax.Array
  episode_return: jax.Array
  length: jax.Array
  policy: jax.Array
  intrinsic: jax.Array
  metrics: dict[str, jax.Array]


class State(NamedTuple):
  """All that a run of one seed keeps; E environments.

  Attributes:
    learner: the learner's state.
    weights: those acted with; `[E, ...]` where each actor has its own.
    actors, environments: their states, `[E, ...]`.
    timesteps: the newest, observations encoded, `[E, ...]`.
    replay: rows and windows.
    episodes: those under way.
    key: a random key.
    steps: int32 `[]`, of each environment.
    params: of the environment's functions.
  """

  learner: types.State
  weights: types.Params
  actors: types.State
  environments: jax_types.State
  timesteps: dm_env.TimeStep
  replay: device_replay.State
  episodes: Episodes
  key: jax.Array
  steps: jax.Array
  params: jax_types.Params


class Report(NamedTuple):
  """What leaves the device after some rounds.

  Attributes:
    episodes: `[steps, (S,) E]`.
    metrics: of the last update, `[(S)]`.
    finite: whether all updates were, `[(S)]`.
  """

  episodes: Episodes
  metrics: dict[str, jax.Array]
  finite: jax.Array


class Program:
  """An agent in an environment, as functions of states of S seeds.

  With one seed there is no axis for it: what is batched over a single seed is slower
  on a CPU.
  """

  def __init__(
    self,
    agent: types.Agent,
    environment: jax_types.Environment,
    params: jax_types.Params,
    *,
    num_envs: int,
    num_seeds: int,
    params_per_seed: bool = False,
  ):
    """Declares the program; nothing is compiled yet.

    Args:
      agent: made for the environment's spec.
      environment: written in JAX.
      params: of its functions.
      num_envs: E, environments of each seed, each with an actor.
      num_seeds: S.
      params_per_seed: whether each seed has its own parameters: their arrays have a
        leading axis of S > 1.
    """
    self._agent = agent
    self._environment = environment
    self._num_envs = num_envs
    self._core = agent.actor()
    self._replay = device_replay.DeviceReplay(agent, num_envs)
    self._lift = jax.vmap if num_seeds > 1 else lambda function: function
    # Updates in a round, after steps of each environment.
    wanted = agent.replay.updates_per_step * num_envs
    ratio = fractions.Fraction(wanted).limit_denominator(_MAX_STEPS_PER_ROUND)
    self.updates_per_round, self.steps_per_round = ratio.as_integer_ratio()
    if not math.isclose(ratio, wanted, rel_tol=0.01):
      raise ValueError(
        f"updates_per_step is {agent.replay.updates_per_step}; the device runner makes "
        f"an update within {_MAX_STEPS_PER_ROUND} steps at most: raise it."
      )
    init = self._init
    if num_seeds > 1:
      init = jax.vmap(init, (0, 0 if params_per_seed else None))
    self._compiled_init = jax.jit(init)
    self._params = params
    self.act = jax.jit(self._act_only, static_argnums=1, donate_argnums=0)
    self.learn = jax.jit(self._rounds, static_argnums=1, donate_argnums=0)

  def init(self, keys: jax.Array) -> State:
    """The state before the first step: of a key, or of S > 1 keys `[S, ...]`."""
    return self._compiled_init(keys, self._params)

  def _init(self, key: jax.Array, params: jax_types.Params) -> State:
    """The state before the first step, of one seed."""
    num_envs = self._num_envs
    learner_key, actor_key, reset_key, key = jax.random.split(key, 4)
    learner = self._agent.learner.init(learner_key)
    weights = self._agent.learner.params(learner)
    if self._agent.refresh is not None:
      weights = jax.tree.map(
        lambda x: jnp.broadcast_to(x, (num_envs, *x.shape)), weights
      )
    actors = jax.vmap(self._core.init, (0, 0, None))(
      jax.random.split(actor_key, num_envs), jnp.arange(num_envs), num_envs
    )
    environments, timesteps = self._reset(jax.random.split(reset_key, num_envs), params)
    metrics = self._metrics(environments, params)
    zeros = jnp.zeros((num_envs,), jnp.float32)
    counts = jnp.zeros((num_envs,), jnp.int32)
    episodes = Episodes(
      jnp.zeros((num_envs,), bool),
      zeros,
      counts,
      counts,
      zeros,
      jax.tree.map(jnp.zeros_like, metrics),
    )
    return State(
      learner=learner,
      weights=weights,
      actors=actors,
      environments=environments,
      timesteps=timesteps,
      replay=self._replay.init(),
      episodes=episodes,
      key=key,
      steps=jnp.int32(0),
      # The state is donated; the caller's arrays are not.
      params=jax.tree.map(jnp.copy, params),
    )

  def _act_only(self, state: State, num_steps: int) -> tuple[State, Episodes]:
    """Steps without learning: (state, `Episodes` `[num_steps, ...]`)."""
    return jax.lax.scan(lambda s, _: self._step(s), state, length=num_steps)

  def _rounds(self, state: State, num_rounds: int) -> tuple[State, Report]:
    """Rounds of steps and updates."""

    def one_round(state: State, _: None) -> tuple[State, Any]:
      state, episodes = self._act_only(state, self.steps_per_round)
      state, metrics = jax.lax.scan(
        lambda s, _: self._lift(self._update)(s), state, length=self.updates_per_round
      )
      state = self._lift(self._fetch)(state)
      return state, (episodes, metrics)

    state, (episodes, metrics) = jax.lax.scan(one_round, state, length=num_rounds)
    episodes = jax.tree.map(lambda x: jnp.reshape(x, (-1, *x.shape[2:])), episodes)
    return state, Report(
      episodes,
      jax.tree.map(lambda x: x[-1, -1], metrics),
      jnp.min(metrics["finite"], axis=(0, 1)) > 0,
    )

  def _step(self, state: State) -> tuple[State, Episodes]:
    """One step of all environments; those that it ends begin anew."""
    state = self._lift(self._act)(state)
    # Not within the functions of one seed: vmapped, both sides would be computed.
    return jax.lax.cond(
      jnp.any(state.episodes.ended),
      self._lift(self._end_episodes),
      lambda s: (s, s.episodes),
      state,
    )

  def _act(self, state: State) -> State:
    """Chooses actions, takes them, and stores the rows."""
    key, step_key = jax.random.split(state.key)
    weights = state.weights
    if self._agent.refresh is not None:
      begins = state.timesteps.step_type == dm_env.StepType.FIRST
      fresh = self._agent.learner.params(state.learner)
      weights = jax.vmap(_choose, (0, None, 0))(begins, fresh, weights)
    action, actors = self._select(weights, state)
    extras = jax.vmap(self._core.extras)(actors)
    environments, timesteps = jax.vmap(self._environment.step, (0, 0, 0, None))(
      jax.random.split(step_key, self._num_envs),
      state.environments,
      action,
      state.params,
    )
    timesteps = self._encoded(timesteps)
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
      weights=weights,
      actors=actors,
      environments=environments,
      timesteps=timesteps,
      replay=self._replay.append(state.replay, row, ones > 0),
      episodes=episodes,
      key=key,
      steps=state.steps + 1,
    )

  def _end_episodes(self, state: State) -> tuple[State, Episodes]:
    """Shows actors the last observations, stores them, and resets environments."""
    key, reset_key = jax.random.split(state.key)
    ended = state.episodes.ended
    choose = jax.vmap(_choose)
    actors = choose(ended, self._select(state.weights, state)[1], state.actors)
    extras = jax.vmap(self._core.extras)(actors)
    zeros = jnp.zeros((self._num_envs,))
    row = {
      **extras,
      "observation": self._newest_frames(state.timesteps),
      **dict.fromkeys(("action", "reward", "discount", "mask"), zeros),
    }
    replay = self._replay.append(state.replay, row, ended)
    replay = self._replay.end_episodes(replay, ended)
    done = state.episodes._replace(
      intrinsic=state.episodes.intrinsic + extras.get("r_int", 0.0),
      metrics=self._metrics(state.environments, state.params),
    )
    environments, timesteps = self._reset(
      jax.random.split(reset_key, self._num_envs), state.params
    )
    nothing = jax.tree.map(jnp.zeros_like, state.episodes)
    return state._replace(
      actors=actors,
      environments=choose(ended, environments, state.environments),
      timesteps=choose(ended, timesteps, state.timesteps),
      replay=replay,
      episodes=choose(ended, nothing, state.episodes),
      # What happens to other seeds must not matter to this one.
      key=_choose(jnp.any(ended), key, state.key),
    ), done

  def _update(self, state: State) -> tuple[State, dict[str, jax.Array]]:
    """One update of the learner."""
    key, sample_key = jax.random.split(state.key)
    keys, sample = self._replay.sample(state.replay, sample_key)
    sample = types.join_frames(sample, self._agent.replay.num_frames)
    learner, output = self._agent.learner.update(state.learner, sample)
    replay = self._replay.update_priorities(state.replay, keys, output.priorities)
    # A priority that is NaN would poison replay.
    is_finite = output.metrics["finite"] > 0
    priorities = _choose(is_finite, replay.priorities, state.replay.priorities)
    replay = replay._replace(priorities=priorities)
    return state._replace(learner=learner, replay=replay, key=key), output.metrics

  def _fetch(self, state: State) -> State:
    """Gives actors the learner's weights, where it is time to."""
    period = self._agent.actor_update_period
    # Rounds may be longer than the period.
    is_due = state.steps % period < self.steps_per_round
    fresh = self._agent.learner.params(state.learner)
    if self._agent.refresh is not None:
      fresh = jax.vmap(self._agent.refresh, (0, None))(state.weights, fresh)
    return state._replace(weights=_choose(is_due, fresh, state.weights))

  def _select(
    self, weights: types.Params, state: State
  ) -> tuple[jax.Array, types.State]:
    axis = None if self._agent.refresh is None else 0
    select = jax.vmap(self._core.select_action, (types.ActorParams(axis, None), 0, 0))
    # Schedules have ended long before this counts no further.
    most = np.iinfo(np.int32).max // self._num_envs
    env_steps = jnp.minimum(state.steps, most) * self._num_envs
    params = types.ActorParams(weights, env_steps)
    return select(params, state.timesteps, state.actors)

  def _reset(
    self, keys: jax.Array, params: jax_types.Params
  ) -> tuple[jax_types.State, dm_env.TimeStep]:
    reset = jax.vmap(self._environment.reset, (0, None))
    environments, timesteps = reset(keys, params)
    return environments, self._encoded(timesteps)

  def _metrics(
    self, environments: jax_types.State, params: jax_types.Params
  ) -> dict[str, jax.Array]:
    metrics = jax.vmap(self._environment.metrics, (0, None))
    return metrics(environments, params)

  def _newest_frames(self, timesteps: dm_env.TimeStep) -> jax.Array:
    """What rows keep of the observations."""
    num_frames = self._agent.replay.num_frames
    if num_frames == 1:
      return timesteps.observation
    channels = timesteps.observation.shape[-1] // num_frames
    return timesteps.observation[..., -channels:]

  def _encoded(self, timesteps: dm_env.TimeStep) -> dm_env.TimeStep:
    encode = jax.vmap(self._agent.encoding.on_device)
    return timesteps._replace(observation=encode(timesteps.observation))


def _choose(condition: jax.Array, new: Any, old: Any) -> Any:
  """A pytree or the other, by a bool `[]`."""
  return jax.tree.map(lambda n, o: jnp.where(condition, n, o), new, old)
