"""The command line through its real `main`, with a stand-in agent and runner."""

import csv
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
from typing import Any

import numpy as np
import pytest

from explorax.experiments import run

DEEP_SEA = "bsuite:deep_sea/0"
FAKE_ENV = "explorax.environments.testing:fake"


def launch(*argv: str) -> int:
  return run.main(["--agent=fake", f"--env={FAKE_ENV}", "--replay=memory", *argv])


def summary_of(directory: str | pathlib.Path) -> dict[str, Any]:
  return json.loads((pathlib.Path(directory) / "summary.json").read_text())


def refused(capsys, *argv: str, code: int = 2) -> str:
  """Runs a command that must be refused, and returns its one sentence."""
  assert run.main(argv) == code
  text = capsys.readouterr().err
  assert text.startswith("explorax: ") and text.count("\n") == 1
  return text


def refused_launch(capsys, *argv: str) -> str:
  common = ("--agent=fake", f"--env={FAKE_ENV}", "--replay=memory", "--episodes=2")
  return refused(capsys, *common, *argv)


def test_leaves_everything_behind(stand_ins, capsys):
  argv = ["--agent=fake", f"--env={DEEP_SEA}", "--replay=memory", "--episodes=4"]
  assert run.main([*argv, "--seed=7", "--output=out", "--set", "batch_size=4"]) == 0
  out = stand_ins / "out"
  files = {str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()}
  (events,) = (name for name in files if name.startswith("events.out.tfevents."))
  assert files - {events} == {
    "config.json",
    "metrics.csv",
    "summary.json",
    "curve.png",
    "checkpoints/final.npz",
    "bsuite/bsuite_id_-_deep_sea-0.csv",
  }
  config = json.loads((out / "config.json").read_text())
  assert config["config"]["batch_size"] == 4
  assert config["config"]["exploration"] == {
    "class": "Rule",
    "epsilon": 0.05,
    "period": None,
  }
  assert (config["agent"], config["env"], config["seed"]) == ("fake", DEEP_SEA, 7)
  assert config["command"].endswith("--output=out --set batch_size=4")
  assert config["versions"]["packages"]["numpy"] == np.__version__
  summary = summary_of(out)
  assert summary["status"] == "finished"
  assert (summary["env_steps"], summary["episodes"]) == (40, 4)
  assert summary["learner_updates"] == 20
  assert summary["steps_per_second"] == 123.4
  assert summary["mean_return_last_100"] == 2.5
  assert summary["best_mean_return_100"] is None  # Of four episodes.
  assert summary["policies"]["explorer"]["mean_return_last_100"] == 2.0
  assert summary["solved_episode"] is None
  with np.load(out / "checkpoints/final.npz") as weights:
    np.testing.assert_array_equal(weights["mlp/~/linear_0/w"], np.full((2, 3), 7.0))
  rows = list(csv.DictReader((out / "metrics.csv").read_text().splitlines()))
  assert [row["episode_return"] for row in rows] == ["1.0", "2.0", "3.0", "4.0"]
  text = capsys.readouterr().out
  assert "Deep Sea was not solved in 4 episodes" in text
  assert "out/checkpoints/final.npz" in text


def test_output_has_a_default_and_steps_end_a_run_too(stand_ins):
  assert launch("--steps=25", "--episodes=100", "--seed=3") == 0
  name = "fake-explorax.environments.testing_fake-seed3"
  summary = summary_of(stand_ins / "runs" / name)
  assert summary["env_steps"] == 30 and "solved_episode" not in summary


def test_runs_bsuite_for_its_own_number_of_episodes(stand_ins):
  argv = ["--agent=fake", "--env=bsuite:cartpole_swingup/0", "--replay=memory"]
  assert run.main([*argv, "--output=out", "--set", "signal_at_episode=1"]) == 130
  assert json.loads(pathlib.Path("out/config.json").read_text())["episodes"] == 1000


def test_asks_how_long_where_the_environment_does_not_say(stand_ins, capsys):
  argv = ("--agent=fake", f"--env={FAKE_ENV}", "--replay=memory")
  assert "give --episodes or --steps" in refused(capsys, *argv)
  assert not list(stand_ins.glob("runs/*"))


def test_a_signal_in_the_last_episode_does_not_make_a_run_incomplete(stand_ins):
  assert launch("--episodes=3", "--output=out", "--set=signal_at_episode=3") == 0
  assert summary_of("out")["status"] == "finished"
  assert launch("--episodes=4", "--output=out2", "--set=signal_at_episode=3") == 130
  assert summary_of("out2")["status"] == "interrupted"


@pytest.mark.parametrize("flag", ["--help", "-h", "--helpshort"])
def test_help_shows_our_flags_and_no_others(capsys, flag):
  assert run.main([flag]) == 0
  text = capsys.readouterr().out
  shown = {line.split("=")[0].strip() for line in text.splitlines() if "  --" in line}
  shown = {line.split()[0] for line in shown if line.startswith("--")}
  assert {"--agent", "--env", "--set", "--seed", "--output", "--list_envs"} <= shown
  assert not {"--flagfile", "--undefok", "--logtostderr", "--helpxml"} & shown
  assert max(map(len, text.splitlines())) <= 88


def test_lists_agents_and_environments(stand_ins, capsys):
  assert run.main(["--list_agents"]) == 0
  assert "fake   a stand-in (no paper)\nother" in capsys.readouterr().out
  assert run.main(["--list_envs"]) == 0
  assert "bsuite:deep_sea/0" in capsys.readouterr().out


def test_help_loads_nothing_heavy():
  code = (
    "import sys; from explorax.experiments import run; run.main(['--help']);"
    "sys.exit(any(m in sys.modules for m in ('tensorflow', 'jax', 'matplotlib')))"
  )
  subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


@pytest.mark.parametrize(
  ("argv", "words"),
  [
    ([], "--agent is missing"),
    (["--agent=fake"], "--env is missing"),
    (["--agnt=fake"], "Did you mean --agent"),
    (["fake"], "'fake' is not a flag"),
    (["--agent=fak", f"--env={DEEP_SEA}"], "no agent 'fak'. Did you mean fake"),
    (["--agent=fake", "--env=bsuite:deep_see/0", "--replay=memory"], "deep_sea/0"),
    (["--agent=fake", "--env=pong", "--replay=memory"], "'pong'"),
  ],
)
def test_refuses_what_it_does_not_know(stand_ins, capsys, argv, words):
  assert words in refused(capsys, *argv)
  assert not list(
    stand_ins.glob("runs/*")
  )  # Nothing is left of a run that never began.


@pytest.mark.parametrize(
  ("argument", "words"),
  [
    ("--seed=one", "whole number"),
    ("--replay=disk", "memory|reverb"),
    ("--num_envs=2", "is for --runner=device and --runner=distributed"),
    ("--set=epsilon=0.1", "Did you mean exploration.epsilon"),
    ("--set=batch_size=1000", "below the batch size of 1000"),
    ("--seed=٣", "whole number"),
    ("--undefok=seed", "there is no flag --undefok"),
    ("--debug=maybe", "--debug is 'maybe'; it must be true or false"),
    ("--output=~nosuchuser/x", "home directory"),
  ],
)
def test_refuses_values_that_do_not_fit(stand_ins, capsys, argument, words):
  assert words in refused_launch(capsys, argument)
  assert not list(stand_ins.glob("runs/*"))


def test_debug_shows_where_an_error_arose(stand_ins, capsys):
  assert launch("--set=num_members=0", "--debug") == 2
  text = capsys.readouterr().err
  assert "Traceback" in text and "explorax: num_members is 0" in text


def test_says_what_to_do_without_reverb(stand_ins, capsys, monkeypatch):
  monkeypatch.delitem(sys.modules, "explorax.agents.replay.reverb", raising=False)
  monkeypatch.setitem(sys.modules, "reverb", None)  # Importing it fails.
  argv = ["--agent=fake", f"--env={FAKE_ENV}", "--episodes=1"]
  text = refused(capsys, *argv, "--replay=reverb")
  assert "explorax[reverb]" in text and "Python 3.11" in text
  assert "--replay=memory" in text
  assert launch("--episodes=1") == 0


def test_refuses_an_output_with_a_file_in_its_way(stand_ins, capsys):
  (stand_ins / "file").touch()
  for path in ("file", "file/out"):
    assert f"--output={path} " in refused_launch(capsys, f"--output={path}")


def test_refuses_an_output_that_cannot_be_written(stand_ins, capsys):
  (stand_ins / "locked").mkdir()
  os.chmod(stand_ins / "locked", 0o500)
  root = os.geteuid() == 0
  if root:  # Whom permissions do not stop.
    os.seteuid(65534)
  try:
    text = refused_launch(capsys, f"--output={stand_ins}/locked/out")
  finally:
    if root:
      os.seteuid(0)
  assert "cannot be written to (Permission denied)" in text


def test_mnist_without_its_data_is_refused(stand_ins, capsys, monkeypatch):
  monkeypatch.setenv("EXPLORAX_MNIST_DIR", str(stand_ins / "none"))
  argv = ("--agent=fake", "--env=bsuite:mnist/0", "--replay=memory")
  assert "MNIST files" in refused(capsys, *argv)


def test_a_loss_that_is_not_finite_keeps_the_last_good_weights(stand_ins, capsys):
  assert launch("--episodes=9", "--output=out", "--set=nan_at_episode=3") == 1
  captured = capsys.readouterr()
  assert captured.err == (
    "explorax: the loss is nan at environment step 30 (seed 0); the traceback is in "
    "out/error.txt.\n"
  )
  assert "last good weights are in out/checkpoints/final.npz" in captured.out
  assert pathlib.Path("out/checkpoints/final.npz").exists()
  summary = summary_of("out")
  assert (summary["status"], summary["episodes"]) == ("failed", 2)


def test_a_crash_keeps_its_traceback_and_what_was_recorded(stand_ins, capsys):
  assert launch("--episodes=9", "--output=out", "--set=crash_at_episode=3") == 1
  assert capsys.readouterr().err == (
    "explorax: RuntimeError: the environment broke; the traceback is in "
    "out/error.txt.\n"
  )
  lines = pathlib.Path("out/error.txt").read_text().splitlines()
  assert lines[0].startswith("Traceback") and lines[-1].startswith("RuntimeError")
  summary = summary_of("out")
  assert (summary["status"], summary["episodes"]) == ("failed", 2)
  assert pathlib.Path("out/curve.png").exists()


def test_a_full_disk_ends_the_run_with_a_sentence(stand_ins, capsys, small_disk):
  with small_disk(4096):
    code = launch("--episodes=1000", "--output=out")
  assert code == 1
  lines = capsys.readouterr().err.splitlines()
  assert lines and all(line.startswith("explorax: ") for line in lines)
  assert "could not be written (File too large)" in lines[0]
  rows = list(csv.reader(pathlib.Path("out/metrics.csv").read_text().splitlines()))
  assert len(rows) > 10 and {len(row) for row in rows} == {len(rows[0])}
  assert pathlib.Path("out/checkpoints/final.npz").exists()
  assert summary_of("out")["status"] == "failed"


_SUBPROCESS = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("stand_ins", sys.argv[1])
stand_ins = importlib.util.module_from_spec(spec)
sys.modules["stand_ins"] = stand_ins
spec.loader.exec_module(stand_ins)
for module, name, value in stand_ins.replacements():
  setattr(module, name, value)
from explorax.experiments import run
sys.exit(run.main(sys.argv[2:]))
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_a_run_cleanly(stand_ins, tmp_path, capsys, request, number):
  conftest = pathlib.Path(__file__).with_name("conftest.py")
  process = subprocess.Popen(
    [
      *(sys.executable, "-c", _SUBPROCESS, str(conftest)),
      *("--agent=fake", f"--env={FAKE_ENV}", "--replay=memory"),
      *("--episodes=100000", "--output=out", "--set=episode_seconds=0.02"),
    ],
    cwd=tmp_path,
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
    text=True,
    preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),  # `nohup` ignores one.
  )
  request.addfinalizer(process.kill)
  metrics = tmp_path / "out/metrics.csv"
  deadline = time.monotonic() + 120
  while not (metrics.exists() and metrics.read_text().count("\n") > 3):
    assert process.poll() is None and time.monotonic() < deadline
    time.sleep(0.05)
  in_use = f"is in use by another process ({process.pid})"
  assert in_use in refused_launch(capsys, f"--output={tmp_path / 'out'}")
  process.send_signal(number)
  out, err = process.communicate(timeout=60)
  assert process.returncode == 128 + number
  assert f"explorax: {number.name}: stopping and saving the results" in err
  assert "Traceback" not in err
  assert "interrupted" in out and "out/checkpoints/final.npz" in out
  summary = summary_of(tmp_path / "out")
  assert summary["status"] == "interrupted" and summary["episodes"] >= 3
  assert (tmp_path / "out/checkpoints/final.npz").exists()
