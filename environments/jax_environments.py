"""The environments written in JAX, by name."""

from collections.abc import Callable
from typing import NamedTuple

from explorax.environments import (
  disco_maze,
  errors,
  gridworld,
  jax_adapter,
  jax_types,
  settings,
  standard,
)

_INT32_MAX = 2**31 - 1


class _Kind(NamedTuple):
  """An environment's class, its size in examples, and a line for people."""

  make: Callable[[int], jax_types.Environment]
  example_size: int
  description: str


_KINDS = {
  "disco_maze": _Kind(
    disco_maze.DiscoMaze,
    21,
    "mazes of any odd size from 5, new in each episode, their walls recoloured at "
    "every step; a wall ends the episode, no reward; 4 actions; ,time_limit=<steps>",
  ),
  "gridworld": _Kind(
    gridworld.GridWorld,
    20,
    "an open room of any size from 5, a reward of 1 at the far corner; 4 actions; "
    ",time_limit=<steps>",
  ),
}


def load(name: str, *, seed: int) -> standard.StandardEnvironment:
  """Makes the environment `name/size` or `name/size,time_limit=steps`.

  Raises:
    ValueError: if there is none of that name, size or setting.
  """
  environment, params = make(name)
  return standard.StandardEnvironment(
    jax_adapter.JaxEnvironment(environment, params, seed=seed)
  )


def make(name: str) -> tuple[jax_types.Environment, jax_types.Params]:
  """The pure environment of that name, and its parameters; see `load`."""
  kind, _, rest = name.partition("/")
  full = f"jax:{name}"
  if kind not in _KINDS:
    examples = [f"jax:{key}/{value.example_size}" for key, value in _KINDS.items()]
    raise ValueError(
      f"there is no environment {full!r}"
      + errors.did_you_mean(full, examples, f"; there are {', '.join(examples)}.")
    )
  size, *items = rest.split(",")
  example = f"'jax:{kind}/{_KINDS[kind].example_size}'"
  try:
    environment = _KINDS[kind].make(int(size))
  except ValueError as error:
    reason = str(error) if _is_integer(size) else f"the size is {size!r}."
    raise ValueError(
      f"{full!r} names no environment: {reason} Write it as in {example}."
    ) from error
  defaults = environment.default_params()
  values = settings.parse(full, items, defaults._asdict())
  _check_range(full, values)
  return environment, type(defaults)(**values)


def list_kinds() -> list[tuple[str, str]]:
  """(name, description) of each environment, for `--env=jax:…`."""
  return [(f"jax:{name}/<size>", kind.description) for name, kind in _KINDS.items()]


def names() -> list[str]:
  """An example of each, for suggestions."""
  return [f"jax:{name}/{kind.example_size}" for name, kind in _KINDS.items()]


def _is_integer(text: str) -> bool:
  return text.removeprefix("-").isdecimal()


def _check_range(name: str, values: dict[str, settings.Value]) -> None:
  for key, value in values.items():
    if not 1 <= value <= _INT32_MAX:
      raise ValueError(
        f"the setting {key!r} of {name!r} is {value}; it must be from 1 to "
        f"{_INT32_MAX}."
      )
