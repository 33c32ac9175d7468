"""An agent in several environments as compiled functions of a state on the device.

`DeviceAgent` is the agent, wherever its environments run. `ScannedProgram` scans it
over time with environments written in JAX, and `SteppedProgram` compiles it around the
steps of environments on the host. `device.py` calls the programs.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import dm_env
import jax
import jax.numpy as jnp
import numpy as np

from explorax import accelerators
from explorax.agents import types, updates
from explorax.agents.replay import device as device_replay
from explorax.agents.wiring import episode_weights, threefry
from explorax.environments import jax_types
from explorax.experiments.runners import common
from explorax.exploration import sums

MAX_UPDATES = 10_000  # Between two checks of whether to stop.
MIN_STEPS_PER_REPORT = 100  # Of each environment, between two reports of the device.
_MAX_ENV_STEPS_PER_REPORT = 10_000  # Of all environments, unless that is fewer.
# Rows through a network × its weights, between two reports: for small networks half a
# second on two cores.
_ROWS_PER_REPORT = 1e10
_INT32_MAX = int(np.iinfo(np.int32).max)
# Bounds the denominator of updates per step, and with it the length of a round.
_MAX_STEPS_PER_ROUND = 1000
_MAX_PROGRAMS = 8  # Whose compiled functions are kept, of each kind.


class Episodes(NamedTuple):
  """The current episodes, or those that a step has ended; `[E]` each.

  Attributes:
    ended: bool, whether the step was an episode's last.
    episode_return, length: so far; the return without the loss of small rewards.
    policy: the index of the policy at the episode's start.
    intrinsic: Σ r_int over the rows; 0 if acting computes none.
    metrics: the environment's, if the episode has ended.
  """

  ended: jax.Array
  episode_return: sums.Sum
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
    steps: int32 `[]`, of each environment.
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
  """

  number: jax.Array
  metrics: dict[str, jax.Array]


class Log(NamedTuple):
  """The episodes that steps have ended, and each learner's newest update then.

  Attributes:
    episodes: `[steps_per_report, (S,) E]`; `ended` is false in steps not made.
    update: counted from the beginning of the log, `[steps_per_report, (S)]`; of steps
      in which an episode has ended.
  """

  episodes: Episodes
  update: Update


class DeviceAgent:
  """An agent in E environments, as functions of the state of one seed."""

  def __init__(self, agent: types.Agent, num_envs: int, max_steps: int | None = None):
    """Prepares the functions; `max_steps` is that of `DeviceReplay`."""
    threefry.unroll_on_cpu()
    self._agent = agent
    self._num_envs = num_envs
    self._core = agent.actor()
    period = agent.actor_update_period
    self._episode_weights = episode_weights.EpisodeWeights(agent, num_envs)
    # Other actors use the learner's own: a copy in each step costs memory traffic.
    self._actors_keep_weights = period > 1 or agent.refresh is not None
    self.replay = device_replay.DeviceReplay(agent, num_envs, max_steps=max_steps)

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
      learner_key, actor_key: of the first states.
      key: of all that follows.
      timesteps: the first ones, encoded, `[E, ...]`.
      metrics: those of environments on the device.
    """
    num_envs = self._num_envs
    learner = self._agent.learner.init(learner_key)
    weights: types.Params = ()
    if self._actors_keep_weights:
      weights = self._episode_weights.init(self._agent.learner.params(learner))
    actors = jax.vmap(self._core.init, (0, 0, None))(
      jax.random.split(actor_key, num_envs), jnp.arange(num_envs), num_envs
    )
    zeros = jnp.zeros((num_envs,), jnp.float32)
    counts = jnp.zeros((num_envs,), jnp.int32)
    episodes = Episodes(
      jnp.zeros((num_envs,), bool),
      sums.zero((num_envs,)),
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
    begins = state.timesteps.step_type == dm_env.StepType.FIRST
    newest = self._agent.learner.params(state.learner)
    weights = self._episode_weights.begin(state.weights, newest, begins)
    action, actors = self._select(weights, state)
    return action, state._replace(weights=weights, actors=actors)

  def observe(
    self, state: State, action: jax.Array, timesteps: dm_env.TimeStep
  ) -> State:
    """Stores the environments' encoded answers `[E, ...]` to these actions `[E]`."""
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
      episode_return=sums.add(old.episode_return, timesteps.reward),
      length=old.length + 1,
      policy=jnp.where(old.length == 0, extras["policy"], old.policy),
      intrinsic=old.intrinsic + extras.get("r_int", 0.0),
      metrics=old.metrics,
    )
    return state._replace(
      timesteps=timesteps,
      replay=self.replay.append(state.replay, row, ones > 0),
      episodes=episodes,
      steps=jnp.minimum(state.steps, _INT32_MAX - 1) + 1,
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
    where = jax.vmap(updates.select_tree)
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
    _, metrics = jax.eval_shape(self._update, state)
    zeros = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), metrics)
    return Update(
      number=jnp.int32(number), metrics={**zeros, "finite": zeros["finite"] + 1}
    )

  def copy_target_if_due(
    self,
    state: State,
    number: jax.Array,
    lift: Callable[[Any], Any] = lambda function: function,
  ) -> State:
    """Copies the target network, if that is due after this number of updates.

    `lift` makes a function of one learner's state one of `state`'s.
    """
    core = self._agent.learner
    if core.copy_target is None:
      return state
    is_due, copy = number % core.target_period == 0, lift(core.copy_target)
    learner = accelerators.branch(is_due, copy, lambda same: same, state.learner)
    return state._replace(learner=learner)

  def update(self, state: State, before: Update) -> tuple[State, Update]:
    """One update of the learner, after those that `before` stands for."""
    state, metrics = self._update(state)
    update = Update(before.number + 1, metrics)
    return state, updates.select_tree(before.metrics["finite"] > 0, update, before)

  def _update(self, state: State) -> tuple[State, dict[str, jax.Array]]:
    """Returns (the state, the learner's metrics)."""
    key, sample_key = jax.random.split(state.key)
    keys, sample = self.replay.sample(state.replay, sample_key)
    learner, output = self._agent.learner.update(state.learner, sample)
    replay = self.replay.update_priorities(state.replay, keys, output.priorities)
    # A priority that is NaN would poison replay.
    is_finite = output.metrics["finite"] > 0
    priorities = updates.select_tree(
      is_finite, replay.priorities, state.replay.priorities
    )
    replay = replay._replace(priorities=priorities)
    state = state._replace(learner=learner, replay=replay, key=key)
    return state, output.metrics

  def fetch(self, state: State, num_steps: jax.Array | int) -> State:
    """Copies the learner's weights to the actors if their period is over.

    The number of steps since the last call may exceed the period.
    """
    if not self._actors_keep_weights:
      return state
    is_due = state.steps % self._agent.actor_update_period < num_steps
    newest = self._agent.learner.params(state.learner)
    fetched = self._episode_weights.fetch(state.weights, newest)
    return state._replace(weights=updates.select_tree(is_due, fetched, state.weights))

  def encoded(self, timesteps: dm_env.TimeStep) -> dm_env.TimeStep:
    """The timesteps with observations `[E, ...]` as actors see them."""
    encode = jax.vmap(self._agent.encoding.on_device)
    return timesteps._replace(observation=encode(timesteps.observation))

  def _select(
    self, weights: types.Params, state: State
  ) -> tuple[jax.Array, types.State]:
    axis = self._episode_weights.axis
    if not self._actors_keep_weights:
      weights = self._agent.learner.params(state.learner)
    select = jax.vmap(self._core.select_action, (types.ActorParams(axis, None), 0, 0))
    # All schedules have ended long before this counter saturates.
    most = _INT32_MAX // self._num_envs
    env_steps = jnp.minimum(state.steps, most) * self._num_envs
    params = types.ActorParams(weights, env_steps)
    return select(params, state.timesteps, state.actors)

  def _newest_frames(self, timesteps: dm_env.TimeStep) -> jax.Array:
    """The part of the observations that rows store."""
    num_frames = self._agent.replay.num_frames
    if num_frames == 1:
      return timesteps.observation
    channels = timesteps.observation.shape[-1] // num_frames
    return timesteps.observation[..., -channels:]


class ScannedProgram:
  """An agent in environments written in JAX, as functions of the states of S seeds.

  A single seed has no axis of its own: a batch of one is slower on a CPU.
  """

  def __init__(
    self,
    agent: types.Agent,
    environment: jax_types.Environment,
    num_envs: int,
    num_seeds: int,
    params_per_seed: bool = False,
    max_steps: int | None = None,
  ):
    """Prepares the program; nothing is compiled yet.

    Args:
      agent: made for the environment's spec.
      environment: written in JAX.
      num_envs: E, environments of each seed, each with an actor.
      num_seeds: S.
      params_per_seed: whether the environment's parameters have a leading axis of S.
      max_steps: before the last round; see `DeviceReplay`.
    """
    self._environment = environment
    self.num_envs = num_envs
    self._lift = jax.vmap if num_seeds > 1 else lambda function: function
    # A round: steps of each environment, then updates.
    ratio = common.updates_per_step(
      agent.replay, num_envs, _MAX_STEPS_PER_ROUND, MAX_UPDATES
    )
    self.updates_per_round, self.steps_per_round = ratio.as_integer_ratio()
    most = None if max_steps is None else max_steps + self.steps_per_round
    self.agent = DeviceAgent(agent, num_envs, max_steps=most)
    self.steps_per_report = self._steps_per_report(agent, num_seeds)
    init = self._init
    if num_seeds > 1:
      init = jax.vmap(init, (0, 0 if params_per_seed else None))
    # (key, or S > 1 keys `[S, ...]`; the environment's parameters) → the first state.
    self.init = jax.jit(init)
    # On an accelerator, the numbers are static: the host waits for a loop's condition.
    static = () if accelerators.may_branch() else (1, 2, 3)
    self._advance = jax.jit(self._rounds, static_argnums=static, donate_argnums=0)

  def act(self, state: State, num_steps: int) -> tuple[State, Log]:
    """Steps without learning, at most `steps_per_report`."""
    rounds = (num_steps, 1) if self.steps_per_round == 1 else (1, num_steps)
    return self._advance(state, *rounds, 0, 0)[:2]

  def learn(
    self, state: State, num_rounds: int, num_updates: int = 0
  ) -> tuple[State, Log, Update]:
    """Rounds of steps and updates, at most `steps_per_report` steps.

    `num_updates` are each learner's so far. Returns the state, the log, and the last
    update of these rounds, counted from 1.
    """
    of_round = self.steps_per_round, self.updates_per_round
    return self._advance(state, num_rounds, *of_round, num_updates)

  def _steps_per_report(self, agent: types.Agent, num_seeds: int) -> int:
    """Steps of each environment between two reports: whole rounds.

    A report takes milliseconds, and a run stops only there. The number depends on the
    settings alone, so that runs can be repeated.
    """
    replay, learner = agent.replay, agent.learner
    params = jax.eval_shape(
      lambda key: learner.params(learner.init(key)), jax.random.PRNGKey(0)
    )
    rows_per_round = self.num_envs * self.steps_per_round
    rows_per_round += self.updates_per_round * replay.batch_size * replay.window_rows
    num_weights = sum(leaf.size for leaf in jax.tree.leaves(params))
    rounds = int(_ROWS_PER_REPORT / (num_seeds * num_weights * rows_per_round))
    most_steps = max(MIN_STEPS_PER_REPORT, _MAX_ENV_STEPS_PER_REPORT // self.num_envs)
    rounds = min(rounds, most_steps // self.steps_per_round)
    rounds = max(rounds, MIN_STEPS_PER_REPORT // self.steps_per_round)
    rounds = min(rounds, MAX_UPDATES // self.updates_per_round)
    return self.steps_per_round * max(rounds, 1)

  def _init(self, key: jax.Array, params: jax_types.Params) -> State:
    """The state before the first step, of one seed."""
    learner_key, actor_key, reset_key, key = jax.random.split(key, 4)
    # The state is donated, and the parameters are the caller's.
    params = jax.tree.map(jnp.copy, params)
    environments, timesteps = self._reset(reset_key, params)
    metrics = self._metrics(environments, params)
    state = self.agent.init(learner_key, actor_key, key, timesteps, metrics)
    return state._replace(environments=environments, params=params)

  def _rounds(
    self,
    state: State,
    num_rounds: jax.Array | int,
    steps_per_round: jax.Array | int,
    updates_per_round: jax.Array | int,
    num_updates: jax.Array,
  ) -> tuple[State, Log, Update]:
    """See `learn`. On a CPU one program is compiled for all numbers."""
    size, newest = self.steps_per_report, self._lift(self.agent.no_update)(state)
    log = jax.tree.map(
      lambda x: jnp.zeros((size, *x.shape), x.dtype), Log(state.episodes, newest)
    )

    def one_round(i: jax.Array, carry: Any) -> Any:
      state, newest, log = carry
      made = num_updates + i * updates_per_round

      def update(j: jax.Array, carry: tuple[State, Update]) -> tuple[State, Update]:
        state, newest = carry
        # Outside the functions of one seed, as in `_step`.
        state = self.agent.copy_target_if_due(state, made + j, self._lift)
        return self._lift(self.agent.update)(state, newest)

      if self.steps_per_round == 1:
        state, log = self._step(state, newest, log, i)
      else:
        first = i * steps_per_round
        state, log = jax.lax.fori_loop(
          0,
          steps_per_round,
          lambda j, c: self._step(c[0], newest, c[1], first + j),
          (state, log),
        )
      state, newest = jax.lax.fori_loop(0, updates_per_round, update, (state, newest))
      state = self._lift(lambda s: self.agent.fetch(s, steps_per_round))(state)
      return state, newest, log

    carry = state, newest, log
    state, newest, log = jax.lax.fori_loop(0, num_rounds, one_round, carry)
    return state, log, newest

  def _step(
    self, state: State, newest: Update, log: Log, index: jax.Array
  ) -> tuple[State, Log]:
    """One step of all environments; ended episodes restart, and are logged."""

    def end(state: State, log: Log) -> tuple[State, Log]:
      state, episodes = self._lift(self._end_episodes)(state)
      return state, jax.tree.map(
        lambda x, new: jax.lax.dynamic_update_index_in_dim(x, new, index, 0),
        log,
        Log(episodes, newest),
      )

    state = self._lift(self._act)(state)
    if not accelerators.may_branch():
      return end(state, log)
    # Outside the functions of one seed: under vmap, both branches would be computed.
    return jax.lax.cond(
      jnp.any(state.episodes.ended), end, lambda *same: same, state, log
    )

  def _act(self, state: State) -> State:
    """Chooses actions, steps the environments, and stores the rows."""
    key, step_key = jax.random.split(state.key)
    action, state = self.agent.choose(state)
    environments, timesteps = jax.vmap(self._environment.step, (0, 0, 0, None))(
      jax.random.split(step_key, self.num_envs),
      state.environments,
      action,
      state.params,
    )
    state = state._replace(environments=environments, key=key)
    return self.agent.observe(state, action, self.agent.encoded(timesteps))

  def _end_episodes(self, state: State) -> tuple[State, Episodes]:
    """Resets the environments whose episodes have ended."""
    key, reset_key = jax.random.split(state.key)
    # A seed must not depend on the episodes of other seeds.
    key = updates.select_tree(jnp.any(state.episodes.ended), key, state.key)
    environments, first = self._reset(reset_key, state.params)
    metrics = self._metrics(state.environments, state.params)
    environments = jax.vmap(updates.select_tree)(
      state.episodes.ended, environments, state.environments
    )
    state, episodes = self.agent.end_episodes(state, first, metrics)
    return state._replace(environments=environments, key=key), episodes

  def _reset(
    self, key: jax.Array, params: jax_types.Params
  ) -> tuple[jax_types.State, dm_env.TimeStep]:
    reset = jax.vmap(self._environment.reset, (0, None))
    environments, timesteps = reset(jax.random.split(key, self.num_envs), params)
    return environments, self.agent.encoded(timesteps)

  def _metrics(
    self, environments: jax_types.State, params: jax_types.Params
  ) -> dict[str, jax.Array]:
    metrics = jax.vmap(self._environment.metrics, (0, None))
    return metrics(environments, params)


class SteppedProgram:
  """The device's part, as jitted functions of a `State`."""

  def __init__(self, agent: types.Agent, num_envs: int, max_steps: int | None = None):
    """Prepares the functions; `max_steps` is that of `DeviceReplay`."""
    self.agent = DeviceAgent(agent, num_envs, max_steps=max_steps)
    self._num_frames = agent.replay.num_frames
    self._num_envs = num_envs
    self.init = jax.jit(self._init)
    self._choose = jax.jit(self._choose_only, donate_argnums=0)
    self.observe = jax.jit(self._observe, donate_argnums=0)
    self.end_episodes = jax.jit(self._end_episodes, donate_argnums=0)
    self.no_update = self.agent.no_update
    self.update = jax.jit(self._update, donate_argnums=(0, 1))
    self.fetch = jax.jit(lambda s: self.agent.fetch(s, 1), donate_argnums=0)

  def choose(self, state: State) -> tuple[jax.Array, State]:
    """`DeviceAgent.choose`."""
    # Replay is left out of this function, which does not need it.
    rest = state._replace(actors=None, replay=None)  # type: ignore[arg-type]
    action, actors, weights = self._choose(state.actors, rest)
    return action, state._replace(actors=actors, weights=weights)

  def _choose_only(
    self, actors: types.State, rest: State
  ) -> tuple[jax.Array, types.State, types.Params]:
    action, state = self.agent.choose(rest._replace(actors=actors))
    return action, state.actors, state.weights

  def _init(self, key: jax.Array, frames: jax.Array) -> State:
    """The state before the first step, for first frames `[E, ...]`."""
    learner_key, actor_key, key = jax.random.split(key, 3)
    return self.agent.init(learner_key, actor_key, key, self._first(frames))

  def _observe(
    self,
    state: State,
    action: jax.Array,
    reward: jax.Array,
    discount: jax.Array,
    last: jax.Array,
    frames: jax.Array,
  ) -> State:
    """Stores the answers to the actions; all arguments are `[E, ...]`."""
    mid, end = jnp.int32(dm_env.StepType.MID), jnp.int32(dm_env.StepType.LAST)
    timesteps = dm_env.TimeStep(jnp.where(last, end, mid), reward, discount, frames)
    timesteps = self._joined(state.timesteps.observation, timesteps)
    return self.agent.observe(state, action, timesteps)

  def _update(self, state: State, before: Update) -> tuple[State, Update]:
    state = self.agent.copy_target_if_due(state, before.number)
    return self.agent.update(state, before)

  def _end_episodes(
    self, state: State, first_frames: jax.Array
  ) -> tuple[State, Episodes]:
    """Starts new episodes with these frames where episodes have ended."""
    return self.agent.end_episodes(state, self._first(first_frames))

  def _first(self, frames: jax.Array) -> dm_env.TimeStep:
    """The first timesteps of episodes."""
    zeros = jnp.zeros((self._num_envs,), jnp.float32)
    types_ = jnp.full((self._num_envs,), jnp.int32(dm_env.StepType.FIRST))
    before = jnp.zeros_like(jnp.concatenate([frames] * self._num_frames, axis=-1))
    return self._joined(before, dm_env.TimeStep(types_, zeros, zeros + 1, frames))

  def _joined(self, before: jax.Array, timesteps: dm_env.TimeStep) -> dm_env.TimeStep:
    """Appends the newest frames to the frames of the previous observation."""
    timesteps = self.agent.encoded(timesteps)
    if self._num_frames == 1:
      return timesteps
    frames = timesteps.observation
    kept = before[..., frames.shape[-1] :].astype(frames.dtype)
    return timesteps._replace(observation=jnp.concatenate([kept, frames], axis=-1))


# Equal arguments share a program and its compiled functions.
make_scanned = functools.lru_cache(_MAX_PROGRAMS)(ScannedProgram)
make_stepped = functools.lru_cache(_MAX_PROGRAMS)(SteppedProgram)
