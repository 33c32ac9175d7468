"""Observations and windows of them, made up."""

from typing import Any

import dm_env
import numpy as np
import pytest

from explorax.agents.bonuses import ngu
from explorax.environments import specs

NUM_ACTIONS = 3


def _make_bonus(spec: dm_env.specs.Array, **changes: Any) -> Any:
  """The acting half with tiny, linear networks, for encoded observations of a spec."""
  tiny: dict[str, Any] = {
    "torso": "mlp",
    "embedding_size": 2,
    "inverse_size": 8,
    "rnd_size": 3,
    "memory_capacity": 50,
  }
  return ngu.NeverGiveUp(**{**tiny, **changes}).build(spec, NUM_ACTIONS).acting


def _make_windows(
  num_rows: int = 8, size: int = 16
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
  """Windows in which action a adds 1 to number a of the observation.

  Windows of even index end early. The rows after their ends are not zeros but large
  numbers, which must not affect any result.
  """
  rng = np.random.default_rng(0)
  action = rng.integers(0, NUM_ACTIONS, (size, num_rows)).astype(np.int32)
  moves = np.eye(NUM_ACTIONS)[action]
  start = rng.normal(size=(size, 1, NUM_ACTIONS))
  observation = start + np.cumsum(moves, axis=1) - moves
  num_transitions = np.where(np.arange(size) % 2, num_rows, rng.integers(1, 7, size))
  for window, n in enumerate(num_transitions):
    observation[window, n + 1 :] = 1e3
    action[window, n:] = 0
  return (
    observation.astype(np.float32),
    action,
    num_transitions.astype(np.int32),
  )


@pytest.fixture(scope="session")
def make_bonus():
  """(spec, changes) → an acting half that compiles and runs in no time."""
  return _make_bonus


@pytest.fixture(scope="session")
def windows():
  """(observation, action, num_transitions) of 16 windows of 8 rows."""
  return _make_windows()


@pytest.fixture(scope="session")
def vector_spec() -> dm_env.specs.Array:
  """Of the observations of `windows`."""
  return dm_env.specs.Array((NUM_ACTIONS,), np.float32)


@pytest.fixture(scope="session")
def oracle_spec() -> specs.ImageWithState:
  """The spec of small pictures with the agent's state in a row below them."""
  return specs.ImageWithState((6, 5, 1), ("x", "y", "room", "keys"))
