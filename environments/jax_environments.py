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

# Frozen dataclasses whose `size` is part of the name. Their other numeric and boolean
# fields are settings, and so are the entries of `default_params()`, a NamedTuple whose
# annotations give the ranges.
_CLASSES: dict[str, type[Any]] = {
  "binary_tree": binary_tree.BinaryTree,
  "breakout": breakout.Breakout,
  "cartpole": cartpole.Cartpole,
  "cartpole_swingup": cartpole_swingup.CartpoleSwingup,
  "catch": catch.Catch,
  "chain": chain.Chain,
  "deep_sea": deep_sea.DeepSea,
  "disco_maze": disco_maze.DiscoMaze,
  "gridworld": gridworld.GridWorld,
  "mountain_car": mountain_car.MountainCar,
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
  if key not in _CLASSES:
    near = notation.nearest(full, names()) or f" There are {', '.join(names())}."
    raise ValueError(f"there is no environment {full!r}.{near}")
  cls = _CLASSES[key]
  is_number = size.removeprefix("-").isdecimal()
  if hasattr(cls, "size") != bool(slash) or is_number != bool(slash):
    raise ValueError(
      f"{full!r} is not the name of an environment; write {_example(key)!r}."
    )
  sized = {"size": int(size)} if slash else {}
  try:
    example = cls(**sized)
    fields, params = _fields(example), _scalars(example.default_params()._asdict())
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
  """(name, what it is with its settings) of each environment, for `--env=jax:…`."""
  rows = []
  for name, cls in _CLASSES.items():
    example = cls()
    names = [*_fields(example), *_scalars(example.default_params()._asdict())]
    size = "/<size>" if hasattr(cls, "size") else ""
    about = (cls.__doc__ or "").partition("\n")[0]
    rows.append(
      (f"jax:{name}{size}", f"{about} Settings: {', '.join(names) or 'none'}.")
    )
  return rows


def names() -> list[str]:
  """One example of each, for suggestions."""
  return [_example(name) for name in _CLASSES]


def _example(key: str) -> str:
  size = getattr(_CLASSES[key], "size", None)
  return f"jax:{key}/{size}" if size else f"jax:{key}"


def _fields(environment: Any) -> dict[str, settings.Value]:
  """The settings that are fields of the environment."""
  return _scalars({k: v for k, v in vars(environment).items() if k != "size"})


def _scalars(values: Mapping[str, Any]) -> dict[str, settings.Value]:
  return {k: value for k, value in values.items() if isinstance(value, settings.Value)}
