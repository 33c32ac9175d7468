"""Environments of other JAX libraries, by their protocol: no library is imported.

`reset` and `step` are pure functions. The number of arguments and of the values that they
return determine the protocol, and no name of a field does:

| protocol | `reset` | `step` |
| --- | --- | --- |
| gymnax, Craftax, JAXtari, a user's | `(key[, params])` → `(observation, state)` | `([key, ]state, action[, params])` → `(observation, state, reward, done[, info])` or `(observation, state, reward, terminated, truncated, info)` |
| navix | `(key)` → timestep | `(timestep, action)` → timestep |
| jumanji | `(key)` → `(state, timestep)` | `(state, action)` → `(state, timestep)` |

If the environment's class has `reset_env` and `step_env` (gymnax, Craftax), these are
used instead of `reset` and `step`, which start the next episode in the step that ends
one and lose the episode's last observation.
"""  # noqa: E501

import contextlib
import dataclasses
import enum
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import dm_env
import jax
import jax.numpy as jnp
import numpy as np

from explorax.environments import errors, jax_types, minigrid_views, specs

_INT32_MAX = np.iinfo(np.int32).max
# Fields of gymnax's and of Craftax's parameters.
_TIME_LIMITS = ("max_steps_in_episode", "max_timesteps")
# Its functions of observations that are as in MiniGrid.
_NAVIX_CELLS = ("symbolic", "symbolic_first_person")
_NAVIX_TRUNCATION, _NAVIX_TERMINATION = 1, 2


class _Step(NamedTuple):
  """The result of a step, the same for every protocol."""

  observation: Any
  state: Any
  reward: Any
  terminated: Any
  truncated: Any


class GymnaxEnvironment(jax_types.Environment):
  """An environment of another library; the module's docstring lists the protocols.

  An observation of several arrays becomes one vector, joined in the order of the tree;
  an integer of a `Discrete` space becomes one-hot. navix's symbolic grids are a
  `specs.CategoricalImage`.

  A time limit is a truncation, with discount 1:
    - the six values and the timesteps of navix and jumanji contain it (jumanji's as
      the discount);
    - gymnax's `step_env`: `is_truncated(state, params)`, if the method exists;
    - gymnax before 1.0 and Craftax: `done`, but `is_terminal(state, params)` is false
      if the limit in `params` (`max_steps_in_episode`, `max_timesteps`) is lifted;
    - otherwise `done` is a termination.

  An instance is equal only to itself: instances do not share compiled functions.
  """

  def __init__(self, environment: Any, params: jax_types.Params = None):
    """Wraps `environment`; traces its functions once, without running them.

    Args:
      environment: of one of the protocols.
      params: the parameters; `environment.default_params` by default, or none.

    Raises:
      TypeError: if the environment follows none of the protocols, if its actions are
        not discrete, or if its `step` loses an episode's last observation.
    """
    self._environment = environment
    if params is None:
      params = getattr(environment, "default_params", ())
      params = params() if callable(params) else params
    self._params = params
    # A wrapper may forward to the wrapped `step_env`, which would bypass the wrapper.
    has_step_env = hasattr(type(environment), "step_env")
    self._reset_function = environment.reset_env if has_step_env else environment.reset
    self._step_function = environment.step_env if has_step_env else environment.step
    _check_signature("reset", self._reset_function, (1, 2), "(key[, params])")
    _check_signature(
      "step", self._step_function, (2, 3, 4), "([key, ]state, action[, params])"
    )
    self._protocol = self._find_protocol(params)
    self._resets_itself = hasattr(environment, "step_env") and not has_step_env
    self._num_actions = _num_actions(environment, params)
    self._num_values = _num_values(environment, params)
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
    """Starts an episode."""
    observation, state = self._begin(key, params)
    return self._fixed(state), jax_types.restart(self._one_array(observation))

  def step(
    self,
    key: jax.Array,
    state: jax_types.State,
    action: jax.Array,
    params: jax_types.Params,
  ) -> tuple[jax_types.State, dm_env.TimeStep]:
    """Takes one step."""
    done = self._advance(key, self._with_keys(state), action, params)
    return self._fixed(done.state), jax_types.transition(
      self._one_array(done.observation),
      done.reward,
      terminated=jnp.asarray(done.terminated, bool),
      truncated=jnp.asarray(done.truncated, bool),
    )

  def _find_protocol(self, params: Any) -> str:
    """`gymnax`, `navix` or `jumanji`: by what `reset` and `step` return."""
    key = jax.eval_shape(jax.random.PRNGKey, 0)
    kinds: list[str] = []

    def begin(key: jax.Array) -> None:
      result = self._reset(key, params)
      name = type(self._environment).__name__
      if not _is_tuple(result):
        if not (hasattr(result, "observation") and hasattr(result, "step_type")):
          raise TypeError(
            f"reset() of {name} returned one value; it must return "
            "(observation, state)."
          )
        kinds.append("navix")
        return
      if len(result) != 2:
        raise TypeError(
          f"reset() of {name} returned {len(result)} values; it must return "
          "(observation, state)."
        )
      kinds.append("gymnax")
      if _num_parameters(self._step_function) == 2:
        with contextlib.suppress(Exception):  # Its state is not the first value.
          stepped = self._step_function(result[0], jnp.int32(0))
          if _is_tuple(stepped) and len(stepped) == 2:
            kinds[-1] = "jumanji"

    jax.eval_shape(begin, key)
    return kinds[-1]

  def _reset(self, key: jax.Array, params: Any) -> Any:
    takes_params = _num_parameters(self._reset_function) > 1
    return self._reset_function(key, *([params] if takes_params else []))

  def _begin(self, key: jax.Array, params: Any) -> tuple[Any, Any]:
    """(observation, state)."""
    result = self._reset(key, params)
    if self._protocol == "navix":
      return result.observation, result
    first, second = result
    return (second.observation, first) if self._protocol == "jumanji" else result

  def _advance(self, key: jax.Array, state: Any, action: Any, params: Any) -> _Step:
    arguments = {
      2: (state, action),
      3: (key, state, action),
      4: (key, state, action, params),
    }[_num_parameters(self._step_function)]
    result = self._step_function(*arguments)
    if self._protocol == "navix":
      return _Step(
        result.observation,
        result,
        result.reward,
        result.step_type == _NAVIX_TERMINATION,
        result.step_type == _NAVIX_TRUNCATION,
      )
    if self._protocol == "jumanji":
      state, timestep = result
      last = timestep.step_type == dm_env.StepType.LAST
      ends = last & (timestep.discount == 0)
      return _Step(timestep.observation, state, timestep.reward, ends, last & ~ends)
    return self._of_values(result, params)

  def _of_values(self, result: tuple[Any, ...], params: Any) -> _Step:
    """The `_Step` of a result of four, five or six values."""
    if not (_is_tuple(result) and 4 <= len(result) <= 6):
      number = len(result) if _is_tuple(result) else "one"
      raise TypeError(
        f"step() of {type(self._environment).__name__} returned {number} values; it "
        "must return (observation, state, reward, done[, info]) or (observation, "
        "state, reward, terminated, truncated, info)."
      )
    observation, state, reward, *ends = result
    info = ends.pop() if len(ends) > 1 else {}
    if isinstance(info, dict) and "final_observation" in info:
      observation = info["final_observation"]
    elif self._resets_itself:
      raise TypeError(
        f"step() of {type(self._environment).__name__} begins the next episode by "
        "itself and loses the last observation of the one that ends; use the "
        "environment without this wrapper, or put the observation into "
        "info['final_observation']."
      )
    if len(ends) == 2:
      return _Step(observation, state, reward, *ends)
    (done,) = ends
    environment = self._environment
    if hasattr(environment, "is_truncated"):
      return _Step(
        observation, state, reward, done, environment.is_truncated(state, params)
      )
    limits = [name for name in _TIME_LIMITS if hasattr(params, name)]
    can_lift = dataclasses.is_dataclass(params) and hasattr(environment, "is_terminal")
    if limits and can_lift:
      unlimited = dataclasses.replace(params, **{limits[0]: _INT32_MAX})
      terminated = done & environment.is_terminal(state, unlimited)
      return _Step(observation, state, reward, terminated, done)
    return _Step(observation, state, reward, done, False)

  def _one_array(self, observation: Any) -> jax.Array:
    if self._num_values:
      return jax_types.one_hot((self._num_values,), observation)
    parts = [jnp.asarray(part) for part in jax.tree.leaves(observation)]
    if len(parts) == 1:
      return parts[0]
    return jnp.concatenate([jnp.ravel(part).astype(jnp.float32) for part in parts])

  def _fixed(self, state: Any) -> Any:
    """The state, its arrays with the same dtypes after a reset and after a step.

    Typed keys are the arrays of their data, which checkpoints can contain.
    """

    def fixed(x: Any, dtype: Any) -> jax.Array:
      return jax.random.key_data(x) if _is_key(dtype) else jnp.asarray(x, dtype)

    return jax.tree.map(fixed, state, self._dtypes)

  def _with_keys(self, state: Any) -> Any:
    """The state with its typed keys."""
    keys = iter(self._key_kinds)

    def typed(x: jax.Array, dtype: Any) -> jax.Array:
      return jax.random.wrap_key_data(x, impl=next(keys)) if _is_key(dtype) else x

    return jax.tree.map(typed, state, self._dtypes)

  def _trace(self, params: Any) -> tuple[dm_env.specs.Array, Any]:
    """(spec of the observations, dtypes of the state's arrays)."""
    name = type(self._environment).__name__
    key = jax.eval_shape(jax.random.PRNGKey, 0)
    action = jax.ShapeDtypeStruct((), jnp.int32)
    self._key_kinds: list[Any] = []

    def begin(key: jax.Array, params: Any) -> tuple[Any, Any]:
      observation, state = self._begin(key, params)
      for leaf in jax.tree.leaves(state):
        if isinstance(leaf, str | bytes | enum.Enum):
          raise TypeError(
            f"the state of {name} contains {leaf!r}, but it must consist of arrays and "
            "numbers: keep strings and enums in static fields."
          )
        if _is_key(getattr(leaf, "dtype", None)):
          self._key_kinds.append(jax.random.key_impl(leaf))
      return observation, state

    observation, first = jax.eval_shape(begin, key, params)
    after = jax.eval_shape(self._advance, key, first, action, params)
    kept = [jax.tree.map(lambda x: x.shape, tree) for tree in (first, after.state)]
    if kept[0] != kept[1]:
      raise TypeError(
        f"the state of {name} is {kept[0]} after reset() and {kept[1]} after step(); "
        "its arrays must keep their number and shapes."
      )
    for quantity in ("reward", "terminated", "truncated"):
      if shape := np.shape(getattr(after, quantity)):
        raise TypeError(
          f"step() of {name} returns {quantity!r} of shape {shape}; agents here are "
          "one agent in one environment: it must be a scalar."
        )
    dtypes = jax.tree.map(lambda x: x.dtype, after.state)
    if self._num_values:
      return specs.OneHotArray((self._num_values,), "observation"), dtypes
    joined = jax.eval_shape(self._one_array, observation)
    function = getattr(self._environment, "observation_fn", None)
    if getattr(function, "__name__", "") in _NAVIX_CELLS:
      return minigrid_views.of_shape(joined.shape), dtypes
    spec = dm_env.specs.Array(joined.shape, joined.dtype, "observation")
    return spec, dtypes


def adapt(
  candidate: Any,
) -> tuple[jax_types.Environment, jax_types.Params] | None:
  """(environment, parameters), if `candidate` has pure `reset` and `step` functions.

  Args:
    candidate: a `jax_types.Environment` or an environment for `GymnaxEnvironment`,
      alone or in a tuple with its parameters (`gymnax.make` returns such a tuple).

  Returns:
    The environment and its parameters; None if it has no such functions.
  """
  is_pair = isinstance(candidate, tuple) and len(candidate) == 2
  environment, params = candidate if is_pair else (candidate, None)
  if not all(callable(getattr(environment, name, None)) for name in ("reset", "step")):
    return None
  ours = ("default_params", "observation_spec", "reset", "step")
  if not all(callable(getattr(environment, name, None)) for name in ours):
    environment = GymnaxEnvironment(environment, params)
  return environment, environment.default_params() if params is None else params


def _is_tuple(result: Any) -> bool:
  """Whether a function returned several values, and not one object with fields."""
  return type(result) is tuple


def _is_key(dtype: Any) -> bool:
  """Whether arrays of this dtype are typed keys."""
  return dtype is not None and jnp.issubdtype(dtype, jax.dtypes.prng_key)


def _num_parameters(function: Callable[..., Any]) -> int:
  """The number of positional arguments of a function."""
  parameters = inspect.signature(function).parameters.values()
  return sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)


def _check_signature(
  name: str, function: Callable[..., Any], numbers: tuple[int, ...], wanted: str
) -> None:
  if _num_parameters(function) not in numbers:
    raise TypeError(
      f"{name}{inspect.signature(function)} is no pure function of JAX: it must take "
      f"{wanted}; an environment that keeps a state must be a "
      "dm_env.Environment or a gymnasium.Env."
    )


def _space(environment: Any, name: str, params: Any) -> Any:
  """`environment.name`, called if it is a function, or None."""
  space = getattr(environment, name, None)
  if not callable(space):
    return space
  return space(*([params] if _num_parameters(space) else []))


def _num_actions(environment: Any, params: Any) -> int:
  """The number of actions, if they are discrete."""
  space = _space(environment, "action_space", params)
  if space is None:
    space = _space(environment, "action_spec", params)
  if space is None:
    return errors.number_of_values("actions", environment.num_actions)
  number = getattr(space, "n", getattr(space, "num_values", None))
  if number is None or np.ndim(number):
    raise TypeError(
      f"the actions of {type(environment).__name__} are {space!r:.80}, but agents here "
      "choose one of a finite set; discretise continuous actions."
    )
  return errors.number_of_values("actions", number)


def _num_values(environment: Any, params: Any) -> int | None:
  """The number of values of a discrete observation; None if it is not discrete."""
  space = _space(environment, "observation_space", params)
  if getattr(space, "shape", None) == () and hasattr(space, "n"):
    return errors.number_of_values("observations", space.n)
  return None
