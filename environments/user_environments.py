"""User-defined environments, named `module:function`."""

import inspect
import sys
from typing import TYPE_CHECKING, Any, TypeAlias

import dm_env

from explorax import notation
from explorax.environments import settings, standard

if TYPE_CHECKING:
  import gymnasium

  from explorax.environments import jax_types

# What `wrap` takes.
AnyEnvironment: TypeAlias = (
  "dm_env.Environment | gymnasium.Env[Any, Any] | jax_types.Environment"
)

# Kinds with the name of a library whose environments are written in JAX.
JAX_LIBRARIES = ("gymnax", "craftax", "jaxtari", "navix", "jumanji")
# The kinds of `factory.make` that are not a user's module, and the functions for them.
KINDS = {
  "bsuite": "bsuite_environments",
  "gym": "gymnasium_environments",
  "jax": "jax_environments",
  "atari": "atari_environments",
  **dict.fromkeys(JAX_LIBRARIES, "jax_libraries"),
}


def names_code(name: str) -> bool:
  """Whether the name of an environment names a module, which `make` would import."""
  kind, _, rest = name.partition(":")
  return kind not in KINDS or ":" in rest  # `my_module:make`, `gym:package:Id`.


def load(
  module_name: str, function_name: str, *, seed: int
) -> standard.StandardEnvironment:
  """Calls `function_name` of `module_name`, and wraps the environment it returns.

  The function (or class) receives the arguments behind its name (`make/size=8`), and
  `seed=` if it has this parameter; a gymnasium environment is also seeded at its first
  reset, and so are the global generators of `random` and `numpy.random` before the
  call. The current directory is importable: it is added to the end of `sys.path`.

  Raises:
    ValueError: if there is no such module or function.
    TypeError: if it cannot be called with these arguments, or does not return an
      environment of a supported protocol with discrete actions.
  """
  function_name, arguments = settings.split(function_name)
  name = f"{module_name}:{function_name}"
  try:
    function = notation.import_attribute(name, "environment")
  except ValueError as error:
    if near := notation.nearest(module_name, KINDS):
      raise ValueError(f"{error}{near}") from error
    raise
  try:
    signature = inspect.signature(function)
    if "seed" in signature.parameters:
      arguments.setdefault("seed", seed)
    signature.bind(**arguments)
  except TypeError as error:
    raise TypeError(
      f"'{name}' must be a function that returns an environment, and takes the "
      f"arguments behind its name, as in '{name}/size=8': {error}."
    ) from error
  standard.seed_global_generators(seed)
  try:
    return wrap(function(**arguments), seed=seed)
  except SystemExit as error:
    raise ValueError(f"'{name}' raised SystemExit.") from error


def wrap(environment: Any, *, seed: int) -> standard.StandardEnvironment:
  """Converts an environment of any supported protocol to the one that agents take.

  Args:
    environment: a `dm_env.Environment`, a `gymnasium.Env`, or one whose `reset` and
      `step` are pure functions of JAX (`jax_types.Environment`, or a protocol of
      `gymnax_adapter`), alone or in a tuple with its parameters.
    seed: for an environment of pure functions, for the first reset of a gymnasium
      environment, and for the global generators of `random` and `numpy.random`; a
      dm_env environment is seeded when it is made.

  Raises:
    TypeError: if it is none of these, or agents cannot act in it.
  """
  if isinstance(environment, standard.StandardEnvironment):
    return environment
  # A gymnasium environment can exist only if gymnasium is already imported.
  gymnasium = sys.modules.get("gymnasium")
  if isinstance(environment, dm_env.Environment):
    standard.seed_global_generators(seed)
    return standard.StandardEnvironment(environment)
  if gymnasium is not None and isinstance(environment, gymnasium.Env):
    from explorax.environments import gymnasium_environments  # noqa: PLC0415

    return gymnasium_environments.wrap(environment, seed=seed)
  if gymnasium is not None and isinstance(environment, gymnasium.vector.VectorEnv):
    raise TypeError(
      f"a {type(environment).__name__} is a vector of {environment.num_envs} "
      "environments; give a single one: num_envs of the run makes several of it."
    )
  from explorax.environments import gymnax_adapter, jax_adapter  # noqa: PLC0415

  pure = gymnax_adapter.adapt(environment)
  if pure is not None:
    return standard.StandardEnvironment(jax_adapter.JaxEnvironment(*pure, seed=seed))
  kind = f"{type(environment).__module__}.{type(environment).__qualname__}"
  raise TypeError(
    "expected an environment: a dm_env.Environment, a gymnasium.Env or an object whose "
    f"reset() and step() are pure functions of JAX, but got one of type {kind}."
  )
