"""Environments by name: `kind:name`."""

import importlib
import operator
from typing import Any

import dm_env

from explorax.environments import (
  batched_types,
  errors,
  specs,
  standard,
  user_environments,
)


def make(
  name: str, *, seed: int, record_to: str | None = None, overwrite: bool = False
) -> standard.StandardEnvironment:
  """Makes the environment `kind:name`.

  - `bsuite:deep_sea/0`: one of bsuite's; see `bsuite_environments.load`.
  - `gym:CartPole-v1`: one that is registered with gymnasium.
  - `jax:disco_maze/21`: one written in JAX, with its size if it has one; settings
    follow a comma, as in `jax:mountain_car,time_limit=500`. See `jax_environments`.
  - `atari:Pong`: an Atari 2600 game in camel case, shown as a profile says: `dqn`
    (the default), `ngu` or `rgb`. `atari:Pong/ngu` chooses one, and
    `atari:Pong/ngu,sticky=0.25,life_loss=true` sets its fields; none of it needs
    quotes in a shell. See `atari_profiles.Profile`.
  - `gymnax:Catch-bsuite`, and likewise `craftax:`, `jaxtari:`, `navix:` and
    `jumanji:`: one of that JAX library, if it is installed. See `jax_libraries`.
  - `module:function`: the user's own, for instance `mypackage.envs:make`; a function
    that returns an environment of dm_env, gymnasium or pure functions of JAX, called
    with `seed=` if it takes it. See `user_environments.load`.

  Two environments of one name and seed behave alike to the bit.

  Args:
    name: as above.
    seed: of everything random in the environment, at least 0.
    record_to: a folder for bsuite's own CSV, which bsuite's notebooks read; the
      other kinds have no such record and write nothing.
    overwrite: whether it may hold this environment's CSV already, which the first row
      replaces.

  Returns:
    An environment of one convention; see `standard.StandardEnvironment`.

  Raises:
    ValueError: if there is no environment of that name, it cannot be made here, the
      seed is negative, or the record cannot be written.
    TypeError: if agents here cannot act in it: its actions are not discrete, its
      observations not one array of numbers, or it is no environment at all.
  """
  seed = _check_seed(seed)
  kind, colon, rest = name.partition(":")
  if not colon or not kind or not rest:
    raise ValueError(
      f"{name!r} names no environment: write 'kind:name', as in 'bsuite:deep_sea/0', "
      f"'gym:CartPole-v1' or 'module:function'{_did_you_mean(name)}"
    )
  if kind not in user_environments.KINDS:
    return user_environments.load(kind, rest, seed=seed)
  arguments: dict[str, Any] = {}
  if kind == "bsuite":
    arguments = {"record_to": record_to, "overwrite": overwrite}
  elif kind in user_environments.JAX_LIBRARIES:
    arguments = {"library": kind}
  return _module(kind).load(rest, seed=seed, **arguments)


def evaluation_name(name: str) -> str:
  """The name of the environment in which agents trained in `name` are evaluated.

  It is the same but for `life_loss`, which is for training alone (Mnih et al., 2015):
  a score is that of a whole game.
  """
  if name.startswith("atari:"):
    return name.replace("life_loss=true", "life_loss=false")
  return name


def make_batched(
  name: str, *, num_envs: int, seed: int
) -> batched_types.BatchedEnvironment:
  """Makes an environment `num_envs` times, stepped together in C++ threads.

  Args:
    name: `atari:Game`, as for `make`; there are no other kinds.
    num_envs: how many, at least 1.
    seed: of everything random in all of them, at least 0.

  Raises:
    ValueError: if there is no such environment, it cannot be made here, or the seed is
      negative.
  """
  seed = _check_seed(seed)
  kind, _, rest = name.partition(":")
  if kind != "atari":
    raise ValueError(
      f"{name!r} cannot be stepped together with others of its kind; that is for "
      "Atari games, as atari:Pong."
    )
  return _module(kind).load_batched(rest, num_envs=num_envs, seed=seed)


def spec(
  environment: dm_env.Environment | batched_types.BatchedEnvironment,
) -> specs.EnvironmentSpec:
  """What an agent needs to know of `environment`."""
  return specs.EnvironmentSpec(
    observations=environment.observation_spec(), actions=environment.action_spec()
  )


def list_environments() -> list[tuple[str, str]]:
  """(name, description) of what `make` makes, for people to read.

  bsuite's are listed by experiment, gymnasium's as far as they come with it, are
  installed and can be played here; the last rows say how to name any other one.
  """
  return [
    *_module("bsuite").list_experiments(),
    *_module("jax").list_kinds(),
    *_module("atari").list_games(),
    *_module("gym").list_ids(),
    *_module("gymnax").list_kinds(),
    ("gym:<id>", "any other id registered with gymnasium, its actions Discrete"),
    (
      "<module>:<function>",
      "your own: a function that returns an environment of dm_env, gymnasium or pure "
      "functions of JAX, called with seed= if it takes it",
    ),
  ]


def _module(kind: str) -> Any:
  """What makes environments of that kind, imported when it is asked for.

  bsuite takes a second to import (pandas), and agents import this package for its
  specs alone.
  """
  return importlib.import_module(f"{__package__}.{user_environments.KINDS[kind]}")


def _check_seed(seed: Any) -> int:
  try:
    seed = operator.index(seed)
  except TypeError as error:
    raise TypeError(f"the seed is {seed!r}; it must be an integer.") from error
  if seed < 0:
    raise ValueError(f"the seed is {seed}; it must be at least 0.")
  return seed


def _did_you_mean(name: str) -> str:
  """Ends a sentence with names near `name`, or the one that is its like with a kind."""
  from bsuite import sweep
  from gymnasium.envs import registration

  known = [f"bsuite:{i}" for i in sweep.SWEEP]
  known += [f"gym:{i}" for i in registration.registry]
  known += [*_module("jax").names(), *_module("atari").names()]
  for full in known:
    if full.partition(":")[2] == name:
      return f"; did you mean {full!r}?"
  return errors.did_you_mean(name, known)
