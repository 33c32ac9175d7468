"""Environments of other JAX libraries, in gymnax's protocol; no library is imported.

`reset` and `step` are pure functions. They are recognised by the number of their
arguments and results, and not by names of fields:

- `reset(key[, params])` → `(observation, state)`
- `step([key, ]state, action[, params])` → `(observation, state, reward, done[, info])`
  or `(observation, state, reward, terminated, truncated, info)`

If the environment's class has `reset_env` and `step_env` (gymnax, Craftax), these are
used instead of `reset` and `step`, which start the next episode in the step that ends
one and lose the episode's last observation. navix and jumanji are converted to the
protocol by `NavixAdapter` and `JumanjiAdapter`.
"""

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any

import dm_env
import jax
import jax.numpy as jnp
import numpy as np

from explorax.environments import jax_types, minigrid_views, specs

_INT32_MAX = np.iinfo(np.int32).max
# Fields of gymnax's and of Craftax's parameters.
_TIME_LIMITS = ("max_steps_in_episode", "max_timesteps")
# navix's functions of observations that are as in MiniGrid.
_NAVIX_CELLS = ("symbolic", "symbolic_first_person")
_NAVIX_TRUNCATION, _NAVIX_TERMINATION = 1, 2


class NavixAdapter:
  """An environment of navix in gymnax's protocol: its state is its timestep."""

  def __init__(self, environment: Any):
    self._environment = environment
    self.action_space = environment.action_space
    self.max_steps = getattr(environment, "max_steps", None)
    self.observation_fn = getattr(environment, "observation_fn", None)

  def reset(self, key: jax.Array) -> tuple[Any, Any]:
    timestep = self._environment.reset(key)
    return timestep.observation, timestep

  def step(self, timestep: Any, action: jax.Array) -> tuple[Any, ...]:
    timestep = self._environment.step(timestep, action)
    terminated = timestep.step_type == _NAVIX_TERMINATION
    truncated = timestep.step_type == _NAVIX_TRUNCATION
    observation, reward = timestep.observation, timestep.reward
    return observation, timestep, reward, terminated, truncated, {}


class JumanjiAdapter:
  """An environment of jumanji in gymnax's protocol.

  A last timestep is a truncation if its discount is not 0.
  """

  def __init__(self, environment: Any):
    self._environment = environment
    self.action_space = environment.action_spec

  def reset(self, key: jax.Array) -> tuple[Any, Any]:
    state, timestep = self._environment.reset(key)
    return timestep.observation, state

  def step(self, state: Any, action: jax.Array) -> tuple[Any, ...]:
    state, timestep = self._environment.step(state, action)
    last = timestep.step_type == dm_env.StepType.LAST
    terminated = last & (timestep.discount == 0)
    observation, reward = timestep.observation, timestep.reward
    return observation, state, reward, terminated, last & ~terminated, {}


_ADAPTERS = {"navix": NavixAdapter, "jumanji": JumanjiAdapter}


class GymnaxEnvironment(jax_types.Environment):
  """An environment of gymnax's protocol; see the module's docstring.

  An observation of several arrays becomes one vector, joined in the order of the tree;
  an integer of a `Discrete` space becomes one-hot. navix's symbolic grids are a
  `specs.CategoricalImage`.

  A time limit is a truncation, with discount 1:
    - the six values say so;
    - gymnax's `step_env`: `is_truncated(state, params)`, if the method exists;
    - gymnax before 1.0 and Craftax: `done`, but `is_terminal(state, params)` is false
      if the limit in `params` (`max_steps_in_episode`, `max_timesteps`) is lifted;
    - otherwise `done` is a termination.

  An instance is equal only to itself: instances do not share compiled functions.
  """

  def __init__(self, environment: Any, params: jax_types.Params = None):
    """Wraps `environment`; traces its functions once, without running them.

    Args:
      environment: of the protocol; else a TypeError.
      params: the parameters; `environment.default_params` by default, or none.
    """
    self._environment = environment
    self._name = type(environment).__name__
    if params is None:
      params = getattr(environment, "default_params", ())
      params = params() if callable(params) else params
    self._params = params
    # A wrapper may forward to the wrapped `step_env`, which would bypass the wrapper.
    has_step_env = hasattr(type(environment), "step_env")
    self._reset = environment.reset_env if has_step_env else environment.reset
    self._step = environment.step_env if has_step_env else environment.step
    if _num_parameters(self._step) not in (2, 3, 4):
      raise TypeError(
        f"step{inspect.signature(self._step)} is no pure function of JAX, which takes "
        "([key, ]state, action[, params]); an environment that keeps a state must be a "
        "dm_env.Environment or a gymnasium.Env."
      )
    self._resets_itself = hasattr(environment, "step_env") and not has_step_env
    self._num_actions = _num_actions(environment, params)
    space = _space(environment, "observation_space", params)
    is_discrete = getattr(space, "shape", None) == () and hasattr(space, "n")
    self._num_values = (
      specs.number_of_values("observations", space.n) if is_discrete else None
    )
    self._spec, self._dtypes = self._trace(params)

  @property
  def num_actions(self) -> int:
    return self._num_actions

  def default_params(self) -> jax_types.Params:
    return self._params

  def observation_spec(self) -> dm_env.specs.Array:
    return self._spec

  def reset(
    self, key: jax.Array, params: jax_types.Params
  ) -> tuple[jax_types.State, dm_env.TimeStep]:
    observation, state = self._begin(key, params)
    return self._fixed(state), jax_types.restart(self._one_array(observation))

  def step(
    self,
    key: jax.Array,
    state: jax_types.State,
    action: jax.Array,
    params: jax_types.Params,
  ) -> tuple[jax_types.State, dm_env.TimeStep]:
    observation, state, reward, *ends = self._advance(key, state, action, params)
    terminated, truncated = (jnp.asarray(end, bool) for end in ends)
    return self._fixed(state), jax_types.transition(
      self._one_array(observation), reward, terminated=terminated, truncated=truncated
    )

  def _begin(self, key: jax.Array, params: Any) -> tuple[Any, Any]:
    """(observation, state)."""
    observation, state = self._reset(*(key, params)[: _num_parameters(self._reset)])
    return observation, state

  def _advance(
    self, key: jax.Array, state: Any, action: Any, params: Any
  ) -> tuple[Any, ...]:
    """(observation, state, reward, terminated, truncated)."""
    arguments: tuple[Any, ...] = (key, state, action, params)
    number = _num_parameters(self._step)
    result = self._step(*(arguments[1:3] if number == 2 else arguments[:number]))
    observation, state, reward, *ends = result
    info = ends.pop() if len(ends) > 1 else {}
    if isinstance(info, dict) and "final_observation" in info:
      observation = info["final_observation"]
    elif self._resets_itself:
      raise TypeError(
        f"step() of {self._name} begins the next episode by itself and loses the last "
        "observation of the one that ends; use the environment without this wrapper, "
        "or put the observation into info['final_observation']."
      )
    if len(ends) == 1:
      ends = self._ends(ends[0], state, params)
    terminated, truncated = ends
    return observation, state, reward, terminated, truncated

  def _ends(self, done: Any, state: Any, params: Any) -> list[Any]:
    """[terminated, truncated] of a `done` that may be both."""
    environment = self._environment
    if hasattr(environment, "is_truncated"):
      return [done, environment.is_truncated(state, params)]
    limits = [name for name in _TIME_LIMITS if hasattr(params, name)]
    can_lift = dataclasses.is_dataclass(params) and hasattr(environment, "is_terminal")
    if not limits or not can_lift:
      return [done, False]
    unlimited = dataclasses.replace(params, **{limits[0]: _INT32_MAX})
    return [done & environment.is_terminal(state, unlimited), done]

  def _one_array(self, observation: Any) -> jax.Array:
    if self._num_values:
      return jax_types.one_hot((self._num_values,), observation)
    parts = [jnp.asarray(part) for part in jax.tree.leaves(observation)]
    if len(parts) == 1:
      return parts[0]
    return jnp.concatenate([jnp.ravel(part).astype(jnp.float32) for part in parts])

  def _fixed(self, state: Any) -> Any:
    """The state, its arrays with the same dtypes after a reset and after a step."""
    return jax.tree.map(jnp.asarray, state, self._dtypes)

  def _trace(self, params: Any) -> tuple[dm_env.specs.Array, Any]:
    """(spec of the observations, dtypes of the state's arrays)."""
    key = jax.eval_shape(jax.random.PRNGKey, 0)
    action = jax.ShapeDtypeStruct((), jnp.int32)
    observation, first = jax.eval_shape(self._begin, key, params)
    _, state, *_ = jax.eval_shape(self._advance, key, first, action, params)
    dtypes = jax.tree.map(lambda x: x.dtype, state)
    if any(jnp.issubdtype(x, jax.dtypes.prng_key) for x in jax.tree.leaves(dtypes)):
      raise TypeError(
        f"the state of {self._name} contains a typed key, which no checkpoint can "
        "contain; keep its jax.random.key_data."
      )
    if self._num_values:
      return specs.OneHotArray((self._num_values,), "observation"), dtypes
    joined = jax.eval_shape(self._one_array, observation)
    function = getattr(self._environment, "observation_fn", None)
    if getattr(function, "__name__", "") in _NAVIX_CELLS:
      return minigrid_views.of_shape(joined.shape), dtypes
    return dm_env.specs.Array(joined.shape, joined.dtype, "observation"), dtypes


def adapt(candidate: Any) -> tuple[jax_types.Environment, jax_types.Params] | None:
  """(environment, parameters), if `candidate` has `reset` and `step`; else None.

  Args:
    candidate: a `jax_types.Environment` or an environment for `GymnaxEnvironment`, of
      navix or of jumanji, alone or in a tuple with its parameters (`gymnax.make`
      returns such a tuple).
  """
  is_pair = isinstance(candidate, tuple) and len(candidate) == 2
  environment, params = candidate if is_pair else (candidate, None)
  if not all(callable(getattr(environment, name, None)) for name in ("reset", "step")):
    return None
  ours = ("default_params", "observation_spec", "reset", "step")
  if not all(callable(getattr(environment, name, None)) for name in ours):
    libraries = [cls.__module__.partition(".")[0] for cls in type(environment).__mro__]
    for library in set(libraries) & {*_ADAPTERS}:
      environment = _ADAPTERS[library](environment)
    environment = GymnaxEnvironment(environment, params)
  return environment, environment.default_params() if params is None else params


def _num_parameters(function: Callable[..., Any]) -> int:
  """The number of positional arguments of a function."""
  parameters = inspect.signature(function).parameters.values()
  return sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)


def _space(environment: Any, name: str, params: Any) -> Any:
  """`environment.name`, called if it is a function, or None."""
  space = getattr(environment, name, None)
  if not callable(space):
    return space
  return space(*(params,)[: _num_parameters(space)])


def _num_actions(environment: Any, params: Any) -> int:
  """The number of actions, if they are discrete."""
  space = _space(environment, "action_space", params)
  if space is None:
    return specs.number_of_values("actions", environment.num_actions)
  number = getattr(space, "n", getattr(space, "num_values", None))
  if number is None or np.ndim(number):
    raise TypeError(
      f"the actions of {type(environment).__name__} are {space!r:.80}, but agents here "
      "choose one of a finite set; discretise continuous actions."
    )
  return specs.number_of_values("actions", int(number))
