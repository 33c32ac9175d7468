"""gymnasium's environments as dm_env ones."""

import copy
import importlib
import inspect
from collections.abc import Mapping
from typing import Any

import dm_env
import gymnasium
import numpy as np
from gymnasium.envs import registration

from explorax.environments import (
  atari_environments,
  errors,
  minigrid_views,
  settings,
  specs,
  standard,
)

# The modules that register environments with gymnasium when they are imported, and how
# the names begin that each registers. Only these are imported for a name.
REGISTERING = {
  "ale_py": ("ALE/",),
  "flappy_bird_gymnasium": ("FlappyBird-",),
  "highway_env": ("highway-", "merge-", "roundabout-", "intersection-", "exit-"),
  "minatar.gym": ("MinAtar/",),
  "minigrid": ("MiniGrid-", "BabyAI-"),
  "minihack": ("MiniHack-",),
  "miniworld": ("MiniWorld-",),
  "nle": ("NetHack",),
  "vizdoom.gymnasium_wrapper": ("Vizdoom",),
}
_ARRAYS = (
  gymnasium.spaces.Box,
  gymnasium.spaces.MultiBinary,
  gymnasium.spaces.MultiDiscrete,
)

# Wrappers that learn from what they see, or that show or record episodes.
_STATEFUL = ("HumanRendering", "NormalizeObservation", "NormalizeReward", "RecordVideo")


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
    raw = type(environment.unwrapped)
    try:
      inspect.signature(environment.unwrapped.reset).bind(seed=0)
    except TypeError as error:
      raise TypeError(
        f"{raw.__name__}.reset{inspect.signature(raw.reset)} "
        f"({errors.definition(raw.reset)}) does not take a seed; gymnasium's is "
        "reset(self, *, seed=None, options=None)."
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

  def seed_next_reset(self, seed: int) -> None:
    """Seeds the environment again, at its next reset."""
    self._seed = seed

  def reset(self) -> dm_env.TimeStep:
    result = self._environment.reset(seed=self._seed)
    observation, _ = self._values("reset", result, "observation, info")
    self._seed = None
    self._reset_next_step = False
    return dm_env.restart(self._observe(observation))

  def step(self, action: Any) -> dm_env.TimeStep:
    if self._reset_next_step:
      return self.reset()
    observation, reward, terminated, truncated, _ = self._values(
      "step",
      self._environment.step(int(action) + self._first_action),
      "observation, reward, terminated, truncated, info",
    )
    observation = self._observe(observation)
    if _flag("terminated", terminated):
      self._reset_next_step = True
      return dm_env.termination(reward, observation)
    if _flag("truncated", truncated):
      self._reset_next_step = True
      return dm_env.truncation(reward, observation)
    return dm_env.transition(reward, observation)

  def _values(self, method: str, result: Any, names: str) -> tuple[Any, ...]:
    """The result of a method, if it has these values."""
    number = names.count(",") + 1
    if isinstance(result, tuple) and len(result) == number:
      return result
    raw = type(self._environment.unwrapped)
    count = f"{len(result)} values" if isinstance(result, tuple) else "one value"
    raise TypeError(
      f"{raw.__name__}.{method} ({errors.definition(getattr(raw, method))}) returned "
      f"{count}; gymnasium's returns {number}: {names}."
    )

  def _observe(self, observation: Any) -> Any:
    if self._view is not None and isinstance(observation, Mapping):
      return self._view.join(observation)
    return observation

  # StandardEnvironment refuses what is not supported, in its own words.
  def observation_spec(self) -> Any:
    return self._view or _spec(self._environment.observation_space, "observation")

  def action_spec(self) -> Any:
    space = self._environment.action_space
    is_discrete = isinstance(space, gymnasium.spaces.Discrete)
    return _spec(space, "action") if is_discrete else space

  def render(self) -> np.ndarray | None:
    """A picture, uint8 `[H, W, 3]`; None unless made with `render_mode="rgb_array"`."""
    if self._environment.render_mode != "rgb_array":
      return None
    return np.asarray(self._environment.render())

  def close(self) -> None:
    self._environment.close()

  def recreated(self) -> gymnasium.Env | None:
    """Another environment by the same gymnasium spec; None without one.

    It does not draw on the screen. There is none with a wrapper that has a state of its
    own, or that gymnasium does not record.
    """
    spec = copy.deepcopy(self._environment.spec)
    if spec is None or any(x.name in _STATEFUL for x in spec.additional_wrappers):
      return None
    if spec.kwargs.get("render_mode") == "human":
      del spec.kwargs["render_mode"]
    try:
      return gymnasium.make(spec, disable_env_checker=True)
    except (gymnasium.error.Error, ValueError):
      return None


def load(
  name: str, *, seed: int, render_mode: str | None = None
) -> standard.StandardEnvironment:
  """Makes the environment that gymnasium has registered by this name.

  The package that registers it is imported first if it is one of `REGISTERING`;
  `package:Name-v0` imports any package, as in `gymnasium.make`.

  Args:
    name: as registered, and arguments of `gymnasium.make` behind it:
      `FrozenLake-v1/is_slippery=false`.
    seed: of the first reset.
    render_mode: gymnasium's; `rgb_array` for an environment that renders itself.

  Raises:
    ValueError: if there is none, or it needs a package that is not installed.
    TypeError: if agents here do not support its actions or observations.
  """
  gym_id, arguments = settings.split(name)
  _register(gym_id)
  # gymnasium passes on a render mode of None, which some environments do not accept.
  if render_mode is not None:
    arguments["render_mode"] = render_mode
  try:
    # gymnasium's checker would repeat the checks of StandardEnvironment.
    environment = gymnasium.make(gym_id, disable_env_checker=True, **arguments)
  except gymnasium.error.DependencyNotInstalled as error:
    raise ValueError(f"'gym:{name}' cannot be made: {error}") from error
  except gymnasium.error.Error as error:
    raise ValueError(_unknown(gym_id, error)) from error
  except (ModuleNotFoundError, TypeError, ValueError) as error:
    raise ValueError(f"'gym:{name}' cannot be made: {error}") from error
  try:
    return wrap(environment, seed=seed)
  except TypeError as error:
    environment.close()
    raise TypeError(f"'gym:{name}': {error}") from error


def _unknown(gym_id: str, error: Exception) -> str:
  """The error for an id that is not registered."""
  name, known = f"gym:{gym_id}", names()
  if gym_id.startswith("ALE/"):
    name = "atari:" + gym_id.removeprefix("ALE/").partition("-")[0]
    known = atari_environments.names()
  advice = (
    f": {error} If a package or a module of yours registers it, write "
    f"'gym:MODULE:{gym_id}': every process that makes the environment imports it."
  )
  return f"gymnasium has no environment 'gym:{gym_id}'" + errors.did_you_mean(
    name, known, advice
  )


def _register(gym_id: str) -> None:
  """Imports the known package that registers an environment of this name."""
  if gym_id in registration.registry:
    return
  for module, beginnings in REGISTERING.items():
    if not gym_id.startswith(beginnings):
      continue
    package = module.partition(".")[0]
    try:
      imported: Any = importlib.import_module(module)
    except ImportError as error:
      raise ValueError(
        f"'gym:{gym_id}' needs the package {package}, which cannot be imported "
        f"({error}); install it: pip install {package}."
      ) from error
    # Some register theirs in a function, which gymnasium calls no longer.
    if gym_id not in registration.registry and hasattr(imported, "register_envs"):
      imported.register_envs()
    return


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


def _spec(space: gymnasium.Space, name: str) -> Any:
  """Specs in dicts and tuples, as the space; a space without one is returned."""
  if isinstance(space, gymnasium.spaces.Dict):
    return {key: _spec(each, name) for key, each in space.items()}
  if isinstance(space, gymnasium.spaces.Tuple):
    return tuple(_spec(each, name) for each in space)
  if isinstance(space, gymnasium.spaces.Discrete):
    number = specs.number_of_values(f"{name}s", space.n)
    return specs.DiscreteRange(number, int(space.start), np.int32, name)
  if isinstance(space, _ARRAYS):
    return dm_env.specs.Array(space.shape, space.dtype, name)
  return space
