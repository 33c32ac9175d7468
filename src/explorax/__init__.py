"""Exploration agents for reinforcement learning, in JAX and Haiku.

The parts (`explorax.losses` and so on) are imported when they are first used, so that
`import explorax` imports neither jax nor anything else.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
  from explorax import (
    agents,
    environments,
    experiments,
    exploration,
    losses,
    networks,
  )

__version__ = "0.1.0"

__all__ = [
  "__version__",
  "agents",
  "environments",
  "experiments",
  "exploration",
  "losses",
  "networks",
]


def __getattr__(name: str) -> Any:
  """A part of the package, when it is first used."""
  if name in __all__:
    return importlib.import_module(f"explorax.{name}")
  raise AttributeError(f"module 'explorax' has no attribute {name!r}")


def __dir__() -> list[str]:
  return __all__
