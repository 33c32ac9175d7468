"""Environments by name: `kind:name`."""

import importlib
import importlib.util
import operator
import re
from typing import Any

import dm_env

from explorax import notation
from explorax.environments import batched_types, specs, standard, user_environments


def make(name: str, *, seed: int) -> standard.StandardEnvironment:
  """Makes the environment `kind:name`.

  - `bsuite:deep_sea/0`: one of bsuite's; see `bsuite_environments.load`.
  - `gym:FrozenLake-v1/is_slippery=false`: one that is registered with gymnasium, or
    `gym:package:Name-v0`, and arguments of `gymnasium.make`.
  - `jax:mountain_car,time_limit=500`: one written in JAX; see `jax_environments`.
  - `atari:Pong/ngu,sticky=0.25`: a game with a profile of preprocessing, `dqn` by
    default, and changes of its fields; see `atari_profiles.Profile`.
  - `gymnax:Catch-bsuite`, and likewise `craftax:`, `jaxtari:`, `navix:` and
    `jumanji:`: one of that JAX library, if it is installed. See `jax_libraries`.
  - `mypackage.envs:make/size=8`: the user's own function and its arguments; see
    `user_environments.load`.

  Two environments with the same name and seed behave identically, bit for bit.

  Args:
    name: as above.
    seed: of all randomness in the environment, at least 0.

  Raises:
    ValueError: if there is no environment of that name, it cannot be made here, or the
      seed is negative.
    TypeError: if agents cannot act in it: its actions are not discrete, its
      observations are not one array of numbers, or it is not an environment.
  """
  seed = _check_seed(seed)
  kind, colon, rest = name.partition(":")
  if not colon or not kind or not rest:
    raise ValueError(
      f"{name!r} is not the name of an environment: write 'kind:name', as "
      f"'bsuite:deep_sea/0', 'gym:CartPole-v1' or 'module:function'.{_nearest(name)}"
    )
  if kind not in user_environments.KINDS:
    return user_environments.load(kind, rest, seed=seed)
  of_library = {"library": kind} if kind in user_environments.JAX_LIBRARIES else {}
  return _module(kind).load(rest, seed=seed, **of_library)


def evaluation_name(name: str) -> str:
  """The name of the environment in which agents trained in `name` are evaluated.

  It is the same except for `life_loss`, which is for training only (Mnih et al., 2015):
  a score is the return of a whole game.
  """
  if name.startswith("atari:"):
    return re.sub("life_loss=[tT]rue", "life_loss=false", name)
  return name


def make_batched(
  name: str, *, num_envs: int, seed: int
) -> batched_types.BatchedEnvironment:
  """Makes `num_envs` copies of an Atari game, stepped in C++ threads as a batch.

  Arguments and errors are as of `make`; other kinds are not supported.
  """
  seed = _check_seed(seed)
  kind, _, rest = name.partition(":")
  if kind != "atari":
    raise ValueError(
      f"{name!r} cannot be stepped in a batch; this works for Atari games, such as "
      "atari:Pong."
    )
  return _module(kind).load_batched(rest, num_envs=num_envs, seed=seed)


def spec(
  environment: dm_env.Environment | batched_types.BatchedEnvironment,
) -> specs.EnvironmentSpec:
  """The specification of `environment` that agents need."""
  return specs.EnvironmentSpec(
    observations=environment.observation_spec(), actions=environment.action_spec()
  )


def list_environments() -> list[tuple[str, str]]:
  """(name, description) of all environments that `make` makes, for display.

  bsuite's are listed by experiment if it is installed; the last rows show how to name
  others.
  """
  bsuite = [("bsuite:<id>", "an id of bsuite, with explorax[bsuite]")]
  return [
    *(_module("bsuite").list_experiments() if _has_bsuite() else bsuite),
    *_module("jax").list_kinds(),
    *_module("atari").list_games(),
    *_module("gymnax").list_kinds(),
    (
      "gym:<id>",
      "any id registered with gymnasium, with Discrete actions, as gym:CartPole-v1; "
      "arguments follow a slash: gym:FrozenLake-v1/is_slippery=false",
    ),
    (
      "<module>:<function>",
      "your own: a function that returns an environment of dm_env, gymnasium or pure "
      "functions of JAX, called with seed= if it takes it",
    ),
  ]


def _module(kind: str) -> Any:
  """The module for environments of that kind, imported when it is needed."""
  return importlib.import_module(f"{__package__}.{user_environments.KINDS[kind]}")


def _has_bsuite() -> bool:
  return importlib.util.find_spec("bsuite") is not None


def _check_seed(seed: int) -> int:
  if operator.index(seed) < 0:
    raise ValueError(f"the seed is {seed}; it must be at least 0.")
  return operator.index(seed)


def _nearest(name: str) -> str:
  """A sentence with the full name of `name`, or names that resemble it; or ''."""
  kinds = ["gym", "jax", "atari", *(["bsuite"] if _has_bsuite() else [])]
  known = [each for kind in kinds for each in _module(kind).names()]
  for full in known:
    if full.partition(":")[2] == name:
      return f" Did you mean {full}?"
  return notation.nearest(name, known)
