"""An ActorCore as an `acme.core.Actor`, in one environment or in several."""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import acme.core
import dm_env
import jax
import jax.numpy as jnp
import numpy as np

from explorax.agents import types, updates
from explorax.agents.replay import adder as adder_lib

Extras = dict[str, np.ndarray]

# Compiled steps that a process keeps, for one environment and for several ones.
_MAX_PROGRAMS = 16


class Actor(acme.core.Actor):
  """Acts with a core in E environments, with one inference for all of them.

  In one environment it is Acme's actor and passes its data to an adder: a loop calls
  `observe_first`, `select_action`, `observe` and `update`. Acme's loop passes only the
  observation to `select_action`; the core needs the whole timestep, which is stored by
  `observe_first` and `observe`.

  With several environments, the caller steps them, calls `act` and `fetch`, and stores
  the rows. The environments may be at different steps of their episodes; those that do
  not act in a call are left unchanged.

  Attributes:
    env_steps: steps of the run, for the agent's schedules. `observe` counts its own
      steps; a caller that knows other actors' steps sets it.
    policy: the index of the policy that chose the last action.
    extras: the extras of the core's last answer, possibly to a LAST timestep.
  """

  def __init__(
    self,
    agent: types.Agent,
    core: types.ActorCore,
    variables: acme.core.VariableSource,
    key: jax.Array,
    adder: adder_lib.WindowAdder | None = None,
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
      adder: to replay, in one environment; None for none.
      actor_ids: of the actor in each environment, for a ladder of ε or a mixture of
        policies; E of them.
      num_actors: of the run, including these.
    """
    self._encode = agent.encoding
    self._period = agent.actor_update_period
    self._variables = variables
    self._adder = adder
    self._num_envs = len(actor_ids)
    self._keeps_weights = agent.refresh is not None
    self._refresh: Callable[..., types.Params] | None = agent.refresh
    if self._num_envs == 1:
      self._state = core.init(key, actor_ids[0], num_actors)
      self._step = _step_of_one(core)
    else:
      self._state = jax.vmap(core.init, (0, 0, None))(
        jax.random.split(key, self._num_envs),
        jnp.asarray(actor_ids, jnp.int32),
        num_actors,
      )
      self._step = _step_of_many(core, self._keeps_weights)
      if agent.refresh is not None:
        self._refresh = _refresh_of_many(agent.refresh)
    self._timestep: dm_env.TimeStep | None = None
    self._weights: types.Params = None  # The newest fetched ones.
    # Those in use, if a part of them is fixed during an episode; [E, ...] if E > 1.
    self._own: types.Params = None
    self.extras: Extras = {}
    self.env_steps = 0
    self.policy = 0

  @property
  def timestep(self) -> dm_env.TimeStep | None:
    """The newest one, with its observation encoded; None before the first."""
    return self._timestep

  def observe_first(self, timestep: dm_env.TimeStep) -> None:
    """Starts an episode."""
    self._timestep = self.encoded(timestep)
    if self._keeps_weights:
      self.fetch()
    if self._adder is not None:
      self._adder.add_first(self._timestep)

  def select_action(self, observation: Any) -> np.int32:
    """The action for the last observation of `observe_first` or `observe`."""
    del observation  # It is in the stored timestep.
    action = self._answer()
    self.policy = int(self.extras["policy"])
    return np.int32(action)

  def observe(self, action: Any, next_timestep: dm_env.TimeStep) -> None:
    """Takes the environment's answer; the core also gets a LAST timestep."""
    self._timestep = self.encoded(next_timestep)
    self.env_steps += 1
    if self._adder is not None:
      self._adder.add(action, self._timestep, self.extras)
    if next_timestep.last():
      self._answer()  # The action is not used; the extras are stored.
      if self._adder is not None:
        self._adder.add_last(self.extras)

  def update(self, wait: bool = False) -> None:
    """Fetches the weights if their period is over; with `wait`, at once."""
    if wait or self.env_steps % self._period == 0:
      self.fetch()

  def fetch(self) -> None:
    """Takes the newest weights; parts that are fixed during an episode stay."""
    self._weights = self._variables.get_variables(["params"])[0]
    if self._refresh is not None and self._own is not None:
      self._own = self._refresh(self._own, self._weights)

  def encoded(self, timestep: dm_env.TimeStep) -> dm_env.TimeStep:
    """The timestep as arrays with fixed dtypes, which avoid recompilation."""
    reward = 0.0 if timestep.reward is None else timestep.reward
    discount = 1.0 if timestep.discount is None else timestep.discount
    return dm_env.TimeStep(
      np.int32(timestep.step_type),
      np.float32(reward),
      np.float32(discount),
      self._encode(timestep.observation),
    )

  def act(
    self, timesteps: Sequence[dm_env.TimeStep], acts: np.ndarray
  ) -> tuple[np.ndarray, list[Extras]]:
    """Answers the newest timesteps of some environments.

    Args:
      timesteps: of all environments, encoded; E of them.
      acts: bool `[E]`, which of them are answered. A LAST timestep must also be passed
        once: its action is not used, but it has extras.

    Returns:
      The actions, int32 `[E]`, and each environment's extras. If it was not answered,
      the action has no meaning, and the extras are those of its last answer.
    """
    if self._num_envs == 1:
      if not acts[0]:
        return np.zeros(1, np.int32), [self.extras]
      self._timestep = timesteps[0]
      return self._answer()[None], [self.extras]
    if self._weights is None:
      self.fetch()
    if self._keeps_weights and self._own is None:
      self._own = jax.tree.map(
        lambda x: jnp.broadcast_to(x, (self._num_envs, *np.shape(x))), self._weights
      )
    stacked = jax.tree.map(lambda *each: np.stack(each), *timesteps)
    (self._state, self._own), action, extras = self._step(
      (self._state, self._own), self._weights, np.int32(self.env_steps), stacked, acts
    )
    columns = {name: np.asarray(values) for name, values in extras.items()}
    return np.asarray(action), [
      {name: values[env] for name, values in columns.items()}
      for env in range(self._num_envs)
    ]

  def clear_episode(self) -> None:
    """Ends the current episode without telling the adder."""
    self._timestep = None

  def truncate_episode(self) -> None:
    """Ends the current episode because its environment failed.

    For replay this is a truncation: the last observation received is the last row, real
    and with its extras, and the transition into it bootstraps from it. The failed step
    is not stored. An episode without a transition is dropped.
    """
    if self._adder is not None and self._timestep is not None:
      if self._timestep.first():
        self._adder.reset()
      elif not self._timestep.last():
        self._adder.add_last(self.extras)
    self._timestep = None

  def save(self) -> tuple[dict[str, Any], dict[str, Any]]:
    """The state in one environment: (a pytree of arrays, values in JSON's types)."""
    weights = self._own if self._keeps_weights else self._weights
    arrays = {
      "state": self._state,
      "weights": () if weights is None else weights,
      "timestep": () if self._timestep is None else tuple(self._timestep),
      "extras": self.extras,
    }
    counts = {
      "env_steps": self.env_steps,
      "policy": self.policy,
      "has_weights": weights is not None,
      "has_timestep": self._timestep is not None,
      "extras": {n: (list(x.shape), x.dtype.name) for n, x in self.extras.items()},
    }
    # Copies: the state is donated to the next step.
    return jax.tree.map(np.array, jax.device_get(arrays)), counts

  def shapes(self, counts: Mapping[str, Any]) -> dict[str, Any]:
    """The shapes of the arrays that `save` returned with `counts`."""
    number, spec = jax.ShapeDtypeStruct, self._encode.spec
    scalars = (number((), t) for t in (np.int32, np.float32, np.float32))
    timestep = (*scalars, number(spec.shape, spec.dtype))
    weights = lambda: self._variables.get_variables(["params"])[0]  # noqa: E731
    return {
      "state": jax.eval_shape(lambda: self._state),
      "weights": jax.eval_shape(weights) if counts["has_weights"] else (),
      "timestep": timestep if counts["has_timestep"] else (),
      "extras": {n: number(tuple(s), d) for n, (s, d) in counts["extras"].items()},
    }

  def restore(self, arrays: Mapping[str, Any], counts: Mapping[str, Any]) -> None:
    """Resumes from the result of `save`."""
    self._state = jax.tree.map(lambda x: jnp.array(x, copy=True), arrays["state"])
    weights = jax.tree.map(jnp.asarray, arrays["weights"])
    self._weights = weights if counts["has_weights"] else None
    self._own = self._weights if self._keeps_weights else None
    timestep = arrays["timestep"]
    self._timestep = dm_env.TimeStep(*timestep) if counts["has_timestep"] else None
    self.extras = dict(arrays["extras"])
    self.env_steps, self.policy = counts["env_steps"], counts["policy"]

  def _answer(self) -> np.ndarray:
    """The core's answer to the newest timestep of the single environment."""
    timestep = self._timestep
    if timestep is None:
      raise ValueError("there is no timestep; call observe_first.")
    if self._weights is None:
      self.fetch()
    weights = self._weights
    if self._keeps_weights:
      if self._own is None or timestep.first():
        self._own = weights
      weights = self._own
    self._state, action, extras = self._step(
      self._state, types.ActorParams(weights, np.int32(self.env_steps)), timestep
    )
    self.extras = {name: np.asarray(value) for name, value in extras.items()}
    return np.asarray(action)


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
def _step_of_many(core: types.ActorCore, keeps_weights: bool) -> Callable[..., Any]:
  """((states, own weights), newest weights, env_steps, timesteps, acts) → the same.

  Args:
    core: of one environment.
      keeps_weights: whether a part of the weights is fixed during an episode, so that
        each environment has its own weights, `[E, ...]`.
  """
  axis = 0 if keeps_weights else None
  select = jax.vmap(core.select_action, (types.ActorParams(axis, None), 0, 0))
  keep_if = jax.vmap(updates.keep_if)

  @_jit
  def step(
    carry: tuple[types.State, types.Params],
    weights: types.Params,
    env_steps: jax.Array,
    timesteps: dm_env.TimeStep,
    acts: jax.Array,
  ) -> tuple[tuple[types.State, types.Params], jax.Array, dict[str, jax.Array]]:
    state, own = carry
    if keeps_weights:
      begins = acts & (timesteps.step_type == dm_env.StepType.FIRST)
      own = jax.vmap(updates.keep_if, (0, None, 0))(begins, weights, own)
      weights = own
    action, new = select(types.ActorParams(weights, env_steps), timesteps, state)
    state = keep_if(acts, new, state)
    return (state, own), action, jax.vmap(core.extras)(state)

  return step


@functools.lru_cache(_MAX_PROGRAMS)
def _refresh_of_many(refresh: types.Refresh) -> Callable[..., types.Params]:
  """(current `[E, ...]`, new) → the weights for the rest of each episode."""
  return jax.jit(jax.vmap(refresh, (0, None)))
