"""The command line through its real `main`: the files of a run, and how runs end."""

import csv
import json
import pathlib
import signal
import subprocess
import sys

import numpy as np
import pytest

from explorax.experiments import run

CATCH = "--env=bsuite:catch/0"
SMALL = ("--set=hidden_sizes=8", "--set=min_replay_size=20", "--set=batch_size=4")
DQN = ("--agent=dqn", "--replay=memory", *SMALL)
OUT = pathlib.Path("out")


@pytest.fixture(autouse=True)
def _empty_directory(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)


def summary() -> dict:
  return json.loads((OUT / "summary.json").read_text())


def returns(name: str) -> list[float]:
  with open(OUT / name, newline="") as file:
    return [float(row["episode_return"]) for row in csv.DictReader(file)]


def test_a_run_leaves_its_files(capsys):
  argv = [*DQN, "--env=bsuite:deep_sea/0", "--episodes=4", "--seed=7", "--video"]
  assert run.main([*argv, "--output=out", "--set", "learning_rate=0.01"]) == 0
  files = {path.name for path in OUT.iterdir()}
  (events,) = (name for name in files if name.startswith("events.out.tfevents."))
  names = {"config.json", "summary.json", "curve.png"}
  names |= {"metrics.csv", "learner.csv", "evaluation.csv"}
  assert files - {events} == {*names, "checkpoints", "bsuite", "videos", ".lock"}
  assert [path.name for path in OUT.glob("videos/*")] == ["step_00000040.gif"]
  config = json.loads((OUT / "config.json").read_text())
  assert config["config"]["learning_rate"] == 0.01
  expected = ("dqn", "bsuite:deep_sea/0", 7)
  assert (config["agent"], config["env"], config["seed"]) == expected
  assert config["command"].endswith("--output=out --set learning_rate=0.01")
  assert config["versions"]["packages"]["numpy"] == np.__version__
  counts = {"status": "finished", "env_steps": 40, "episodes": 4, "learner_updates": 21}
  assert counts.items() <= summary().items()
  assert summary()["training_return"] == pytest.approx(returns("metrics.csv")[-1])
  assert len(returns("evaluation.csv")) == 5
  mean = np.mean(returns("evaluation.csv"))
  assert summary()["evaluation_return"] == pytest.approx(mean)
  assert "Evaluation: mean return" in capsys.readouterr().out


def test_a_crash_ends_the_run_and_the_same_command_resumes_it(capsys):
  """Each process crashes at the eighth step of its environment."""
  argv = ["--agent=dqn", "--env=fakes:fake_crashing", "--set=min_replay_size=999"]
  argv += ["--episodes=3", "--checkpoint_every=5", "--eval_episodes=0", "--output=out"]
  assert run.main(argv) == 1
  (line,) = capsys.readouterr().err.splitlines()
  assert "RuntimeError: the emulator went away (fakes.py:" in line
  assert "environment step 7" in line and "error.txt" in line
  assert "RuntimeError" in (OUT / "error.txt").read_text()
  assert summary()["status"] == "failed" and summary()["episodes"] == 1
  with np.load(OUT / "checkpoints/final.npz") as weights:
    assert all(np.isfinite(weights[name]).all() for name in weights.files)
  assert run.main(argv) == 1
  assert run.main(argv) == 0
  assert len(returns("metrics.csv")) == 3 and not (OUT / "error.txt").exists()
  assert not (OUT / "evaluation.csv").exists()
  files = {path: path.stat().st_mtime_ns for path in OUT.rglob("*") if path.is_file()}
  assert run.main(argv) == 0 and "is finished" in capsys.readouterr().out
  assert files == {path: path.stat().st_mtime_ns for path in files}


def test_ctrl_c_is_not_lost_while_a_program_compiles():
  argv = ["--agent=dqn", "--env=jax:chain/5", *SMALL, "--steps=2000000000"]
  argv += ["--runner=device", "--output=out"]
  code = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
  code += "from explorax.experiments import run\nraise SystemExit(run.main())"
  with subprocess.Popen(
    [sys.executable, "-P", "-c", code, *argv],
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
    text=True,
  ) as process:
    while ", into " not in (printed := process.stdout.readline()):
      assert printed, process.stderr.read()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
  assert process.returncode == 130 and "Traceback" not in err
  assert err.strip().count("\n") == 0 and err.strip().startswith("explorax: ")
  assert summary()["status"] == "interrupted"


def test_without_reverb_the_command_names_what_to_install(capsys, monkeypatch):
  monkeypatch.delitem(sys.modules, "explorax.agents.replay.reverb", raising=False)
  monkeypatch.setitem(sys.modules, "reverb", None)  # Importing it fails.
  assert run.main(["--agent=dqn", CATCH, "--replay=reverb"]) == 2
  text = capsys.readouterr().err
  assert "explorax[reverb]" in text and "--replay=memory" in text
