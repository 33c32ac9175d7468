"""Environments of JAX libraries by name, for example `gymnax:Catch-bsuite`.

The libraries are not dependencies of this package; a library is imported when one of
its environments is made. `gymnax_adapter` describes their protocols.
"""

import contextlib
import functools
import importlib
from typing import Any, NamedTuple

from explorax.environments import gymnax_adapter, jax_adapter, jax_types, standard


class _Library(NamedTuple):
  """One of the libraries."""

  module: str  # The name of the module to import.
  install: str  # What pip installs for it, with what the package itself forgets.
  example: str  # An environment's name.
  description: str


LIBRARIES = {
  "gymnax": _Library(
    "gymnax", "gymnax six", "CartPole-v1", "classic control, bsuite and MinAtar in JAX"
  ),
  "craftax": _Library(
    *("craftax.craftax_env", "craftax", "Craftax-Classic-Symbolic-v1"),
    "Crafter's open world in JAX",
  ),
  "jaxtari": _Library(
    *("jaxtari", "git+https://github.com/k4ntz/Jaxtari", "pong"),
    "Atari's games written in JAX, their objects as numbers: 60 steps a second, "
    "neither sticky actions nor a time limit",
  ),
  "navix": _Library("navix", "navix", "Navix-DoorKey-6x6-v0", "MiniGrid in JAX"),
  "jumanji": _Library(
    *("jumanji", "jumanji", "Maze-v0"),
    "combinatorial problems in JAX; their masks of actions are part of the observation",
  ),
}


def _make(library: str, module: Any, name: str) -> Any:
  """The library's environment, or (environment, params)."""
  if library == "craftax":
    return module.make_craftax_env_from_name(name, auto_reset=False)
  if library == "navix":
    # Without its own resets, which cost time in a batch; 0.7 always has them.
    with contextlib.suppress(TypeError):
      return module.make(name, disable_autoreset=True)
  return module.make(name)


def load(name: str, *, library: str, seed: int) -> standard.StandardEnvironment:
  """Makes an environment of the library by its name.

  Raises:
    ValueError: if the library is not installed, or it has no such environment.
    TypeError: see `gymnax_adapter.GymnaxEnvironment`.
  """
  try:
    environment, params = make(library, name)
    return standard.StandardEnvironment(
      jax_adapter.JaxEnvironment(environment, params, seed=seed)
    )
  except TypeError as error:
    raise TypeError(f"'{library}:{name}': {error}") from error


@functools.lru_cache
def make(library: str, name: str) -> tuple[jax_types.Environment, jax_types.Params]:
  """The pure environment, the same object for the same name, and its parameters."""
  full, known = f"{library}:{name}", LIBRARIES[library]
  try:
    module = importlib.import_module(known.module)
  except ImportError as error:
    raise ValueError(
      f"{full!r} cannot be made, since {library!r} cannot be imported ({error}); "
      f"'pip install {known.install}' installs it, in an environment without Reverb, "
      "which needs an old JAX."
    ) from error
  try:
    made = _make(library, module, name)
  except Exception as error:  # Its type for an unknown name differs by library.
    raise ValueError(
      f"{library} makes no environment {name!r} ({type(error).__name__}: {error}); "
      f"write it as in '{library}:{known.example}'."
    ) from error
  adapted = gymnax_adapter.adapt(made)
  assert adapted is not None, "each of these libraries has reset and step"
  return adapted


def list_kinds() -> list[tuple[str, str]]:
  """(name, description) of each library, for `--env=…`."""
  return [
    (
      f"{key}:<name>",
      f"as {key}:{kind.example}, if {key} is installed: {kind.description}",
    )
    for key, kind in LIBRARIES.items()
  ]
