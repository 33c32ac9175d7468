"""gymnasium's environments as dm_env ones."""

import contextlib
import copy
import inspect
from typing import Any

import dm_env
import gymnasium
import numpy as np
from gymnasium.envs import registration

from explorax import notation
from explorax.environments import errors, minigrid_views, settings, specs, standard

# Packages that register environments, by the beginnings of their names: these need no
# `package:` before the name, as in `gymnasium.make`.
_PACKAGES = {"ALE/": "ale_py", "BabyAI-": "minigrid", "MiniGrid-": "minigrid"}
ARRAYS = (
  gymnasium.spaces.Box,
  gymnasium.spaces.MultiBinary,
  gymnasium.spaces.MultiDiscrete,
)

# Wrappers that learn from what they see, or that show or record episodes.
_STATEFUL = ("HumanRendering", "NormalizeObservation", "NormalizeReward", "RecordVideo")

_RESET = "returns observation, info"
_STEP = "returns observation, reward, terminated, truncated, info"


class GymnasiumEnvironment(dm_env.Environment):
  """A gymnasium environment with discrete actions, in dm_env's protocol.

  A terminated episode ends with discount 0, a truncated one (a time limit) with
  discount 1; an episode that is both counts as terminated. The first reset is seeded;
  later ones continue the random stream. Actions count from 0, for every `start` of the
  space.
  """

  def __init__(self, environment: gymnasium.Env, *, seed: int):
    """Raises a TypeError if the environment's `reset` does not take a seed."""
    self._environment = environment
    try:
      inspect.signature(environment.unwrapped.reset).bind(seed=0)
    except TypeError as error:
      raise self._error(
        "reset", "does not take a seed", "is reset(self, *, seed=None, options=None)"
      ) from error
    self._view = minigrid_views.of_environment(environment)
    self._seed: int | None = seed
    self._reset_next_step = True
    actions = environment.action_space
    self._first_action = 0
    if isinstance(actions, gymnasium.spaces.Discrete):
      self._first_action = int(actions.start)

  @property
  def raw(self) -> gymnasium.Env:
    """The environment."""
    return self._environment

  def reset(self) -> dm_env.TimeStep:
    result = self._environment.reset(seed=self._seed)
    observation, _ = self._values("reset", result, _RESET)
    self._seed = None
    self._reset_next_step = False
    return dm_env.restart(observation)

  def step(self, action: Any) -> dm_env.TimeStep:
    if self._reset_next_step:
      return self.reset()
    try:
      result = self._environment.step(int(action) + self._first_action)
    except ValueError as error:
      # From a wrapper of gymnasium's, which takes the values apart.
      if "values to unpack" not in str(error) or errors.users_line(error):
        raise
      raise self._error(
        "step", f"returns another number of values ({error})", _STEP
      ) from error
    observation, reward, terminated, truncated, _ = self._values("step", result, _STEP)
    if _flag("terminated", terminated):
      self._reset_next_step = True
      return dm_env.termination(reward, observation)
    if _flag("truncated", truncated):
      self._reset_next_step = True
      return dm_env.truncation(reward, observation)
    return dm_env.transition(reward, observation)

  def _values(self, method: str, result: Any, expected: str) -> tuple[Any, ...]:
    """The result of a method, if it has these values."""
    number = len(result) if isinstance(result, tuple) else 1
    if number == expected.count(",") + 1:
      return result
    raise self._error(
      method, f"returned {number} value{'s' if number > 1 else ''}", expected
    )

  def _error(self, method: str, does: str, expected: str) -> TypeError:
    """With the line in which the user's class defines the method."""
    raw = type(self._environment.unwrapped)
    place = errors.definition(getattr(raw, method))
    return TypeError(
      f"{raw.__name__}.{method} ({place}) {does}; gymnasium's {expected}."
    )

  # StandardEnvironment refuses what is not supported, in its own words.
  def observation_spec(self) -> Any:
    return self._view or _spec(self._environment.observation_space)

  def action_spec(self) -> Any:
    space = self._environment.action_space
    if not isinstance(space, gymnasium.spaces.Discrete):
      return space
    return dm_env.specs.DiscreteArray(
      specs.number_of_values("actions", space.n), np.int32, "action"
    )

  def render(self) -> np.ndarray | None:
    """A picture, uint8 `[H, W, 3]`; None unless made with `render_mode="rgb_array"`."""
    if self._environment.render_mode != "rgb_array":
      return None
    return np.asarray(self._environment.render())

  def close(self) -> None:
    self._environment.close()

  def recreated(self) -> gymnasium.Env | None:
    """Another environment by the same gymnasium spec, which draws on no screen.

    None without a spec, or with a wrapper that has a state or that gymnasium does not
    record.
    """
    spec = copy.deepcopy(self._environment.spec)
    if spec is None or any(x.name in _STATEFUL for x in spec.additional_wrappers):
      return None
    if spec.kwargs.get("render_mode") == "human":
      del spec.kwargs["render_mode"]
    with contextlib.suppress(gymnasium.error.Error, ValueError):
      return gymnasium.make(spec, disable_env_checker=True)
    return None


def load(
  name: str, *, seed: int, render_mode: str | None = None
) -> standard.StandardEnvironment:
  """Makes the environment that gymnasium has registered by this name.

  Args:
    name: as registered, and arguments of `gymnasium.make` behind it:
      `FrozenLake-v1/is_slippery=false`. `package:Name-v0` imports a package first.
    seed: of the first reset.
    render_mode: gymnasium's; `rgb_array` for an environment that renders itself.

  Raises:
    ValueError: if there is none, or it needs a package that is not installed.
    TypeError: if agents here do not support its actions or observations.
  """
  gym_id, arguments = settings.split(name)
  for beginning, package in _PACKAGES.items():
    if gym_id.startswith(beginning) and gym_id not in registration.registry:
      gym_id = f"{package}:{gym_id}"
  # gymnasium passes on a render mode of None, which some environments do not accept.
  if render_mode is not None:
    arguments["render_mode"] = render_mode
  try:
    # gymnasium's checker would repeat the checks of StandardEnvironment.
    environment = gymnasium.make(gym_id, disable_env_checker=True, **arguments)
  except gymnasium.error.UnregisteredEnv as error:
    raise ValueError(_unknown(gym_id, error)) from error
  except (gymnasium.error.Error, ImportError, TypeError, ValueError) as error:
    raise ValueError(f"'gym:{name}' cannot be made: {error}") from error
  return wrap(environment, seed=seed)


def _unknown(gym_id: str, error: Exception) -> str:
  """The error for an id that is not registered."""
  near = notation.nearest(f"gym:{gym_id}", names()) or f" {error}"
  return (
    f"gymnasium has no environment 'gym:{gym_id}'.{near} If a package or a module of "
    f"yours registers it, write 'gym:MODULE:{gym_id}': every process that makes the "
    "environment imports it."
  )


def wrap(environment: gymnasium.Env, *, seed: int) -> standard.StandardEnvironment:
  """A gymnasium environment for agents; see `GymnasiumEnvironment`."""
  standard.seed_global_generators(seed)
  return standard.StandardEnvironment(GymnasiumEnvironment(environment, seed=seed))


def names() -> list[str]:
  """All that are registered."""
  return [f"gym:{gym_id}" for gym_id in registration.registry]


def _flag(name: str, value: Any) -> bool:
  """A flag; numbers count as such if they are 0 or 1."""
  if isinstance(value, bool):
    return value
  if np.ndim(value) or value not in (0, 1):
    raise TypeError(
      f"the environment returned {value!r:.60} as {name!r}; it must be True or False."
    )
  return bool(value)


def _spec(space: gymnasium.Space) -> Any:
  """Specs in dicts and tuples, as the space; a space without one is returned."""
  if isinstance(space, gymnasium.spaces.Dict):
    return {key: _spec(each) for key, each in space.items()}
  if isinstance(space, gymnasium.spaces.Tuple):
    return tuple(map(_spec, space))
  if isinstance(space, gymnasium.spaces.Discrete):
    number = specs.number_of_values("observations", space.n)
    return specs.OneHotArray((number,), "observation", start=int(space.start))
  if isinstance(space, ARRAYS):
    return dm_env.specs.Array(space.shape, space.dtype, "observation")
  return space
