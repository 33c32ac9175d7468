"""Trained agents: read from runs and files, played, and learnt from."""

import contextlib
import json
import pathlib
import pickle
import subprocess
import sys

import jax
import numpy as np
import pytest

import explorax
from explorax import environments
from explorax.experiments import checkpoint, config, evaluate, run, trained

TINY = {"hidden_sizes": (8,), "batch_size": 2, "min_replay_size": 10}
RECURRENT = {
  "sequence_length": 4,
  "sequence_period": 2,
  "burn_in": 0,
  "lstm_size": 6,
  "head_size": 6,
}
ENV = "fakes:fake_one_hot"
CHAIN = "jax:chain/5"
FILE = f"chain/{trained.FILE}"


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> pathlib.Path:
  """The directories of a feed-forward, a recurrent and a successor agent."""
  path = tmp_path_factory.mktemp("trained")
  with contextlib.chdir(path):
    for name, more in (
      ("bootstrapped_dqn", {"num_members": 3}),
      ("r2d2", RECURRENT),
      ("successor_uncertainties", {}),
    ):
      agent = explorax.make_agent(name, ENV, **TINY, **more, evaluation_epsilon=0.0)
      explorax.train(agent, ENV, steps=30, output=name)
    agent = explorax.make_agent("bootstrapped_dqn", CHAIN, num_members=2, **TINY)
    explorax.train(agent, CHAIN, steps=30, output="chain")
  return path


@pytest.fixture(autouse=True)
def _there(runs, monkeypatch):
  monkeypatch.chdir(runs)


@pytest.fixture
def changed(tmp_path):
  """Writes the file of a run with other settings; returns its path."""

  def write(**changes) -> str:
    with np.load(FILE) as file:
      arrays = dict(file)
    record = json.loads(arrays[checkpoint.EXTRA].tobytes()) | changes
    arrays[checkpoint.EXTRA] = np.frombuffer(json.dumps(record).encode(), np.uint8)
    np.savez(tmp_path / "changed.npz", **arrays)
    return str(tmp_path / "changed.npz")

  return write


def same(a, b) -> None:
  jax.tree.map(np.testing.assert_array_equal, a, b)


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


def test_batches_and_single_observations_agree():
  rng = np.random.default_rng(0)
  policy = explorax.load("r2d2")
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
    alone = explorax.load("r2d2")
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


def test_a_policy_is_pickled_with_its_state():
  policy = explorax.load("r2d2")
  policy.act(0)
  kept, copy = policy.state, pickle.loads(pickle.dumps(policy))
  expected = [policy.act(i % 3, 0.5) for i in range(4)], policy.state
  same(expected, ([copy.act(i % 3, 0.5) for i in range(4)], copy.state))
  policy.state = kept
  same(expected, ([policy.act(i % 3, 0.5) for i in range(4)], policy.state))


def test_the_file_alone_is_enough():
  """numpy reads it; playing it needs no package of training."""
  with np.load(FILE, allow_pickle=False) as file:
    record = json.loads(file[checkpoint.EXTRA].tobytes())
    assert len(file.files) > 1
  assert record["agent"] == "bootstrapped_dqn"
  code = (
    "import sys\n"
    "for name in ('acme', 'reverb', 'tensorflow', 'matplotlib', 'ray'):\n"
    "  sys.modules[name] = None\n"
    "from explorax.experiments import evaluate\n"
    f"sys.exit(evaluate.main(['{FILE}', '--episodes=2', '--seed=3']))\n"
  )
  done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
  assert done.returncode == 0, done.stderr
  lines = done.stdout.splitlines()
  assert lines[0].startswith("episode 1: return ") and len(lines) == 3


@pytest.mark.parametrize("path", ["r2d2", f"r2d2/{trained.FILE}"])
def test_knows_what_it_was_trained_in(path):
  policy = explorax.load(path, settings=["evaluation_epsilon=0.25"])
  spec = environments.spec(environments.make(ENV, seed=0))
  assert (policy.agent.name, policy.env, policy.spec) == ("r2d2", ENV, spec)
  assert policy.config.lstm_size == 6 and policy.config.evaluation_epsilon == 0.25


def test_refuses_in_a_sentence(capsys):
  policy = explorax.load("bootstrapped_dqn")
  policy.act(0)
  for observation, text in ((np.zeros((2, 9)), "shape"), (99, "99")):
    with pytest.raises(ValueError, match=text):
      policy.act(observation)
  with pytest.raises(ValueError, match="inconsistent sizes"):
    policy.act(np.zeros((2, *policy.spec.observations.shape)))
  with pytest.raises(ValueError, match=r"final\.npz"):
    explorax.load(".")
  for flag, text in (
    ("--env=jax:chain/6", "was made for"),
    ("--set=hidden_sizes=5", FILE),
  ):
    assert evaluate.main([FILE, flag]) == 2
    assert text in capsys.readouterr().err


@pytest.mark.parametrize(
  ("changes", "flag"),
  [
    ({"env": "evil:make"}, "--env=evil:make"),
    ({"env": "gym:evil:Foo-v0"}, "--env=gym:evil:Foo-v0"),
    ({"settings": ["bonus=evil.Name()"]}, "--set 'bonus=evil.Name()'"),
    ({"settings": ["bonus=(evil).Name()"]}, "--set 'bonus=(evil).Name()'"),
    ({"settings": ["beta=(evil).Name()"]}, "beta"),
    ({"settings": ["bonus=ｅｖｉｌ.Name()"]}, "ｅｖｉｌ"),
    ({"settings": ["bonus=evil. # \n Name()"]}, "evil"),
    ({"settings": ["exploration=Greedy(evil.Name())"]}, "evil"),
  ],
)
def test_a_file_cannot_choose_code_to_run(changes, flag, changed, capsys, monkeypatch):
  path = changed(**changes)
  folder = pathlib.Path(path).parent
  (folder / "evil.py").write_text("raise SystemExit('imported')")
  monkeypatch.chdir(folder)
  assert evaluate.main([path]) == 2
  assert flag in (said := capsys.readouterr().err) and "imported" not in said
  if "settings" in changes:
    with pytest.raises(ValueError, match=r"evil|beta|ｅｖｉｌ"):
      explorax.load(path)
  assert "evil" not in sys.modules


@pytest.mark.parametrize("path", ["chain", pathlib.Path(FILE)], ids=str)
@pytest.mark.parametrize("runner", [config.LOCAL, config.DEVICE])
def test_a_warm_start_without_updates_keeps_the_weights(path, runner):
  """Priors are part of them, so that the values are the same."""
  agent = explorax.make_agent("bootstrapped_dqn", CHAIN, num_members=2, **TINY)
  result = explorax.train(
    agent, CHAIN, steps=5, seed=9, runner=runner, init_weights=path
  )
  same(result.weights, explorax.load("chain").weights)


def test_the_target_network_starts_with_them():
  agent = explorax.make_agent("bootstrapped_dqn", CHAIN, num_members=2, **TINY).core
  warm = trained.starting_from("chain", agent)
  state = warm.learner.init(jax.random.PRNGKey(5))
  expected = explorax.load("chain").weights
  for params in (state.params, state.target_params):
    same(params, expected.params)
  same(state.opt_state, agent.learner.init(jax.random.PRNGKey(5)).opt_state)


@pytest.mark.parametrize(
  ("argv", "text"),
  [
    (("--agent=bootstrapped_dqn", "--env=jax:chain/6"), "was made for"),
    (("--agent=dqn", f"--env={CHAIN}"), "other settings"),
  ],
)
def test_a_warm_start_of_another_kind_is_refused(argv, text, tmp_path, capsys):
  flags = ["--steps=5", "--init_weights=chain", f"--output={tmp_path}/out"]
  assert run.main([*flags, *argv]) == 2
  error = capsys.readouterr().err
  assert text in error and error.count("\n") == 1
  assert not (tmp_path / "out").exists()
