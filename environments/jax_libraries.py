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

  example: str  # An environment's name.
  description: str
  install: str  # What pip installs for it, with what the package itself forgets.


LIBRARIES = {
  "gymnax": _Library(
    "CartPole-v1", "classic control, bsuite and MinAtar in JAX", "gymnax six"
  ),
  "craftax": _Library(
    "Craftax-Classic-Symbolic-v1", "Crafter's open world in JAX", "craftax"
  ),
  "jaxtari": _Library(
    *("pong", "Atari's games written in JAX", "git+https://github.com/k4ntz/Jaxtari")
  ),
  "navix": _Library("Navix-DoorKey-6x6-v0", "MiniGrid in JAX", "navix"),
  "jumanji": _Library("Maze-v0", "combinatorial problems in JAX", "jumanji"),
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
    of_craftax = {"craftax": "craftax.craftax_env"}
    module = importlib.import_module(of_craftax.get(library, library))
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
