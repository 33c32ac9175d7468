"""The environments written in JAX, by name."""

from collections.abc import Mapping
from typing import Any

from explorax import notation, ranges
from explorax.environments import (
  binary_tree,
  breakout,
  cartpole,
  cartpole_swingup,
  catch,
  chain,
  deep_sea,
  disco_maze,
  gridworld,
  jax_adapter,
  jax_types,
  mountain_car,
  settings,
  standard,
)

# Class and description of each. Classes are frozen dataclasses whose `size` is part of
# the name. Their other numeric and boolean fields are settings, and so are the entries
# of `default_params()`, a NamedTuple whose annotations give the ranges.
_KINDS: dict[str, tuple[type[Any], str]] = {
  "binary_tree": (
    binary_tree.BinaryTree,
    "of any number of levels: one of two actions climbs, the other ends the episode, "
    "and the top pays 1; the climbing action differs by level; 2 actions; "
    ",mapping_seed=<seed>",
  ),
  "breakout": (
    breakout.Breakout,
    "on 10 by 10 positions, with MinAtar's rules; 3 actions; ,sticky=<probability> of "
    "repeating the last action; ,time_limit=<steps>",
  ),
  "cartpole": (
    cartpole.Cartpole,
    "Gymnasium's CartPole-v1: 1 for each step until the pole falls; 2 actions; "
    ",time_limit=<steps>",
  ),
  "cartpole_swingup": (
    cartpole_swingup.CartpoleSwingup,
    "dm_control's, with a reward only for a balanced pole in the middle; 3 actions; "
    ",time_limit=<steps>",
  ),
  "catch": (
    catch.Catch,
    "bsuite's: a paddle catches a falling ball; 3 actions; no settings",
  ),
  "chain": (
    chain.Chain,
    "of any length from 2: move on, or stop for the state's reward, which is 0, 1, 0, "
    "0, 2, 0, 0, 0, 3, …; 2 actions; no settings",
  ),
  "deep_sea": (
    deep_sea.DeepSea,
    "bsuite's of any size from 2: one sequence of actions finds the reward; 2 actions, "
    "whose effects differ by position as in bsuite's sweep, or as drawn by another "
    ",mapping_seed=<seed>; with ,permuted=false they are the same everywhere; "
    ",stochastic=true for failing moves and noisy rewards; ,move_cost=<of an episode>",
  ),
  "disco_maze": (
    disco_maze.DiscoMaze,
    "mazes of any odd size from 5, new in each episode, with walls recoloured at every "
    "step; a wall ends the episode, no reward; 4 actions; ,time_limit=<steps>",
  ),
  "gridworld": (
    gridworld.GridWorld,
    "an open room of any size from 5, a reward of 1 at the far corner; 4 actions; "
    ",noise=<probability> of a random step; ,obstacles=<density> or ,traps=<density> "
    "in a random room, ,world=<number from 1>; ,time_limit=<steps>",
  ),
  "mountain_car": (
    mountain_car.MountainCar,
    "a reward of 1 at the goal only; 3 actions; ,noise=<variance> of noise on the "
    "force; ,time_limit=<steps>",
  ),
}


def load(name: str, *, seed: int) -> standard.StandardEnvironment:
  """Makes the environment `name/size`, or `name/size,key=value,…` with settings.

  Environments without a size are named `name` or `name,key=value,…`.

  Raises:
    ValueError: if there is no such name, size or setting.
  """
  environment, params = make(name)
  return standard.StandardEnvironment(
    jax_adapter.JaxEnvironment(environment, params, seed=seed)
  )


def make(name: str) -> tuple[jax_types.Environment, jax_types.Params]:
  """The pure environment with that name, and its parameters; see `load`."""
  head, *items = name.split(",")
  key, slash, size = head.partition("/")
  full = f"jax:{name}"
  if key not in _KINDS:
    near = notation.nearest(full, names()) or f" There are {', '.join(names())}."
    raise ValueError(f"there is no environment {full!r}.{near}")
  cls, _ = _KINDS[key]
  is_number = size.removeprefix("-").isdecimal()
  if hasattr(cls, "size") != bool(slash) or is_number != bool(slash):
    raise ValueError(
      f"{full!r} is not the name of an environment; write {_example(key)!r}."
    )
  sized = {"size": int(size)} if slash else {}
  try:
    example = cls(**sized)
    fields = _scalars({k: v for k, v in vars(example).items() if k != "size"})
    params = _scalars(example.default_params()._asdict())
    values = settings.parse(items, {**fields, **params})
    environment = cls(**sized, **{field: values[field] for field in fields})
    # Those of the environment's default parameters may depend on its fields.
    changed = {item.partition("=")[0] for item in items}
    parameters = environment.default_params()._replace(
      **{name: values[name] for name in params if name in changed}
    )
    ranges.check(parameters)
  except ValueError as error:
    raise ValueError(f"{full!r}: {error}") from error
  return environment, parameters


def list_kinds() -> list[tuple[str, str]]:
  """(name, description) of each environment, for `--env=jax:…`."""
  return [
    (f"jax:{name}" + ("/<size>" if hasattr(cls, "size") else ""), description)
    for name, (cls, description) in _KINDS.items()
  ]


def names() -> list[str]:
  """One example of each, for suggestions."""
  return [_example(name) for name in _KINDS]


def _example(key: str) -> str:
  cls, _ = _KINDS[key]
  return f"jax:{key}/{cls.size}" if hasattr(cls, "size") else f"jax:{key}"


def _scalars(values: Mapping[str, Any]) -> dict[str, settings.Value]:
  return {k: value for k, value in values.items() if isinstance(value, settings.Value)}
