"""Exploration agents for reinforcement learning, in JAX and Haiku.

    agent = explorax.make_agent("tdu", "jax:deep_sea/20")
    result = explorax.train(agent, "jax:deep_sea/20", episodes=1000)

    policy = explorax.load("results/deep_sea")  # The directory of a run.
    action = policy.act(observation)

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
    papers,
  )
  from explorax.experiments.api import (
    Agent,
    Result,
    evaluate,
    load,
    make_agent,
    train,
  )
  from explorax.experiments.callbacks import StopTraining
  from explorax.experiments.trained import Policy

__version__ = "0.1.0"

__all__ = [
  "Agent",
  "Policy",
  "Result",
  "StopTraining",
  "__version__",
  "agents",
  "environments",
  "evaluate",
  "experiments",
  "exploration",
  "load",
  "losses",
  "make_agent",
  "networks",
  "papers",
  "train",
]
# Name → its module in `experiments`; the others are packages.
_HOMES = {
  **dict.fromkeys(
    ("Agent", "Result", "evaluate", "load", "make_agent", "train"), "api"
  ),
  "Policy": "trained",
  "StopTraining": "callbacks",
}


def __getattr__(name: str) -> Any:
  """A part of the package, when it is first used."""
  if name in _HOMES:
    module = importlib.import_module(f"explorax.experiments.{_HOMES[name]}")
    return getattr(module, name)
  if name in __all__:
    return importlib.import_module(f"explorax.{name}")
  raise AttributeError(f"module 'explorax' has no attribute {name!r}")


def __dir__() -> list[str]:
  return __all__
