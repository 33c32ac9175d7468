"""dm_env's protocol and the seeds, for one environment of each kind and shape."""

import importlib.util
import itertools

import numpy as np
import pytest

from explorax import environments

pytestmark = pytest.mark.newest

_FAKES = "fakes:"
# Where the extra `atari` is installed.
_ATARI = tuple(
  name
  for name in ("atari:Breakout", "atari:Pong/rgb,noops=0,sticky=0.25")
  if importlib.util.find_spec("ale_py") and importlib.util.find_spec("cv2")
)
NAMES = (
  "bsuite:bandit/0",
  "bsuite:cartpole/0",
  "bsuite:catch_noise/1",
  "bsuite:deep_sea/0",
  "bsuite:deep_sea_stochastic/0",
  "bsuite:memory_len/5",
  "gym:CartPole-v1",
  "gym:FrozenLake-v1",
  "gym:Taxi-v4",
  "jax:binary_tree/4",
  "jax:breakout",
  "jax:cartpole",
  "jax:cartpole_swingup",
  "jax:catch",
  "jax:chain/9",
  "jax:deep_sea/5,stochastic=true",
  "jax:disco_maze/5",
  "jax:gridworld/5,noise=0.5,traps=0.2,obstacles=0.2,world=1",
  "jax:mountain_car",
  *_ATARI,
  f"{_FAKES}fake",
  f"{_FAKES}fake_one_hot",
)
# What is random in these is not the observation or reward of the first steps, or
# nothing is.
_DETERMINISTIC = (
  "bsuite:bandit/0",
  "bsuite:deep_sea/0",
  "jax:binary_tree/4",
  "jax:chain/9",
  f"{_FAKES}fake",
  f"{_FAKES}fake_one_hot",
)


def _play(name, seed):
  """(environment, timesteps) of 50 steps under a fixed random sequence of actions."""
  environment = environments.make(name, seed=seed)
  rng = np.random.default_rng(0)
  num_actions = environment.action_spec().num_values
  timesteps = [environment.reset()]
  for _ in range(50):
    timesteps.append(environment.step(rng.integers(num_actions, dtype=np.int32)))
  return environment, timesteps


def _seen(timesteps):
  """The step types, rewards and observations, as one array."""
  rows = [
    np.concatenate([[t.step_type, t.reward or 0.0], np.ravel(t.observation)])
    for t in timesteps
  ]
  return np.stack(rows)


@pytest.mark.parametrize("name", NAMES)
def test_protocol_and_seeds(name):
  environment, timesteps = _play(name, 0)
  assert timesteps[0].first()
  for before, after in itertools.pairwise(timesteps):
    assert after.first() == before.last()
    # No observation changes once it is given.
    assert not np.shares_memory(before.observation, after.observation)
  for timestep in timesteps:
    environment.observation_spec().validate(timestep.observation)
    if timestep.first():
      assert timestep.reward is None and timestep.discount is None
    else:
      assert type(timestep.reward) is type(timestep.discount) is np.float32
      assert timestep.discount == 1.0 or timestep.last()
  spec = environments.spec(environment)
  assert spec.actions.dtype == np.int32
  encode = environments.make_encoding(spec.observations)
  encode.spec.validate(encode(timesteps[-1].observation))

  again, other = (_seen(_play(name, seed)[1]) for seed in (0, 1))
  np.testing.assert_array_equal(_seen(timesteps), again)
  assert np.array_equal(again, other) == (name in _DETERMINISTIC)
