"""Environments by name (`make`), all with the same conventions, and their specs."""

import importlib.util
from typing import Any

from explorax.environments.batched_types import BatchedEnvironment
from explorax.environments.bsuite_metrics import SolvedRule, solved_rule
from explorax.environments.encodings import make as make_encoding
from explorax.environments.errors import NonFiniteError
from explorax.environments.factory import (
  evaluation_name,
  list_environments,
  make,
  make_batched,
  spec,
)
from explorax.environments.specs import EnvironmentSpec, OneHotArray
from explorax.environments.standard import StandardEnvironment, episode_metrics
from explorax.environments.user_environments import AnyEnvironment, wrap

__all__ = [
  "AnyEnvironment",
  "BatchedEnvironment",
  "EnvironmentSpec",
  "NonFiniteError",
  "OneHotArray",
  "SolvedRule",
  "StandardEnvironment",
  "episode_metrics",
  "evaluation_name",
  "list_environments",
  "make",
  "make_batched",
  "make_encoding",
  "solved_rule",
  "spec",
  "wrap",
]


def __getattr__(name: str) -> Any:
  """Imports a module at its first use: importing this package imports no jax."""
  module = f"{__name__}.{name}"
  if name.startswith("_") or importlib.util.find_spec(module) is None:
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
  return importlib.import_module(module)
