"""The tiny problem with windows of several rows."""

import dataclasses
from collections.abc import Callable
from typing import Any

import dm_env
import numpy as np
import pytest

from explorax.agents import types
from explorax.agents.q import config as q_config
from explorax.agents.targets import greedy
from explorax.environments import specs
from explorax.experiments.presets import r2d2 as r2d2_presets

NUM_ACTIONS = 3
DIM = 2
SPEC = specs.EnvironmentSpec(
  dm_env.specs.Array((DIM,), np.float32), dm_env.specs.DiscreteArray(NUM_ACTIONS)
)


def _make_config(**changes: Any) -> q_config.QConfig:
  tiny: dict[str, Any] = {
    "hidden_sizes": (4,),
    "lstm_size": 3,
    "head_size": 2,
    "sequence_length": 4,
    "burn_in": 2,
    "sequence_period": 2,
    "replay_capacity": 40,
    "min_replay_size": 1,
    "batch_size": 6,
    "discount": 0.9,
    "target": greedy.NStep(n=2),
    "target_update_period": 3,
  }
  return dataclasses.replace(r2d2_presets.ATARI, **{**tiny, **changes})


def make_rows(rng: np.random.Generator, num_rows: int, size: int, num_policies: int):
  """Rows as replay gives them: windows 0 to 3 end early.

  Window 0 terminates at row 3 and window 1 is truncated there; 2 terminates at row 5,
  3 has a single transition; the others do not end.
  """
  rows = {
    "observation": rng.normal(size=(size, num_rows, DIM)),
    "action": rng.integers(0, NUM_ACTIONS, (size, num_rows)),
    "reward": rng.normal(size=(size, num_rows)),
    "discount": np.ones((size, num_rows)),
    "mask": np.ones((size, num_rows)),
    "behaviour_prob": rng.uniform(0.2, 1.0, (size, num_rows)),
    "r_int": rng.uniform(0.0, 2.0, (size, num_rows)),
    "policy": np.repeat(rng.integers(0, num_policies, (size, 1)), num_rows, axis=1),
  }
  rows["stored_bonus"] = rows["r_int"].copy()
  for window, end, terminates in ((0, 3, 1), (1, 3, 0), (2, 5, 1), (3, 1, 1)):
    if end >= num_rows:
      continue
    rows["discount"][window, end - 1] = 1.0 - terminates
    for name in ("action", "reward", "discount", "mask"):
      rows[name][window, end:] = 0
    for column in rows.values():
      column[window, end + 1 :] = 0
  return rows


def _make_sample(seed: int, agent: types.Agent) -> types.Sample:
  """Windows of which every other one starts an episode."""
  rng = np.random.default_rng(seed)
  config, replay = agent.config, agent.replay
  size = config.batch_size
  rows = make_rows(rng, replay.window_rows, size, config.num_policies)
  starts = np.arange(size) % 2
  drawn = {
    "starts_episode": starts,
    "previous_action": np.where(starts, -1, rng.integers(0, NUM_ACTIONS, size)),
    "previous_reward": np.where(starts, 0.0, rng.normal(size=size)),
    "previous_r_int": np.where(starts, 0.0, rng.uniform(0, 2, size)),
  }
  if "core_state" in replay.first_row_extras:
    width = agent.extras_spec["core_state"].shape[0]
    state = 0.5 * rng.normal(size=(size, width))
    drawn["core_state"] = np.where(starts[:, None], 0.0, state)
  if "bootstrap_mask" in replay.first_row_extras:
    drawn["bootstrap_mask"] = rng.integers(0, 2, (size, config.ensemble_size))

  if "bootstrap_mask" in replay.extras:
    shape = (size, replay.window_rows, config.ensemble_size)
    rows["bootstrap_mask"] = rng.integers(0, 2, shape)

  def cast(name, column):
    integers = ("action", "policy", "previous_action")
    return np.asarray(column, np.int32 if name in integers else np.float32)

  stored = (*replay.extras, "observation", "action", "reward", "discount", "mask")
  probabilities = rng.uniform(0.01, 0.2, size).astype(np.float32)
  return types.Sample(
    {name: cast(name, column) for name, column in rows.items() if name in stored},
    {name: cast(name, column) for name, column in drawn.items()},
    probabilities,
    np.int32(20),
  )


@pytest.fixture(scope="session")
def sequence_config() -> Callable[..., q_config.QConfig]:
  """(changes) → a QConfig that compiles and runs in no time."""
  return _make_config


@pytest.fixture(scope="session")
def sequence_sample() -> Callable[..., types.Sample]:
  """(seed, agent) → a batch of windows."""
  return _make_sample
