"""Exploration agents for reinforcement learning, in JAX and Haiku.

    agent = explorax.make_agent("tdu", "jax:deep_sea/20")
    result = explorax.train(agent, "jax:deep_sea/20", episodes=1000)

    policy = explorax.load("results/deep_sea")  # The directory of a run.
    action = policy.act(observation)

The parts (`explorax.losses` and so on) are imported when they are first used, so that
`import explorax` imports neither jax nor anything else.
"""

import importlib
import os
import signal
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
  from explorax import agents as agents
  from explorax import environments as environments
  from explorax import experiments as experiments
  from explorax import exploration as exploration
  from explorax import losses as losses
  from explorax import networks as networks
  from explorax import papers as papers
  from explorax.experiments.api import make_agent as make_agent
  from explorax.experiments.api import train as train
  from explorax.experiments.callbacks import StopTraining as StopTraining
  from explorax.experiments.results import Result as Result
  from explorax.experiments.results import evaluate as evaluate
  from explorax.experiments.results import load as load
  from explorax.experiments.trained import Agent as Agent
  from explorax.experiments.trained import Policy as Policy

__version__ = "0.1.0"

# Ctrl-C ends our commands, also during their imports; in other programs it raises a
# KeyboardInterrupt. While Python looks for the module of `-m`, that is argv's first.
_PROGRAM = "".join(sys.argv[:1])
_IS_COMMAND = os.path.basename(_PROGRAM) == "explorax" or (
  _PROGRAM == "-m" and "-m explorax" in " ".join(sys.orig_argv)
)
if _IS_COMMAND and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
  signal.signal(signal.SIGINT, signal.SIG_DFL)

# Name → its module in `experiments`.
_HOMES = {
  **dict.fromkeys(("make_agent", "train"), "api"),
  **dict.fromkeys(("Result", "evaluate", "load"), "results"),
  **dict.fromkeys(("Agent", "Policy"), "trained"),
  "StopTraining": "callbacks",
}
_PACKAGES = (
  *("agents", "environments", "experiments", "exploration", "losses", "networks"),
  "papers",
)


def __getattr__(name: str) -> Any:
  """A part of the package, when it is first used."""
  if name in _HOMES:
    module = importlib.import_module(f"explorax.experiments.{_HOMES[name]}")
    return getattr(module, name)
  if name in _PACKAGES:
    return importlib.import_module(f"explorax.{name}")
  raise AttributeError(f"module 'explorax' has no attribute {name!r}")


def __dir__() -> list[str]:
  return [*_HOMES, *_PACKAGES, "__version__"]
