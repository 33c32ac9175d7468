"""A tiny problem of transitions; float64 references of learning."""

import functools
from collections.abc import Callable
from typing import Any

import dm_env
import jax
import numpy as np
import pytest

from explorax.agents import types
from explorax.agents.q import agent as q_agent
from explorax.agents.q import config as q_config
from explorax.environments import specs

NUM_ACTIONS = 3
DIM = 2
HIDDEN = 4


def _make_config(**changes: Any) -> q_config.QConfig:
  tiny = {"hidden_sizes": (HIDDEN,), "replay_capacity": 20, "min_replay_size": 1}
  return q_config.QConfig(**{**tiny, "batch_size": 6, **changes})


def _make_agent(config: q_config.QConfig) -> types.Agent:
  spec = specs.EnvironmentSpec(
    dm_env.specs.Array((DIM,), np.float32), dm_env.specs.DiscreteArray(NUM_ACTIONS)
  )
  return q_agent.make_agent(config, spec)


def _make_sample(seed: int, config: q_config.QConfig, size: int = 6, **changes):
  """Windows as replay gives them: one terminates, and one is padded."""
  rng = np.random.default_rng(seed)
  n = config.n_step
  rows = {
    "observation": rng.normal(size=(size, n + 1, DIM)),
    "action": rng.integers(0, NUM_ACTIONS, (size, n + 1)),
    "reward": rng.normal(size=(size, n + 1)),
    "discount": np.ones((size, n + 1)),
    "mask": np.ones((size, n + 1)),
    "behaviour_prob": rng.uniform(0.2, 1.0, (size, n + 1)),
  }
  if not config.target.is_multi_step:
    del rows["behaviour_prob"]
  rows["discount"][0, n - 1] = 0.0
  for column in ("reward", "discount", "mask"):
    rows[column][0, n] = 0.0
    rows[column][1, 1:] = 0.0
  first = {}
  if config.mask_prob < 1:
    mask = rng.integers(0, 2, (size, config.ensemble_size))
    first["bootstrap_mask"] = np.asarray(mask, np.float32)
  rows = {
    name: np.asarray(v, np.int32 if name == "action" else np.float32)
    for name, v in {**rows, **changes}.items()
  }
  probabilities = np.full(size, 1 / size, np.float32)
  if config.priority_exponent:
    probabilities = rng.uniform(0.01, 0.2, size).astype(np.float32)
  return types.Sample(rows, first, probabilities, np.int32(20))


@pytest.fixture(scope="session")
def make_config() -> Callable[..., q_config.QConfig]:
  """(changes) → a QConfig that compiles and runs in no time."""
  return _make_config


@pytest.fixture(scope="session")
def make_agent() -> Callable[[q_config.QConfig], types.Agent]:
  """(config) → the agent for 2 numbers an observation and 3 actions."""
  return _make_agent


@pytest.fixture(scope="session")
def make_sample() -> Callable[..., types.Sample]:
  """(seed, config) → a batch of windows."""
  return _make_sample


@functools.cache
def _compiled(config: q_config.QConfig):
  core = _make_agent(config).learner
  return jax.jit(core.init), jax.jit(core.update)


@pytest.fixture(scope="session")
def compiled() -> Callable[[q_config.QConfig], Any]:
  """(config) → a learner's (init, update), jitted once for all tests."""
  return _compiled


@pytest.fixture(scope="session")
def learn() -> Callable[..., tuple[Any, types.LearnerOutput]]:
  """(config, samples, change of the first state) → the state after all updates."""

  def run(config, samples, change=lambda state: state):
    init, update = _compiled(config)
    state, output = change(init(jax.random.PRNGKey(0))), None
    for sample in samples:
      state, output = update(state, sample)
    return jax.device_get((state, output))

  return run


Tree = dict[str, np.ndarray]


class Adam:
  """Adam in float64, on one array after the other."""

  def __init__(self, params: Tree, b2: float = 0.999, eps: float = 1e-8):
    self.m, self.v = ({k: np.zeros_like(v) for k, v in params.items()} for _ in "mv")
    self.t, self.b2, self.eps = 0, b2, eps

  def step(self, params: Tree, gradients: Tree, rate: float) -> Tree:
    self.t += 1
    moved = {}
    for name, g in gradients.items():
      self.m[name] = 0.9 * self.m[name] + 0.1 * g
      self.v[name] = self.b2 * self.v[name] + (1 - self.b2) * g**2
      mean = self.m[name] / (1 - 0.9**self.t)
      size = np.sqrt(self.v[name] / (1 - self.b2**self.t))
      moved[name] = params[name] - rate * mean / (size + self.eps)
    return moved


def _gradient(loss: Callable[[Tree], float], params: Tree, name: str) -> np.ndarray:
  value = params[name]
  gradient = np.zeros_like(value)
  for i in np.ndindex(value.shape):
    ends = []
    for sign in (1, -1):
      moved = value.copy()
      moved[i] += sign * 1e-6
      ends.append(loss({**params, name: moved}))
    gradient[i] = (ends[0] - ends[1]) / 2e-6
  return gradient


@pytest.fixture(scope="session")
def adam() -> type[Adam]:
  """(params, β2, ε) → Adam in float64: step(params, gradients, rate) → params."""
  return Adam


@pytest.fixture(scope="session")
def gradient_of() -> Callable[..., np.ndarray]:
  """(loss of params, params, name) → its gradient by central differences."""
  return _gradient
