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
from explorax.agents.wiring import adder as adder_lib

Extras = dict[str, np.ndarray]

# Compiled steps that a process keeps, for one environment and for several.
_MAX_PROGRAMS = 16


class Actor(acme.core.Actor):
  """Acts with a core in E environments side by side, with one inference for all.

  In one environment it is Acme's actor and hands what it sees to an adder: a loop calls
  `observe_first`, `select_action`, `observe` and `update`. Acme's loop gives
  `select_action` the observation alone; the core wants the whole timestep, which is
  kept from `observe_first` and `observe`.

  In several environments, whoever steps them calls `act` and `fetch` and hands the rows
  on. The environments may be at different places of their episodes; those that are not
  to act at a time are left as they are.

  Attributes:
    env_steps: those of the run, for the agent's schedules. `observe` counts its own;
      whoever knows of other actors' steps sets it.
    policy: the index of the policy that chose the last action.
    extras: what the core returned beside its last answer, that to a LAST timestep
      included.
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
    """Begins in all environments.

    Args:
      agent: made for the spec of the environments.
      core: of acting.
      variables: where the weights are.
      key: of the random numbers of acting.
      adder: to replay, in one environment; None for none.
      actor_ids: of the actor in each environment, which a ladder of ε or a mixture of
        policies follows; E of them.
      num_actors: how many there are in all, these among them.
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
    self._weights: types.Params = None  # The newest that were fetched.
    # Those acted with, where something in them lasts for an episode; [E, ...] if E > 1.
    self._own: types.Params = None
    self.extras: Extras = {}
    self.env_steps = 0
    self.policy = 0

  @property
  def timestep(self) -> dm_env.TimeStep | None:
    """The newest, its observation encoded; None before the first."""
    return self._timestep

  def observe_first(self, timestep: dm_env.TimeStep) -> None:
    """Starts an episode."""
    self._timestep = self.encoded(timestep)
    if self._keeps_weights:
      self.fetch()
    if self._adder is not None:
      self._adder.add_first(self._timestep)

  def select_action(self, observation: Any) -> np.int32:
    """The action for the observation last given to `observe_first` or `observe`."""
    del observation  # The same as the kept timestep's.
    action = self._answer()
    self.policy = int(self.extras["policy"])
    return np.int32(action)

  def observe(self, action: Any, next_timestep: dm_env.TimeStep) -> None:
    """Takes what the environment answered; a LAST timestep is shown to the core."""
    self._timestep = self.encoded(next_timestep)
    self.env_steps += 1
    if self._adder is not None:
      self._adder.add(action, self._timestep, self.extras)
    if next_timestep.last():
      self._answer()  # There is nothing to do any more; what matters are the extras.
      if self._adder is not None:
        self._adder.add_last(self.extras)

  def update(self, wait: bool = False) -> None:
    """Fetches the weights if it is time to, or at once if they are `wait`ed for."""
    if wait or self.env_steps % self._period == 0:
      self.fetch()

  def fetch(self) -> None:
    """Takes the newest weights; what lasts for an episode stays until it ends."""
    self._weights = self._variables.get_variables(["params"])[0]
    if self._refresh is not None and self._own is not None:
      self._own = self._refresh(self._own, self._weights)

  def encoded(self, timestep: dm_env.TimeStep) -> dm_env.TimeStep:
    """A timestep of arrays, whose dtypes never change and so never recompile."""
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
      acts: bool `[E]`, which of them are answered. A LAST timestep has to be shown once
        as well: there is nothing to do any more, but it has extras.

    Returns:
      The actions, int32 `[E]`, and each environment's extras; where it was not
      answered, the action means nothing, and the extras are those of its last answer.
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
    """Ends the episode where it stands, of which the adder knows nothing."""
    self._timestep = None

  def truncate_episode(self) -> None:
    """Ends the episode where it stands, its environment having failed in mid-episode.

    To replay this is a truncation: the last observation that came is the last row,
    real and with its extras, and the transition into it bootstraps from it. The step
    that failed leaves no trace. Without a transition there is nothing to keep.
    """
    if self._adder is not None and self._timestep is not None:
      if self._timestep.first():
        self._adder.reset()
      elif not self._timestep.last():
        self._adder.add_last(self.extras)
    self._timestep = None

  def save(self) -> tuple[dict[str, Any], dict[str, Any]]:
    """The state in one environment: (a pytree of arrays, what JSON can hold)."""
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
    """The shapes of the arrays that `save` returned along with `counts`."""
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
    """Resumes from what `save` returned."""
    self._state = jax.tree.map(lambda x: jnp.array(x, copy=True), arrays["state"])
    weights = jax.tree.map(jnp.asarray, arrays["weights"])
    self._weights = weights if counts["has_weights"] else None
    self._own = self._weights if self._keeps_weights else None
    timestep = arrays["timestep"]
    self._timestep = dm_env.TimeStep(*timestep) if counts["has_timestep"] else None
    self.extras = dict(arrays["extras"])
    self.env_steps, self.policy = counts["env_steps"], counts["policy"]

  def _answer(self) -> np.ndarray:
    """The core's answer to the newest timestep of the only environment."""
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
    keeps_weights: whether what lasts for an episode makes the weights each
      environment's own, `[E, ...]`.
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
  """(held `[E, ...]`, fresh) → the weights that each environment goes on with."""
  return jax.jit(jax.vmap(refresh, (0, None)))
