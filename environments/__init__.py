"""Environments by name (`make`), all with the same conventions, and their specs."""

from typing import TYPE_CHECKING

from explorax import lazy
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

# Importing this package imports neither jax nor what only some environments need.
__getattr__ = lazy.modules(
  __name__,
  *("atari_adapter", "atari_vector", "bsuite_mnist", "bsuite_sweeps"),
  *("gymnasium_environments", "gymnax_adapter", "jax_adapter"),
  "jax_environments",
)
