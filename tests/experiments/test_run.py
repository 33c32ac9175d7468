"""The command line through its real `main`: the files of a run, and how runs end."""

import csv
import functools
import itertools
import json
import pathlib
import signal
import subprocess
import sys
import time

import fakes
import numpy as np
import pytest

from explorax.experiments import run

DEEP_SEA, CATCH = "--env=bsuite:deep_sea/0", "--env=bsuite:catch/0"
SMALL = ("--set=hidden_sizes=8", "--set=min_replay_size=20", "--set=batch_size=4")
DQN = ("--agent=dqn", "--replay=memory", *SMALL)


def summary_of(directory: str) -> dict:
  return json.loads(pathlib.Path(directory, "summary.json").read_text())


def test_a_run_leaves_its_files(tmp_path, monkeypatch, capsys):
  monkeypatch.chdir(tmp_path)
  argv = [*DQN, DEEP_SEA, "--episodes=4", "--seed=7", "--output=out"]
  assert run.main([*argv, "--set", "learning_rate=0.01"]) == 0
  files = {path.name for path in pathlib.Path("out").iterdir()}
  (events,) = (name for name in files if name.startswith("events.out.tfevents."))
  names = {"config.json", "summary.json", "curve.png"}
  names |= {"metrics.csv", "learner.csv", "evaluation.csv"}
  assert files - {events} == {*names, "checkpoints", "bsuite", ".lock"}
  config = json.loads(pathlib.Path("out/config.json").read_text())
  assert config["config"]["learning_rate"] == 0.01
  expected = ("dqn", "bsuite:deep_sea/0", 7)
  assert (config["agent"], config["env"], config["seed"]) == expected
  assert config["command"].endswith("--output=out --set learning_rate=0.01")
  assert config["versions"]["packages"]["numpy"] == np.__version__
  summary = summary_of("out")
  counts = ("finished", 40, 4, 21)
  names = ("status", "env_steps", "episodes", "learner_updates")
  assert tuple(summary[name] for name in names) == counts
  assert summary["solved_episode"] is None
  with open("out/metrics.csv", newline="") as file:
    returns = [float(row["episode_return"]) for row in csv.DictReader(file)]
  assert summary["training_return"] == pytest.approx(returns[-1])
  with open("out/evaluation.csv", newline="") as file:
    evaluated = [float(row["episode_return"]) for row in csv.DictReader(file)]
  assert len(evaluated) == 5
  assert summary["evaluation_return"] == pytest.approx(np.mean(evaluated))
  with np.load("out/checkpoints/final.npz") as weights:
    assert all(np.isfinite(weights[name]).all() for name in weights.files)
  text = capsys.readouterr().out
  assert text.index("Greedy policy: mean return") < text.index("Training: mean return")
  assert "Deep Sea was not solved" in text


@pytest.mark.usefixtures("ctrl_c")
def test_a_signal_in_the_last_episode_does_not_make_a_run_incomplete(agents):
  argv = [f"--agent={agents}:Interrupting", CATCH]
  assert run.main([*argv, "--episodes=3", "--output=out"]) == 0
  assert summary_of("out")["status"] == "finished"
  assert run.main([*argv, "--episodes=4", "--output=out2"]) == 130
  assert summary_of("out2")["status"] == "interrupted"


def test_without_reverb_the_command_names_what_to_install(
  tmp_path, capsys, monkeypatch
):
  monkeypatch.chdir(tmp_path)
  monkeypatch.delitem(sys.modules, "explorax.agents.replay.reverb", raising=False)
  monkeypatch.setitem(sys.modules, "reverb", None)  # Importing it fails.
  assert run.main(["--agent=dqn", CATCH, "--replay=reverb"]) == 2
  text = capsys.readouterr().err
  assert "explorax[reverb]" in text and "--replay=memory" in text


_rewards = itertools.chain([1.0] * 30, itertools.repeat(1e30))
# Its square is beyond float32.
overflowing = functools.partial(
  fakes.FakeEnvironment, reward=lambda t, action: next(_rewards)
)


def test_a_loss_that_is_not_finite_keeps_the_last_good_weights(
  tmp_path, monkeypatch, capsys
):
  monkeypatch.chdir(tmp_path)
  argv = [*DQN, f"--env={__name__}:overflowing", "--episodes=99", "--output=out"]
  assert run.main(argv) == 1
  captured = capsys.readouterr()
  assert "the loss became inf" in captured.err and captured.err.count("\n") == 1
  with np.load("out/checkpoints/final.npz") as weights:
    assert all(np.isfinite(weights[name]).all() for name in weights.files)
  assert summary_of("out")["status"] == "failed"


def test_a_full_disk_ends_the_run_with_a_sentence(agents, capsys, small_disk):
  with small_disk(4096):
    code = run.main([f"--agent={agents}:Random", CATCH, "--output=out"])
  assert code == 1
  (line,) = capsys.readouterr().err.splitlines()
  assert line.startswith("explorax: ")
  assert "could not be written (File too large)" in line
  assert not pathlib.Path("out/summary.json").exists()  # The same command resumes.


def test_a_signal_ends_a_process_cleanly(agents, tmp_path, capsys, request):
  argv = [f"--agent={agents}:Slow", CATCH, "--episodes=100000", "--output=out"]
  process = subprocess.Popen(
    [sys.executable, "-P", "-m", "explorax.experiments.run", *argv],
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
    text=True,
  )
  request.addfinalizer(process.kill)
  metrics = tmp_path / "out/metrics.csv"
  deadline = time.monotonic() + 120
  while not (metrics.exists() and metrics.read_text().count("\n") > 3):
    assert process.poll() is None and time.monotonic() < deadline
    time.sleep(0.05)
  assert run.main(argv) == 2
  assert "is in use by another process" in capsys.readouterr().err
  process.send_signal(signal.SIGTERM)
  out, err = process.communicate(timeout=60)
  assert process.returncode == 128 + signal.SIGTERM
  assert "SIGTERM" in err and "Traceback" not in err
  assert "interrupted" in out
  summary = summary_of("out")
  assert summary["status"] == "interrupted" and summary["episodes"] >= 3


@pytest.mark.parametrize(
  ("runner", "line", "summary"),
  [("local", "seed 0", None), ("device", ", into ", "interrupted")],
  ids=["while it imports", "while it compiles"],
)
def test_ctrl_c_is_not_lost_at_the_start(runner, line, summary, tmp_path):
  argv = ["--agent=dqn", "--env=jax:chain/5", *SMALL, "--steps=2000000000"]
  argv += [f"--runner={runner}", f"--output={tmp_path}/out"]
  code = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
  code += "from explorax.experiments import run\nraise SystemExit(run.main())"
  with subprocess.Popen(
    [sys.executable, "-P", "-c", code, *argv],
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
    text=True,
  ) as process:
    while line not in (printed := process.stdout.readline()):
      assert printed, process.stderr.read()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
  assert process.returncode == 130 and "Traceback" not in err
  assert err.strip().count("\n") == 0 and err.strip().startswith("explorax: ")
  if summary:
    assert summary_of(f"{tmp_path}/out")["status"] == summary
  else:
    assert not (tmp_path / "out/summary.json").exists()
