"""Environments by name (`make`), all with the same conventions, and their specs."""

import importlib
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
  from explorax.environments import (
    atari_adapter,
    atari_vector,
    bsuite_mnist,
    bsuite_sweeps,
    gymnasium_environments,
    gymnax_adapter,
    jax_adapter,
    jax_environments,
  )

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

# Importing this package imports neither jax nor what only some environments need:
# modules that do are imported when they are first used.
_IMPORTED_LATER = (
  *("atari_adapter", "atari_vector", "bsuite_mnist", "bsuite_sweeps"),
  *("gymnasium_environments", "gymnax_adapter", "jax_adapter", "jax_environments"),
)


def __getattr__(name: str) -> Any:
  if name in _IMPORTED_LATER:
    return importlib.import_module(f"{__name__}.{name}")
  raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
