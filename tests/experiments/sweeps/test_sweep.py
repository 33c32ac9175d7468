"""The command: in this process, and once on Ray as a process of its own."""

import csv
import importlib.util
import json
import os
import pathlib
import subprocess
import sys

import pytest

from explorax.experiments import errors, output, sweep
from explorax.experiments.sweeps import perform

AGENTS = """
import numpy as np


class Random:
  def __init__(self, observation_spec, action_spec, seed):
    self.rng = np.random.default_rng(seed)
    self.num_actions = action_spec.num_values
    self.seed = seed

  def select_action(self, timestep):
    return self.rng.integers(self.num_actions)

  def update(self, timestep, action, new_timestep):
    pass


class Broken(Random):
  def update(self, timestep, action, new_timestep):
    if self.seed == 1:
      raise RuntimeError("it broke")
"""
SMALL = ("--sweep=catch/0,bandit/0,bandit/1,bandit/2,bandit/3", "--episodes=3")


@pytest.fixture
def folder(tmp_path, monkeypatch):
  """The current directory, with a module of agents named after it."""
  (tmp_path / f"agents_of_{tmp_path.name}.py").write_text(AGENTS)
  monkeypatch.chdir(tmp_path)
  return tmp_path


@pytest.fixture
def random_sweep(folder):
  """`main` in this process with an agent that acts at random."""
  agents = f"--agents=agents_of_{folder.name}:Random"
  return lambda *argv: sweep.main([agents, *argv, "--workers=1", "--output=out"])


def _table(folder: pathlib.Path) -> list[dict[str, str]]:
  with open(folder / "out/results.csv", newline="") as file:
    return list(csv.DictReader(file))


def _index(folder: pathlib.Path) -> dict:
  return json.loads((folder / "out/sweep.json").read_text())


@pytest.mark.slow
@pytest.mark.skipif(
  importlib.util.find_spec("ray") is None, reason="Ray is not installed"
)
def test_on_ray_it_computes_what_one_process_does(folder):
  argv = [f"--agents=dqn,agents_of_{folder.name}:Random", "--sweep=catch/0,deep_sea/0"]
  argv += ["--episodes=5"]
  command = [sys.executable, "-P", "-m", "explorax.experiments.sweep", *argv]
  environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
  command += ["--output=ray", "--workers=2"]
  subprocess.run(command, env=environment, check=True)
  assert sweep.main([*argv, "--output=out", "--workers=1"]) == 0
  ours, rays = ((folder / name / "results.csv").read_text() for name in ("out", "ray"))
  assert ours == rays and ours.count("\n") == 1 + 4 * 5


def test_a_failed_task_stops_no_others(folder, capsys):
  agents = ",".join(f"agents_of_{folder.name}:{x}" for x in ("Random", "Broken"))
  argv = [f"--agents={agents}", "--sweep=catch/0", "--seeds=2", "--episodes=5"]
  assert sweep.main([*argv, "--workers=1", "--output=out"]) == 1
  err = capsys.readouterr().err
  assert "seed1/catch-0 failed: RuntimeError: it broke (" in err
  assert "1 task failed; the results of the others are kept" in err
  assert _index(folder)["counts"] == {"done": 3, "failed": 1, "missing": 0}
  (entry,) = (e for e in _index(folder)["tasks"] if e["status"] == "failed")
  assert entry["seed"] == 1 and "it broke" in entry["reason"]
  assert len(_table(folder)) == 3 * 5


def test_the_same_command_resumes(random_sweep, folder, capsys):
  assert random_sweep(*SMALL, "--max_hours=1e-9") == 3
  assert (
    "reached --max_hours with 5 tasks left; run the same" in capsys.readouterr().err
  )
  assert _index(folder)["counts"] == {"done": 0, "failed": 0, "missing": 5}
  assert random_sweep("--sweep=bandit/0,bandit/3", "--episodes=3") == 0
  assert random_sweep(*SMALL) == 0
  out = capsys.readouterr().out
  assert "5 tasks (1 agent, 5 ids, 1 seed), into out; 2 already done" in out
  assert len(_table(folder)) == 5 * 3
  assert len(_index(folder)["commands"]) == 3
  before = [*folder.rglob("*.npz")]
  assert random_sweep(*SMALL, "--seeds=2") == 0  # More of the same may be added.
  assert "10 tasks" in capsys.readouterr().out
  assert len(before) == 5 and len([*folder.rglob("*.npz")]) == 10
  assert random_sweep(*SMALL, "--episodes=4") == 2
  assert "episodes was 3 and is 4" in capsys.readouterr().err


def test_mnist_without_data_is_left_out_and_said_once(random_sweep, folder, capsys):
  argv = ("--episodes=1", f"--mnist_dir={folder}")
  assert random_sweep("--sweep=bandit/0,mnist", *argv) == 0
  out = capsys.readouterr().out
  assert out.count("20 mnist ids left out: train-images-idx3-ubyte.gz and ") == 1
  content = _index(folder)
  assert content["counts"] == {"done": 1, "failed": 0, "missing": 20}
  reasons = {e["bsuite_id"]: e.get("reason", "") for e in content["tasks"]}
  assert "must be in" in reasons["mnist/7"]


def test_mnist_that_was_done_stays_done_without_data(random_sweep, folder, monkeypatch):
  rows = [{"episode": 1, "steps": 1, "total_return": 0.0, "total_regret": 1.0}]
  results = {"rows": rows, "runner": "local"}
  with monkeypatch.context() as patch:
    patch.setattr(perform, "perform", lambda settings, context: results)
    problem = "explorax.experiments.sweeps.plan.bsuite_mnist.problem"
    patch.setattr(problem, lambda directory: "")
    assert random_sweep("--sweep=mnist/0", "--episodes=1") == 0
  argv = ("--episodes=1", f"--mnist_dir={folder}")
  assert random_sweep("--sweep=mnist/0", *argv) == 0
  assert random_sweep("--sweep=mnist/0,mnist/1,bandit/0", *argv) == 0
  assert _index(folder)["counts"] == {"done": 2, "failed": 0, "missing": 1}


def test_a_tuning_names_the_best_settings(folder, monkeypatch, capsys):
  def perform_task(settings, context):
    beta = float(settings["agent"].rpartition("=")[2])
    rows = [
      {"episode": e, "steps": e, "total_return": e * beta, "total_regret": 0.0}
      for e in (1, 2, 3)
    ]
    return {"rows": rows, "runner": "local"}

  monkeypatch.setattr(perform, "perform", perform_task)
  (folder / "grid.json").write_text('{"qex": {"beta": [1, 3.5, 0.25]}}')
  argv = ["--agents=qex", "--sweep=bandit/0", "--episodes=3", "--output=out"]
  argv += ["--seeds=2", "--workers=1", "--sweep_config=grid.json", "--score=return"]
  assert sweep.main(argv) == 0
  out = capsys.readouterr().out
  assert "6 tasks (3 agents, 1 id, 2 seeds)" in out
  assert "best: --agent=qex --set=beta=3.5\n" in out
  assert {row["seed"] for row in _table(folder)} == {"1000000", "1000001"}
  with open(folder / "out/tuning.csv", newline="") as file:
    assert [row["is_best"] for row in csv.DictReader(file)] == [
      "False",
      "True",
      "False",
    ]
  # The winner, as it was told, is an agent of a sweep on other seeds.
  assert sweep.main([*argv[1:4], "--agents=qex@beta=3.5", "--workers=1"]) == 0
  assert {row["seed"] for row in _table(folder)} == {"0", "1000000", "1000001"}


def test_a_full_disk_ends_it_and_keeps_what_is_done(
  random_sweep, folder, monkeypatch, capsys
):
  real = output.RunDirectory.write

  def full(self, name, write):
    if "bandit-1" in name:
      raise errors.OutputError(f"{name} could not be written because the disk is full.")
    real(self, name, write)

  monkeypatch.setattr(output.RunDirectory, "write", full)
  assert random_sweep(*SMALL) == 1
  err = capsys.readouterr().err
  assert "the disk is full" in err and err.count("\n") == 1
  assert _index(folder)["counts"]["done"] == 2 and len(_table(folder)) == 2 * 3


def test_another_sweep_in_the_directory_is_refused(random_sweep, folder, capsys):
  directory = output.RunDirectory.create(folder / "out", is_locked=True)
  assert random_sweep(*SMALL) == 2
  directory.unlock()
  assert f"in use by another process ({os.getpid()})" in capsys.readouterr().err


@pytest.mark.parametrize(
  ("argv", "message"),
  [
    (("--sweep=catch/0",), "--agents is missing"),
    (("--agents=dqn",), "--sweep is missing"),
    (("--agents=dqm", "--sweep=catch/0"), "Did you mean dqn"),
    (("--agents=none:make", "--sweep=catch/0"), "cannot be imported"),
    (("--agents=.mine:make", "--sweep=catch/0"), "cannot be imported"),
    (("--agents=dqn@", "--sweep=catch/0"), "'dqn@' has an empty setting; write dqn"),
    (("--agents=dqn@bta=1", "--sweep=catch/0"), "Did you mean beta"),
    (
      ("--agents=dqn@beta=x", "--sweep=catch/0"),
      "the agent 'dqn@beta=x' has an invalid",
    ),
    (
      ("--agents=dqn", "--sweep=catch/0", "--score=return"),
      "has no effect without --sweep_config",
    ),
    (("--agents=dqn", "--sweep=mnist/0", "--mnist_dir=/none"), "must be in /none"),
    (("--agents=dqn", "--sweep=catch/0", "--max_hours=0"), "a number above 0"),
    (
      ("--agents=dqn", "--sweep=catch/0", "--seed=999999", "--seeds=2"),
      "exceed the largest seed",
    ),
  ],
)
def test_bad_input_is_one_sentence(tmp_path, monkeypatch, capsys, argv, message):
  monkeypatch.chdir(tmp_path)
  assert sweep.main(argv) == 2
  err = capsys.readouterr().err
  assert message in err and err.startswith("explorax: ") and err.count("\n") == 1


def test_help_and_list(capsys):
  assert sweep.main(["--help"]) == 0
  text = capsys.readouterr().out
  assert all(len(line) <= 88 for line in text.splitlines())
  assert sweep.main(["--list"]) == 0
  assert "DEEP_SEA" in capsys.readouterr().out
