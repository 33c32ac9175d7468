"""The environments written in JAX, by name."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from explorax import ranges
from explorax.environments import (
  binary_tree,
  breakout,
  cartpole,
  cartpole_swingup,
  catch,
  chain,
  deep_sea,
  disco_maze,
  errors,
  gridworld,
  jax_adapter,
  jax_types,
  mountain_car,
  settings,
  standard,
)


class _Kind(NamedTuple):
  """One of the environments.

  Attributes:
    make: its class, a frozen dataclass with a field `size` if `example_size` is given.
      Its other numeric and boolean fields are settings, and so are the entries of its
      `default_params()`, a NamedTuple whose annotations give their ranges.
    example_size: for examples; None if it has no size.
    description: one line for users, which names each setting.
  """

  make: type[Any]
  example_size: int | None
  description: str


_KINDS = {
  "binary_tree": _Kind(
    binary_tree.BinaryTree,
    50,
    "of any number of levels: one of two actions climbs, the other ends the episode, "
    "and the top pays 1; the climbing action differs by level; 2 actions; "
    ",mapping_seed=<seed>",
  ),
  "breakout": _Kind(
    breakout.Breakout,
    None,
    "on 10 by 10 positions, with MinAtar's rules; 3 actions; ,sticky=<probability> of "
    "repeating the last action; ,time_limit=<steps>",
  ),
  "cartpole": _Kind(
    cartpole.Cartpole,
    None,
    "Gymnasium's CartPole-v1: 1 for each step until the pole falls; 2 actions; "
    ",time_limit=<steps>",
  ),
  "cartpole_swingup": _Kind(
    cartpole_swingup.CartpoleSwingup,
    None,
    "dm_control's, with a reward only for a balanced pole in the middle; 3 actions; "
    ",time_limit=<steps>",
  ),
  "catch": _Kind(
    catch.Catch,
    None,
    "bsuite's: a paddle catches a falling ball; 3 actions; no settings",
  ),
  "chain": _Kind(
    chain.Chain,
    20,
    "of any length from 2: move on, or stop for the state's reward, which is 0, 1, 0, "
    "0, 2, 0, 0, 0, 3, …; 2 actions; no settings",
  ),
  "deep_sea": _Kind(
    deep_sea.DeepSea,
    20,
    "bsuite's of any size from 2: one sequence of actions finds the reward; 2 actions, "
    "whose effects differ by position as in bsuite's sweep, or as drawn by another "
    ",mapping_seed=<seed>; with ,permuted=false they are the same everywhere; "
    ",stochastic=true for failing moves and noisy rewards; ,move_cost=<of an episode>",
  ),
  "disco_maze": _Kind(
    disco_maze.DiscoMaze,
    21,
    "mazes of any odd size from 5, new in each episode, with walls recoloured at every "
    "step; a wall ends the episode, no reward; 4 actions; ,time_limit=<steps>",
  ),
  "gridworld": _Kind(
    gridworld.GridWorld,
    20,
    "an open room of any size from 5, a reward of 1 at the far corner; 4 actions; "
    ",noise=<probability> of a random step; ,obstacles=<density> or ,traps=<density> "
    "in a random room, ,world=<number from 1>; ,time_limit=<steps>",
  ),
  "mountain_car": _Kind(
    mountain_car.MountainCar,
    None,
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
    raise ValueError(
      f"there is no environment {full!r}"
      + errors.did_you_mean(full, names(), f"; there are {', '.join(names())}.")
    )
  kind = _KINDS[key]
  is_number = size.removeprefix("-").isdecimal()
  if (kind.example_size is not None) != bool(slash) or is_number != bool(slash):
    raise ValueError(
      f"{full!r} is not the name of an environment; write {_example(key)!r}."
    )
  sized = {"size": int(size)} if slash else {}
  try:
    example = kind.make(**sized)
    fields = _scalars({k: v for k, v in vars(example).items() if k != "size"})
    params = _scalars(example.default_params()._asdict())
    values = settings.parse(items, {**fields, **params})
    environment = kind.make(**sized, **{field: values[field] for field in fields})
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
    (f"jax:{name}" + ("/<size>" if kind.example_size else ""), kind.description)
    for name, kind in _KINDS.items()
  ]


def names() -> list[str]:
  """One example of each, for suggestions."""
  return [_example(name) for name in _KINDS]


def _example(key: str) -> str:
  size = _KINDS[key].example_size
  return f"jax:{key}" if size is None else f"jax:{key}/{size}"


def _scalars(values: Mapping[str, Any]) -> dict[str, settings.Value]:
  return {k: value for k, value in values.items() if isinstance(value, settings.Value)}
