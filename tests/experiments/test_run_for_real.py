"""The command line with real agents and the real runner, as a user has them."""

import csv
import json
import pathlib

import jax
import numpy as np
import pytest

from explorax import environments
from explorax.experiments import presets, run, weights

pytestmark = pytest.mark.newest

COMMON = ("--agent=dqn", "--replay=memory", "--output=out")
SMALL = ("--set=hidden_sizes=8", "--set=min_replay_size=16", "--set=batch_size=4")


@pytest.fixture(autouse=True)
def _empty_directory(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)


def test_what_was_learnt_can_be_loaded_again():
  env = "bsuite:deep_sea/0"
  assert run.main([*COMMON, *SMALL, f"--env={env}", "--steps=60"]) == 0
  summary = json.loads(pathlib.Path("out/summary.json").read_text())
  assert (summary["env_steps"], summary["episodes"]) == (60, 6)
  assert summary["learner_updates"] > 0 and "solved_episode" in summary
  with open("out/metrics.csv", newline="") as file:
    last = list(csv.DictReader(file))[-1]
  assert float(last["total_bad_episodes"]) <= 6 and np.isfinite(float(last["loss"]))

  config = json.loads(pathlib.Path("out/config.json").read_text())["config"]
  assert (config["hidden_sizes"], config["batch_size"]) == ([8], 4)
  preset = presets.PRESETS["dqn"]
  spec = environments.spec(environments.make(env, seed=0))
  agent = preset.make_agent(preset.config.__class__(hidden_sizes=(8,)), spec)
  initial = agent.learner.params(agent.learner.init(jax.random.PRNGKey(0)))
  learnt = weights.load("out/checkpoints/final.npz", initial)
  assert jax.tree.structure(learnt) == jax.tree.structure(initial)
  assert any(np.any(leaf) for leaf in jax.tree.leaves(learnt))


def test_a_reward_that_is_not_finite_is_one_sentence(capsys):
  env = "explorax.environments.testing:fake_nan_reward"
  assert run.main([*COMMON, *SMALL, f"--env={env}", "--episodes=50", "--seed=5"]) == 1
  error = capsys.readouterr().err
  assert error.startswith("explorax: ") and error.count("\n") == 1
  assert "step" in error and "seed 5" in error and "nan" in error
  assert pathlib.Path("out/checkpoints/final.npz").exists()


def test_an_impossible_config_is_one_sentence(capsys):
  env = "--env=bsuite:deep_sea/0"
  assert run.main([*COMMON, env, "--set=num_members=0"]) == 2
  assert run.main([*COMMON, env, "--set=beta=-1"]) == 2
  assert run.main([*COMMON, env, "--set=replay_capacity=8"]) == 2
  members, beta, capacity = capsys.readouterr().err.splitlines()
  assert members.startswith("explorax: num_members is 0")
  assert beta.startswith("explorax: beta is -1.0")
  assert capacity.startswith("explorax: ") and "8" in capacity
  assert not pathlib.Path("out").exists()


def test_the_device_runner_leaves_the_same_behind(capsys):
  """And evaluates on the way, in the environment that steps one by one."""
  argv = ("--agent=dqn", "--runner=device", "--output=out", *SMALL, "--eval_every=40")
  assert run.main([*argv, "--env=jax:deep_sea/4", "--steps=100"]) == 0
  summary = json.loads(pathlib.Path("out/summary.json").read_text())
  assert summary["env_steps"] >= 100 and summary["episodes"] >= 25
  assert summary["learner_updates"] == summary["env_steps"] - 16
  assert summary["evaluation"]["evaluations"] >= 1
  with open("out/metrics.csv", newline="") as file:
    rows = list(csv.DictReader(file))
  assert [int(row["env_steps"]) for row in rows[:3]] == [4, 8, 12]
  assert "bad_episode" in rows[-1]
  config = json.loads(pathlib.Path("out/config.json").read_text())
  assert (config["runner"], config["replay"]) == ("device", "device")
  with np.load("out/checkpoints/final.npz") as learnt:
    assert any(np.any(learnt[name]) for name in learnt.files)
  assert "finished" in capsys.readouterr().out
