"""The name of an environment that a program has made: its class and its arguments."""

import dataclasses
import enum
import hashlib
import inspect
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

_UNKNOWN = "?"
_NOT_KEPT = object()  # In place of an argument.


def name_of(environment: Any) -> str:
  """`my_envs:Maze/size=5`, or `gym:FrozenLake-v1/is_slippery=false|TimeLimit(...)`.

  Arguments are the constructor's, if the object has attributes of their names (or with
  an underscore before them), or gymnasium records them. An argument that is not stored,
  or whose value has no name, is `?`: two objects with this name may differ.

  Args:
    environment: of any protocol that `wrap` takes, or its result.
  """
  inner = environment
  while hasattr(inner, "raw") and type(inner).__module__.startswith("explorax."):
    inner = inner.raw
  if hasattr(inner, "pure"):  # An environment in JAX, and its parameters.
    inner = inner.pure
  first, *params = inner if isinstance(inner, tuple) else (inner,)
  gymnasium = sys.modules.get("gymnasium")
  if gymnasium is not None and isinstance(first, gymnasium.Env):
    return _name_of_gymnasium(first, gymnasium)
  given = _arguments(first)
  given |= {k: v for x in params for k, v in _arguments(x).items()}
  return _class_name(first) + _text_of_arguments(given)


def _name_of_gymnasium(environment: Any, gymnasium: Any) -> str:
  """By gymnasium's spec, with the wrappers that `gymnasium.make` does not add."""
  if (spec := environment.spec) is not None:
    registered = gymnasium.envs.registration.registry.get(spec.id)
    usual = {"render_mode": None, **(registered.kwargs if registered else {})}
    given = {k: v for k, v in spec.kwargs.items() if k not in usual or usual[k] != v}
    given.pop("render_mode", None)
    if registered is None or registered.max_episode_steps != spec.max_episode_steps:
      given["max_episode_steps"] = spec.max_episode_steps
    unknown = {"arguments": _NOT_KEPT}
    wrappers = [
      (x.name, unknown if x.kwargs is None else x.kwargs)
      for x in spec.additional_wrappers
    ]
    name = f"gym:{spec.id}{_text_of_arguments(given)}"
  else:
    wrappers = []
    while isinstance(environment, gymnasium.Wrapper):
      given = _arguments(environment)
      given = {k: v for k, v in given.items() if v is not environment.env}
      wrappers.insert(0, (type(environment).__name__, given))
      environment = environment.env
    name = _class_name(environment) + _text_of_arguments(_arguments(environment))
  for wrapper, given in wrappers:
    name += f"|{wrapper}{_text_of_arguments(given)}"
  return name


def _class_name(thing: Any) -> str:
  cls = type(thing)
  ours = cls.__module__.startswith("explorax.")
  return f"jax:{cls.__name__}" if ours else f"{cls.__module__}:{cls.__qualname__}"


def _arguments(thing: Any) -> dict[str, Any]:
  """The constructor's arguments, as far as the object has kept them."""
  if dataclasses.is_dataclass(thing) and not isinstance(thing, type):
    return {x.name: getattr(thing, x.name) for x in dataclasses.fields(thing)}
  try:
    parameters = inspect.signature(type(thing)).parameters
  except (TypeError, ValueError):
    return {"arguments": _NOT_KEPT}
  kept: Mapping[str, Any] = getattr(thing, "__dict__", {})
  return {x: kept.get(x, kept.get(f"_{x}", _NOT_KEPT)) for x in parameters}


def _text_of_arguments(arguments: Mapping[str, Any]) -> str:
  pairs = [f"{name}={_text(value)}" for name, value in arguments.items()]
  return f"/{','.join(pairs)}" if pairs else ""


def _text(value: Any) -> str:
  """A value that says itself what it is."""
  if value is _NOT_KEPT:
    return _UNKNOWN
  if isinstance(value, bool):
    return str(value).lower()
  if isinstance(value, int | float | str | np.generic | enum.Enum | None):
    return str(value)
  if isinstance(value, tuple | list):
    return f"({','.join(map(_text, value))})"
  if isinstance(value, dict):
    return _text(tuple(value.items()))
  if dataclasses.is_dataclass(value) and not isinstance(value, type):
    return type(value).__name__ + _text_of_arguments(_arguments(value))
  if hasattr(value, "__array__"):
    return hashlib.sha256(np.asarray(value).tobytes()).hexdigest()[:8]
  name = getattr(value, "__qualname__", _UNKNOWN)
  return _UNKNOWN if "<" in name else name  # Lambdas and inner functions are alike.
