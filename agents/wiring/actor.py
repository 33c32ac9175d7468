"""An ActorCore as an actor in one environment, with Acme's interface, or in several."""

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import dm_env
import jax
import jax.numpy as jnp
import numpy as np

from explorax.agents import types, updates
from explorax.agents.wiring import episode_weights

if TYPE_CHECKING:  # What plays an exported agent needs no Acme.
  import acme.core

  from explorax.agents.replay import adder as adder_lib

Extras = dict[str, np.ndarray]

# Compiled steps that a process keeps, for one environment and for several ones.
_MAX_PROGRAMS = 16
_FIRST, _LAST = int(dm_env.StepType.FIRST), int(dm_env.StepType.LAST)
MAX_ENV_STEPS = int(np.iinfo(np.int32).max)  # All schedules have ended long before.


class Actor:
  """Acts with a core in E environments, with one inference for all of them.

  A loop calls, in this order: `observe_first` in each environment that was reset,
  `select_actions`, `observe_step` in each environment that has taken a step, and
  `end_episodes`. Environments may be at different steps of their episodes. They do
  not write into observations that they have returned, as a `StandardEnvironment`.

  With one environment it is also an `acme.core.Actor`: `select_action` and `observe`
  are the same calls for that environment.

  Attributes:
    state: the core's, of all environments; a step overwrites its arrays.
    env_steps: steps of the run, for the agent's schedules. The actor counts its own
      steps; a caller that knows other actors' steps sets it.
    timesteps: the newest of each environment, with encoded observations; None if no
      episode is running.
    extras: the core's last answer in each environment, possibly to a LAST timestep.
  """

  def __init__(
    self,
    agent: types.Agent,
    core: types.ActorCore,
    variables: "acme.core.VariableSource",
    key: jax.Array,
    adders: "Sequence[adder_lib.WindowAdder]" = (),
    *,
    actor_ids: Sequence[int] = (0,),
    num_actors: int = 1,
  ):
    """Starts in all environments.

    Args:
      agent: made for the spec of the environments.
      core: of acting.
      variables: the source of the weights.
      key: of acting.
      adders: to replay, one for each environment; none if nothing is stored.
      actor_ids: of the actor in each environment, for a ladder of ε or a mixture of
        policies; E of them.
      num_actors: of the run, including these.
    """
    num_envs = len(actor_ids)
    self._encode = agent.encoding
    self._period = agent.actor_update_period
    self._variables = variables
    self._adders = adders
    self._fetches_first = agent.refresh is not None
    if num_envs == 1:
      self._episode_weights = episode_weights.EpisodeWeights(agent)
      self._begin_episodes = self._episode_weights.begin
      self._refresh = self._episode_weights.fetch
      self.state = jax.jit(core.init)(key, actor_ids[0], num_actors)
      self._step = _step_of_one(core)
    else:
      self._episode_weights = episode_weights.EpisodeWeights(agent, num_envs)
      self._begin_episodes = jax.jit(self._episode_weights.begin)
      self._refresh = jax.jit(self._episode_weights.fetch)
      self.state = jax.vmap(core.init, (0, 0, None))(
        jax.random.split(key, num_envs), jnp.asarray(actor_ids, jnp.int32), num_actors
      )
      self._step = _step_of_many(core, self._episode_weights.axis)
    self._newest: types.Params = None  # The weights of the last fetch.
    self._used: types.Params = None  # Those to act with.
    self.env_steps = 0
    self.timesteps: list[dm_env.TimeStep | None] = [None] * num_envs
    self.extras: list[Extras] = [{} for _ in actor_ids]

  def observe_first(self, timestep: dm_env.TimeStep, env: int = 0) -> None:
    """Starts an episode."""
    encoded = self._encoded(timestep)
    self.timesteps[env] = encoded
    if self._fetches_first:
      self.fetch()
    if self._adders:
      self._adders[env].add_first(encoded)

  def select_actions(self) -> np.ndarray:
    """The actions for the newest timesteps of all environments, int32 `[E]`."""
    return self._answer([timestep is not None for timestep in self.timesteps])

  def observe_step(self, env: int, action: Any, timestep: dm_env.TimeStep) -> None:
    """Takes the answer of an environment to an action."""
    encoded = self._encoded(timestep)
    self.timesteps[env] = encoded
    self.env_steps += 1
    if self._adders:
      self._adders[env].add(action, encoded, self.extras[env])

  def end_episodes(self) -> list[int]:
    """Answers LAST timesteps, and drops the actions.

    Returns:
      The environments whose episodes have ended.
    """
    lasts = [_is(timestep, _LAST) for timestep in self.timesteps]
    if not any(lasts):
      return []
    self._answer(lasts)
    ended = [env for env, last in enumerate(lasts) if last]
    for env in ended:
      self.timesteps[env] = None
      if self._adders:
        self._adders[env].add_last(self.extras[env])
    return ended

  def select_action(self, observation: Any) -> np.int32:
    """Acme's: the action for the last observation of the single environment."""
    del observation  # It is in the newest timestep, which the core needs as a whole.
    return self.select_actions()[0]

  def observe(self, action: Any, next_timestep: dm_env.TimeStep) -> None:
    """Acme's: takes the answer of the single environment."""
    self.observe_step(0, action, next_timestep)
    self.end_episodes()

  def update(self, wait: bool = False) -> None:
    """Fetches the weights if their period is over; with `wait`, at once."""
    if wait or self.env_steps % self._period < len(self.timesteps):
      self.fetch()

  def fetch(self) -> None:
    """Takes the newest weights; parts that are fixed during an episode stay."""
    self._newest = self._variables.get_variables(["params"])[0]
    if self._used is None:
      self._used = self._episode_weights.init(self._newest)
    else:
      self._used = self._refresh(self._used, self._newest)

  def _encoded(self, timestep: dm_env.TimeStep) -> dm_env.TimeStep:
    """The timestep as arrays with fixed dtypes, which avoid recompilation."""
    reward = 0.0 if timestep.reward is None else timestep.reward
    discount = 1.0 if timestep.discount is None else timestep.discount
    return dm_env.TimeStep(
      np.int32(timestep.step_type),
      np.float32(reward),
      np.float32(discount),
      np.asarray(self._encode(timestep.observation)),
    )

  def _answer(self, acts: Sequence[bool]) -> np.ndarray:
    """The core's actions for the newest timesteps where `acts`, bool `[E]`.

    Stores the extras. Elsewhere the state stays, and the action has no meaning.
    """
    filler = next(timestep for timestep in self.timesteps if timestep is not None)
    if self._used is None:
      self.fetch()
    if self._fetches_first:
      begins = np.array([_is(t, _FIRST) for t in self.timesteps]) & acts
      if begins.any():
        self._used = self._begin_episodes(self._used, self._newest, begins)
    env_steps = np.int32(min(self.env_steps, MAX_ENV_STEPS))
    params = types.ActorParams(self._used, env_steps)
    if len(acts) == 1:
      self.state, action, extras = self._step(self.state, params, filler)
      self.extras[0] = {name: np.asarray(value) for name, value in extras.items()}
      return np.asarray(action)[None]
    timesteps = [filler if t is None else t for t in self.timesteps]
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *timesteps)
    self.state, action, extras = self._step(self.state, params, stacked, np.array(acts))
    columns = {name: np.asarray(values) for name, values in extras.items()}
    for env in np.flatnonzero(acts):
      self.extras[env] = {name: values[env] for name, values in columns.items()}
    return np.asarray(action)


def _is(timestep: dm_env.TimeStep | None, step_type: int) -> bool:
  """Whether there is a timestep, of this type; `TimeStep.last` is slow with arrays."""
  return timestep is not None and int(timestep.step_type) == step_type


# The state may be large (a table of counts): it is updated in place.
_jit = functools.partial(jax.jit, donate_argnums=0)


@functools.lru_cache(_MAX_PROGRAMS)
def _step_of_one(core: types.ActorCore) -> Callable[..., Any]:
  """(state, params, timestep) → (state, action, extras), compiled once for a core."""

  @_jit
  def step(
    state: types.State, params: types.ActorParams, timestep: dm_env.TimeStep
  ) -> tuple[types.State, jax.Array, dict[str, jax.Array]]:
    action, state = core.select_action(params, timestep, state)
    return state, action, core.extras(state)

  return step


@functools.lru_cache(_MAX_PROGRAMS)
def _step_of_many(
  core: types.ActorCore, weights_axis: int | None
) -> Callable[..., Any]:
  """(states, params, timesteps, acts) → (states, actions, extras).

  Args:
    core: of one environment.
    weights_axis: see `EpisodeWeights.axis`.
  """
  select = jax.vmap(core.select_action, (types.ActorParams(weights_axis, None), 0, 0))

  @_jit
  def step(
    state: types.State,
    params: types.ActorParams,
    timesteps: dm_env.TimeStep,
    acts: jax.Array,
  ) -> tuple[types.State, jax.Array, dict[str, jax.Array]]:
    action, new = select(params, timesteps, state)
    state = jax.vmap(updates.select_tree)(acts, new, state)
    return state, action, jax.vmap(core.extras)(state)

  return step
