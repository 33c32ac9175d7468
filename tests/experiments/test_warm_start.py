"""Learning that starts from the weights of another run, with each runner."""

import contextlib
import json
import pathlib

import jax
import numpy as np
import pytest

import explorax
from explorax.experiments import config, export, run, warm_start, weights

pytestmark = pytest.mark.newest

ENV = "jax:chain/5"
TINY = {"hidden_sizes": (8,), "batch_size": 2, "min_replay_size": 10}


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> pathlib.Path:
  """A run of an ensemble with fixed priors, and its exported file."""
  path = tmp_path_factory.mktemp("warm")
  with contextlib.chdir(path):
    agent = explorax.make_agent("bootstrapped_dqn", ENV, num_members=2, **TINY)
    explorax.train(agent, ENV, steps=30, output="run")
    assert export.main(["run", "--output=agent.npz"]) == 0
  return path


@pytest.fixture(autouse=True)
def _there(runs, monkeypatch):
  monkeypatch.chdir(runs)


@pytest.mark.parametrize("path", ["run", pathlib.Path("agent.npz")], ids=str)
@pytest.mark.parametrize("runner", [config.LOCAL, config.DEVICE])
def test_a_run_without_updates_keeps_the_weights(path, runner):
  """Priors are part of them, so that the values are the same."""
  agent = explorax.make_agent("bootstrapped_dqn", ENV, num_members=2, **TINY)
  result = explorax.train(agent, ENV, steps=5, seed=9, runner=runner, init_weights=path)
  given = explorax.load("run").weights
  jax.tree.map(np.testing.assert_array_equal, result.weights, given)


def test_the_target_network_starts_with_them():
  agent = explorax.make_agent("bootstrapped_dqn", ENV, num_members=2, **TINY).core
  state = warm_start.starting_from("run", agent, ENV).learner.init(
    jax.random.PRNGKey(5)
  )
  given = explorax.load("run").weights
  for params in (state.params, state.target_params):
    jax.tree.map(np.testing.assert_array_equal, params, given.params)
  cold = agent.learner.init(jax.random.PRNGKey(5))
  jax.tree.map(np.testing.assert_array_equal, state.opt_state, cold.opt_state)


@pytest.mark.parametrize(
  ("argv", "text"),
  [
    (("--agent=bootstrapped_dqn", "--env=jax:chain/6"), "jax:chain/6 has"),
    (("--agent=dqn", f"--env={ENV}"), "other settings"),
    (("--agent=my:make", f"--env={ENV}"), "agent of your own"),
    (("--agent=dqn", f"--env={ENV}", "--init_weights=nothing"), "nothing"),
  ],
)
def test_other_agents_and_environments_are_refused(argv, text, tmp_path, capsys):
  flags = ["--steps=5", "--init_weights=run", f"--output={tmp_path}/out"]
  assert run.main([*flags, *argv]) == 2
  error = capsys.readouterr().err
  assert text in error and error.count("\n") == 1
  assert not (tmp_path / "out").exists()


def test_another_preprocessing_of_a_game_is_refused(tmp_path):
  """Also with observations of the same shape."""
  with np.load("agent.npz") as file:
    arrays = dict(file)
  record = {**weights.load_settings("agent.npz"), "env": "atari:Pong"}
  arrays[weights.SETTINGS] = np.frombuffer(json.dumps(record).encode(), np.uint8)
  np.savez(tmp_path / "pong.npz", **arrays)
  agent = explorax.make_agent("bootstrapped_dqn", ENV, num_members=2, **TINY).core
  warm_start.starting_from(tmp_path / "pong.npz", agent, "atari:Pong/sticky=0.25")
  with pytest.raises(ValueError, match="action_repeat is 4"):
    warm_start.starting_from(tmp_path / "pong.npz", agent, "atari:Pong/action_repeat=2")
