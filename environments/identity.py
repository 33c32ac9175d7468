"""The name of an environment that a program has made: its class and its arguments."""

import dataclasses
import enum
import hashlib
import inspect
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np


def name_of(environment: Any) -> str:
  """`my_envs:Maze/size=5`, or `gym:FrozenLake-v1/is_slippery=false|TimeLimit(...)`.

  Arguments are those of the constructor that the object keeps under their names (or
  with an underscore before them), and those that gymnasium records.

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
    wrappers = [(x.name, x.kwargs or {}) for x in spec.additional_wrappers]
    name = f"gym:{spec.id}{_text_of_arguments(given)}"
  else:
    wrappers = []
    while isinstance(environment, gymnasium.Wrapper):
      wrappers.insert(0, (type(environment).__name__, _arguments(environment)))
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
    kept: Mapping[str, Any] = vars(thing)
  except (TypeError, ValueError):
    return {}
  pairs = [(x, kept.get(x, kept.get(f"_{x}", inspect.Parameter))) for x in parameters]
  return {name: value for name, value in pairs if value is not inspect.Parameter}


def _text_of_arguments(arguments: Mapping[str, Any]) -> str:
  texts = {name: _text(value) for name, value in arguments.items()}
  pairs = [f"{name}={text}" for name, text in texts.items() if text is not None]
  return f"/{','.join(pairs)}" if pairs else ""


def _text(value: Any) -> str | None:
  """A value that says itself what it is; None for other objects."""
  if isinstance(value, bool):
    return str(value).lower()
  if isinstance(value, int | float | str | np.generic | enum.Enum | None):
    return str(value)
  if isinstance(value, tuple | list):
    return f"({','.join(_text(x) or '' for x in value)})"
  if isinstance(value, dict):
    return _text(tuple(value.items()))
  if dataclasses.is_dataclass(value) and not isinstance(value, type):
    return type(value).__name__ + _text_of_arguments(_arguments(value))
  if hasattr(value, "__array__"):
    return hashlib.sha256(np.asarray(value).tobytes()).hexdigest()[:8]
  return getattr(value, "__qualname__", None)
