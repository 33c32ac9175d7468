"""Environments by name (`make`), all with the same conventions, and their specs."""

from explorax.environments.batched_types import BatchedEnvironment
from explorax.environments.bsuite_metrics import SolvedRule, solved_rule
from explorax.environments.errors import NonFiniteError
from explorax.environments.factory import (
  evaluation_name,
  list_environments,
  make,
  make_batched,
  spec,
)
from explorax.environments.metrics import counts_over_episodes, episode_metrics
from explorax.environments.specs import EnvironmentSpec, OneHotArray, make_encoding
from explorax.environments.standard import StandardEnvironment
from explorax.environments.user_environments import AnyEnvironment, wrap

__all__ = [
  "AnyEnvironment",
  "BatchedEnvironment",
  "EnvironmentSpec",
  "NonFiniteError",
  "OneHotArray",
  "SolvedRule",
  "StandardEnvironment",
  "counts_over_episodes",
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
