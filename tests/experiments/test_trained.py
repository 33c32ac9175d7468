"""Trained agents: read from runs and files, played, and learnt from."""

import json
import pathlib
import pickle
import sys

import fakes
import jax
import numpy as np
import pytest

import explorax
from explorax import environments
from explorax.experiments import checkpoint, evaluate, run, trained

TINY = {"hidden_sizes": (8,), "batch_size": 2, "min_replay_size": 10}
ENV = "fakes:fake_one_hot"
CHAIN = "jax:chain/5"
FILE = f"chain/{trained.FILE}"
GREEDY = ["evaluation_epsilon=0"]


@pytest.fixture(scope="module")
def ensemble() -> explorax.Agent:
  return explorax.make_agent("bootstrapped_dqn", CHAIN, num_members=2, **TINY)


@pytest.fixture(scope="module")
def runs(ensemble, tmp_path_factory) -> pathlib.Path:
  """A directory with the run `chain`, of the ensemble."""
  path = tmp_path_factory.mktemp("runs")
  explorax.train(ensemble, CHAIN, steps=30, eval_episodes=0, output=path / "chain")
  return path


@pytest.fixture(autouse=True)
def _there(runs, monkeypatch):
  monkeypatch.chdir(runs)


@pytest.fixture(scope="module")
def recurrent(short_settings) -> explorax.Policy:
  """A policy with an LSTM, to be reset; all tests share its programs."""
  settings = [*short_settings("r2d2"), *GREEDY]
  agent = explorax.make_agent("r2d2", ENV, settings=settings)
  learner = agent.core.learner
  state = jax.jit(learner.init)(jax.random.PRNGKey(0))
  return trained.Policy(agent, learner.params(state), ENV)


@pytest.fixture
def changed(tmp_path):
  """Writes the file of a run with other settings or arrays; returns its path."""

  def write(settings=None, **arrays) -> str:
    with np.load(FILE) as file:
      record = json.loads(file[checkpoint.EXTRA].tobytes()) | (settings or {})
      text = np.frombuffer(json.dumps(record).encode(), np.uint8)
      content = {**file, checkpoint.EXTRA: text, **arrays}
    np.savez(tmp_path / "changed.npz", **content)
    return str(tmp_path / "changed.npz")

  return write


def same(a, b) -> None:
  jax.tree.map(np.testing.assert_array_equal, a, b)


def make_environment() -> environments.StandardEnvironment:
  """As `ENV`, but returns tell the actions."""
  reward = lambda t, action: float(2**t * action)  # noqa: E731
  return environments.wrap(fakes.fake_one_hot(reward=reward), seed=0)


def play(policy: explorax.Policy, episodes: int) -> list[float]:
  """Returns of episodes, and checks that actions maximise the values."""
  environment, returns = make_environment(), []
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
  return returns


def test_acts_as_evaluations_do(trained_run, recurrent):
  path = trained_run("successor_uncertainties")
  for policy in (recurrent, explorax.load(path, settings=GREEDY)):
    expected = explorax.evaluate(policy, make_environment(), episodes=3)
    assert play(policy, 3) == expected.tolist()


def test_batches_and_single_observations_agree(recurrent):
  rng = np.random.default_rng(0)
  one_hot = np.eye(16, dtype=np.float32).reshape(16, 4, 4)
  indices, rewards = rng.integers(16, size=(6, 3)), rng.normal(size=(6, 3))
  # The second environment begins an episode at the fourth step.
  firsts = np.zeros((6, 3), bool)
  firsts[0], firsts[3, 1] = True, True
  recurrent.reset()
  q = []
  for index, reward, first in zip(indices, rewards, firsts, strict=True):
    q.append(recurrent.q_values(one_hot[index], reward, first=first))
    recurrent.act(one_hot[index], reward, first=first)
  for env in range(3):
    for t, index in enumerate(indices[:, env]):
      if firsts[t, env]:
        recurrent.reset()
      # The number of a one-hot observation means the same.
      for observation in (one_hot[index], int(index)):
        values = recurrent.q_values(observation, rewards[t, env])
        np.testing.assert_allclose(values, q[t][env], atol=1e-6)
      recurrent.act(one_hot[index], rewards[t, env])


def test_a_policy_is_pickled_with_its_state(recurrent):
  recurrent.reset()
  recurrent.act(0)
  state, copy = recurrent.state, pickle.loads(pickle.dumps(recurrent))
  expected = [recurrent.act(i % 3, 0.5) for i in range(4)], recurrent.state
  same(expected, ([copy.act(i % 3, 0.5) for i in range(4)], copy.state))
  recurrent.state = state
  same(expected, ([recurrent.act(i % 3, 0.5) for i in range(4)], recurrent.state))


def test_the_file_alone_is_enough(capsys):
  with np.load(FILE, allow_pickle=False) as file:
    assert len(file.files) > 1
  spec = environments.spec(environments.make(CHAIN, seed=0))
  for path in ("chain", FILE):
    policy = explorax.load(path, settings=["evaluation_epsilon=0.25"])
    assert policy.agent.name == "bootstrapped_dqn"
    assert (policy.env, policy.spec) == (CHAIN, spec)
    assert policy.config.num_members == 2 and policy.config.evaluation_epsilon == 0.25
  assert evaluate.main([FILE, "--episodes=2", "--seed=3"]) == 0
  lines = capsys.readouterr().out.splitlines()
  assert lines[0].startswith("episode 1: return ") and len(lines) == 3


def test_refuses_in_a_sentence(capsys):
  policy = explorax.load("chain")
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
    ({"settings": ["beta=(evil).Name()"]}, "beta"),
    ({"settings": ["bonus=ｅｖｉｌ.Name()"]}, "ｅｖｉｌ"),
    ({"settings": ["bonus=evil. # \n Name()"]}, "evil"),
    ({"settings": ["exploration=Greedy(evil.Name())"]}, "evil"),
  ],
)
def test_a_file_cannot_choose_code_to_run(changes, flag, changed, capsys, monkeypatch):
  path = changed(changes)
  folder = pathlib.Path(path).parent
  (folder / "evil.py").write_text("raise SystemExit('imported')")
  monkeypatch.chdir(folder)
  assert evaluate.main([path]) == 2
  assert flag in (said := capsys.readouterr().err) and "imported" not in said
  if "settings" in changes:
    with pytest.raises(ValueError, match=r"evil|beta|ｅｖｉｌ"):
      explorax.load(path)
  assert "evil" not in sys.modules


def test_damaged_weights_are_refused(changed, capsys):
  pickle_of, text = np.array([{}], object), np.frombuffer(b"[]", np.uint8)
  for arrays in ({"more": pickle_of}, {checkpoint.EXTRA: text}):
    path = changed(**arrays)
    assert evaluate.main([path]) == 2
    assert path in capsys.readouterr().err


def test_a_warm_start_has_the_weights_and_the_rest_of_a_cold_one(ensemble):
  """Priors are weights, too; the target network starts with them."""
  expected = explorax.load("chain").weights
  flags = {"steps": 5, "seed": 9, "eval_episodes": 0, "init_weights": "chain"}
  same(explorax.train(ensemble, CHAIN, **flags).weights, expected)
  warm = trained.starting_from("chain", ensemble.core).learner
  cold, key = ensemble.core.learner, jax.random.PRNGKey(5)
  state = jax.jit(warm.init)(key)
  same((state.params, state.target_params), (expected.params, expected.params))
  same(state.opt_state, jax.jit(cold.init)(key).opt_state)


def test_a_warm_start_of_another_kind_is_refused(tmp_path, capsys):
  flags = ["--steps=5", "--init_weights=chain", f"--output={tmp_path}/out"]
  for argv, text in (
    (("--agent=bootstrapped_dqn", "--env=jax:chain/6"), "was made for"),
    (("--agent=dqn", f"--env={CHAIN}"), "other settings"),
  ):
    assert run.main([*flags, *argv]) == 2
    error = capsys.readouterr().err
    assert text in error and error.count("\n") == 1
    assert not (tmp_path / "out").exists()
