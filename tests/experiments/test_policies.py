"""The policy of a run: it acts as evaluations do, alone and in batches."""

import contextlib
import json
import pathlib
import sys

import gymnasium
import jax
import numpy as np
import pytest

import explorax
from explorax import environments
from explorax.experiments import export

pytestmark = pytest.mark.newest

TINY = {"hidden_sizes": (8,), "batch_size": 2, "min_replay_size": 10}
RECURRENT = {
  "sequence_length": 4,
  "sequence_period": 2,
  "burn_in": 0,
  "lstm_size": 6,
  "head_size": 6,
}
ENV = "fakes:fake_one_hot"


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> pathlib.Path:
  """The directories of a feed-forward, a recurrent and a successor agent."""
  path = tmp_path_factory.mktemp("policies")
  with contextlib.chdir(path):
    for name, more in (
      ("bootstrapped_dqn", {"num_members": 3}),
      ("r2d2", RECURRENT),
      ("successor_uncertainties", {}),
    ):
      agent = explorax.make_agent(name, ENV, **TINY, **more, evaluation_epsilon=0.0)
      explorax.train(agent, ENV, steps=30, output=name)
  return path


@pytest.fixture(autouse=True)
def _there(runs, monkeypatch):
  monkeypatch.chdir(runs)


def play(policy: explorax.Policy, seed: int, episodes: int) -> np.ndarray:
  """Returns of episodes, and checks that actions maximise the values."""
  environment, returns = environments.make(ENV, seed=seed), []
  for _ in range(episodes):
    timestep, total, reward = environment.reset(), 0.0, 0.0
    policy.reset()
    while not timestep.last():
      q = policy.q_values(timestep.observation, reward)
      action = policy.act(timestep.observation, reward)
      assert q[action] == q.max()
      timestep = environment.step(action)
      reward = timestep.reward
      total += reward
    returns.append(total)
  return np.array(returns)


@pytest.mark.parametrize(
  "name", ["bootstrapped_dqn", "r2d2", "successor_uncertainties"]
)
def test_acts_as_evaluations_do(name):
  expected = explorax.evaluate(name, env=ENV, episodes=3, seed=4)
  np.testing.assert_array_equal(play(explorax.load(name, seed=4), 4, 3), expected)


@pytest.mark.parametrize("name", ["bootstrapped_dqn", "r2d2"])
def test_batches_and_single_observations_agree(name):
  rng = np.random.default_rng(0)
  policy = explorax.load(name)
  shape = policy.spec.observations.shape
  size = int(np.prod(shape))
  each = np.eye(size, dtype=np.float32).reshape(size, *shape)
  steps = [each[rng.integers(size, size=3)] for _ in range(6)]
  rewards = rng.normal(size=(6, 3))
  # The second environment begins an episode at the fourth step.
  firsts = np.zeros((6, 3), bool)
  firsts[0], firsts[3, 1] = True, True
  q = []
  for observations, reward, first in zip(steps, rewards, firsts, strict=True):
    q.append(policy.q_values(observations, reward, first=first))
    policy.act(observations, reward, first=first)
  for env in range(3):
    alone = explorax.load(name)
    for t in range(6):
      if firsts[t, env]:
        alone.reset()
      seen = steps[t][env], rewards[t, env]
      np.testing.assert_allclose(alone.q_values(*seen), q[t][env], atol=1e-6)
      # The number of a one-hot observation means the same.
      index = int(np.argmax(steps[t][env]))
      np.testing.assert_array_equal(
        alone.q_values(index, seen[1]), alone.q_values(*seen)
      )
      alone.act(*seen)


class Numbered(gymnasium.Env):
  """Shows its step in each of these spaces."""

  action_space = gymnasium.spaces.Discrete(2)

  def __init__(self, space: gymnasium.Space):
    self.observation_space = space

  def reset(self, *, seed=None, options=None):
    self._time = 0
    return self._shown(self.observation_space), {}

  def step(self, action):
    self._time += 1
    return self._shown(self.observation_space), 1.0, self._time == 2, False, {}

  def _shown(self, space):
    if isinstance(space, gymnasium.spaces.Dict):
      return {name: self._shown(each) for name, each in space.items()}
    if isinstance(space, gymnasium.spaces.Tuple):
      return tuple(map(self._shown, space))
    return space.start + self._time


@pytest.mark.parametrize(
  "space",
  [
    FROM_FOUR := gymnasium.spaces.Discrete(3, start=4),
    gymnasium.spaces.Dict(
      b=FROM_FOUR, a=gymnasium.spaces.Tuple([gymnasium.spaces.Discrete(3), FROM_FOUR])
    ),
    gymnasium.spaces.Dict(only=FROM_FOUR),
  ],
  ids=["number", "nested", "only"],
)
def test_raw_observations_are_converted_as_in_training(tmp_path, space):
  raw = Numbered(space)
  explorax.train("dqn", raw, steps=15, output=tmp_path / "run", eval_episodes=0)
  policy = explorax.load(tmp_path / "run")
  environment = environments.wrap(Numbered(space), seed=0)
  policy.spec.observations.validate(environment.reset().observation)
  seen = [raw.reset()[0], *(raw.step(0)[0] for _ in range(2))]
  converted = [environment.reset(), *(environment.step(0) for _ in range(2))]
  values = [policy.q_values(each) for each in seen]
  for value, timestep in zip(values, converted, strict=True):
    np.testing.assert_array_equal(value, policy.q_values(timestep.observation))
  assert len({value.tobytes() for value in values}) == 3


def test_a_state_can_be_kept_and_given():
  policy = explorax.load("r2d2")
  policy.act(0)
  kept = policy.state
  first = [policy.act(i % 3, 0.5) for i in range(4)], policy.state
  policy.state = kept
  again = [policy.act(i % 3, 0.5) for i in range(4)], policy.state
  jax.tree.map(np.testing.assert_array_equal, first, again)


def test_knows_what_it_was_trained_in(tmp_path):
  assert export.main(["r2d2", f"--output={tmp_path}/agent.npz"]) == 0
  for path in ("r2d2", tmp_path / "agent.npz"):
    policy = explorax.load(path, settings=["evaluation_epsilon=0.25"])
    spec = environments.spec(environments.make(ENV, seed=0))
    assert (policy.agent, policy.env, policy.spec) == ("r2d2", ENV, spec)
    assert policy.config.lstm_size == 6 and policy.config.evaluation_epsilon == 0.25
    assert policy.settings["steps"] == 30


def test_refuses_in_a_sentence():
  policy = explorax.load("bootstrapped_dqn")
  policy.act(0)
  for observation, text in ((np.zeros(9), "shape"), (99, "99")):
    with pytest.raises(ValueError, match=text):
      policy.act(observation)
  with pytest.raises(ValueError, match="reset"):
    policy.act(np.zeros((2, *policy.spec.observations.shape)))
  with pytest.raises(ValueError, match=r"config\.json"):
    explorax.load(".")
  agent = explorax.make_agent("dqn", ENV)
  with pytest.raises(ValueError, match="weights"):
    explorax.evaluate(agent)


def test_a_run_cannot_choose_code_to_run(tmp_path):
  """Its environment is not made, and a class of the user's is refused."""
  with pytest.MonkeyPatch.context() as patch:
    patch.chdir(tmp_path)
    pathlib.Path("evil.py").write_text("raise SystemExit('imported')")
    agent = explorax.make_agent("dqn", "jax:chain/4", **TINY)
    explorax.train(agent, "jax:chain/4", steps=15, output="run")
    record = json.loads(pathlib.Path("run/config.json").read_text())
    record["env"] = "evil:make"
    pathlib.Path("run/config.json").write_text(json.dumps(record))
    assert explorax.load("run").act(0) in (0, 1)
    with pytest.raises(ValueError, match="--env=evil:make"):
      explorax.evaluate("run")
    record["settings"] += ["bonus=evil:Name()"]
    pathlib.Path("run/config.json").write_text(json.dumps(record))
    with pytest.raises(ValueError, match="bonus=evil:Name"):
      explorax.load("run")
    assert "evil" not in sys.modules
