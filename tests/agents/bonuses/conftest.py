"""Observations and windows of them, made up; bonuses that compile once."""

import copy
from collections.abc import Callable
from typing import Any

import dm_env
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax.agents.bonuses import ngu
from explorax.agents.bonuses import types as bonus_types
from explorax.agents.bonuses.wrappers import online
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


def _play(
  half: bonus_types.Acting, episodes: Any, weights: Any = ()
) -> tuple[list[list[float]], Any]:
  observe, state, values = jax.jit(half.observe), half.init(), []
  for episode in episodes:
    state = half.begin_episode(state) if half.begin_episode else state
    values.append([])
    for t, observation in enumerate(episode):
      last = np.bool_(t == len(episode) - 1)
      value, state = observe(weights, state, observation, np.int32(0), last)
      values[-1].append(float(value))
  return values, state


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
  return (observation.astype(np.float32), action, num_transitions.astype(np.int32))


@pytest.fixture(scope="session")
def make_online() -> Callable[..., online.OnlineBonus]:
  """(OnlineBonus's arguments) → a new one; equal ones share what has been compiled."""
  first, original = {}, online.OnlineBonus

  def make(bonus: bonus_types.Bonus, *arguments: Any, **settings: Any) -> Any:
    key = bonus, repr((arguments, settings))
    if key not in first:
      made = original(bonus, *arguments, **settings)
      first[key] = made, jax.device_get((made._learnt, made._held))
    made, start = first[key]
    new = copy.copy(made)
    new._learnt, new._held = jax.tree.map(jnp.array, start)  # They are donated.
    new._pending = []
    return new

  return make


@pytest.fixture(scope="session")
def make_bonus():
  """(spec, changes) → an acting half that compiles and runs in no time."""
  return _make_bonus


@pytest.fixture(scope="session")
def play() -> Callable[..., tuple[list[list[float]], Any]]:
  """(acting half, episodes, weights) → the values of each episode, the last state."""
  return _play


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
