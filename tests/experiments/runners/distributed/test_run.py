"""Distributed runs from the command line, on one Ray for all: counts, kills, ends."""

import csv
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import explorax
from explorax.experiments import ray_cluster, run

psutil = pytest.importorskip("psutil")

MIN_SIZE, STEPS = 20, 300
COMMAND = (
  "--agent=dqn",
  "--runner=distributed",
  "--error_buffer=16",
  "--eval_episodes=0",
  f"--set=min_replay_size={MIN_SIZE}",
  "--set=replay_capacity=200",
  "--set=batch_size=4",
  "--set=hidden_sizes=4",
  "--set=updates_per_step=1",
  "--set=n_step=1",
)
OURS = ("Actor", "Learner", "Evaluator", "Memory", "Reverb", "Board")


@pytest.fixture(scope="module", autouse=True)
def ray_for_all():
  with ray_cluster.connect(None, 8):
    yield


def _ours_left():
  """Our processes that are there after a while."""

  def ours():
    names = []
    for process in psutil.Process().children(recursive=True):
      try:
        names.append(" ".join(process.cmdline()[:1]))
      except psutil.NoSuchProcess:
        continue
    return [name for name in names if name.endswith(tuple(f"{o}.run" for o in OURS))]

  until = time.monotonic() + 60
  while ours() and time.monotonic() < until:
    time.sleep(0.1)
  return ours()


def _run(directory, environment, *flags):
  env = f"--env=fakes:{environment}"
  return run.main([*COMMAND, env, f"--output={directory}", *flags])


def _rows(path):
  if not path.exists():
    return []
  with path.open(encoding="utf-8") as file:
    return list(csv.DictReader(file))


def _wait_for(condition):
  until = time.monotonic() + 300
  while not condition() and time.monotonic() < until:
    time.sleep(0.05)


def _in_thread(action):
  threading.Thread(target=action, daemon=True).start()


def _check_counted_once(rows):
  assert [int(row["episode"]) for row in rows] == list(range(1, len(rows) + 1))
  steps = [int(row["env_steps"]) for row in rows]
  assert steps == sorted(steps)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
  """The directory of a run of two actors and an evaluator."""
  directory = tmp_path_factory.mktemp("finished") / "run"
  flags = ("--num_actors=2", "--num_envs=3", "--replay_shards=2", f"--steps={STEPS}")
  flags += ("--replay=memory", "--eval_every=1000", "--eval_episodes=2")
  assert _run(directory, "fake", *flags) == 0
  return directory


def test_steps_and_episodes_are_counted_once(finished):
  summary = json.loads((finished / "summary.json").read_text())
  assert summary["status"] == "finished" and summary["env_steps"] >= STEPS
  rows = _rows(finished / "metrics.csv")
  _check_counted_once(rows)
  assert len(rows) == summary["episodes"]
  assert int(rows[-1]["env_steps"]) <= summary["env_steps"]
  # Whole episodes, of five steps each, and one under way in each of six environments.
  assert 2 * 3 * 5 > summary["env_steps"] - 5 * len(rows) >= 0
  assert {(row["episode_length"], row["episode_return"]) for row in rows} == {
    ("5", "5.0")
  }
  assert {row["actor"] for row in rows} == {"0", "1"}


def test_updates_keep_to_the_steps(finished):
  summary = json.loads((finished / "summary.json").read_text())
  due = summary["env_steps"] - MIN_SIZE + 1
  assert abs(summary["learner_updates"] - due) <= 16
  assert float(_rows(finished / "metrics.csv")[-1]["loss"]) > 0
  with np.load(finished / "checkpoints" / "final.npz") as weights:
    assert all(np.isfinite(weights[name]).all() for name in weights)


def test_the_end_is_evaluated(finished):
  summary = json.loads((finished / "summary.json").read_text())
  rows = _rows(finished / "evaluation.csv")
  assert [(row["env_steps"], row["episode_return"]) for row in rows] == [
    (str(summary["env_steps"]), "5.0")
  ] * 2


class Stops:
  """A callback that ends a run after some rows of its log."""

  rows = 0

  def on_log(self, row):
    self.rows += 1
    if self.rows == 2:
      raise explorax.StopTraining("two rows")


def test_a_callback_ends_a_run_which_the_driver_evaluates(tmp_path):
  flags = ("--num_actors=1", "--replay=memory", "--steps=1000000", "--log_every=40")
  flags += ("--eval_episodes=2", f"--callback={__name__}:Stops")
  assert _run(tmp_path / "run", "fake", *flags) == 0
  summary = json.loads((tmp_path / "run/summary.json").read_text())
  assert (summary["status"], summary["stop_reason"]) == ("finished", "two rows")
  assert summary["env_steps"] < 1_000_000 and summary["evaluation_return"] == 5.0
  evaluated = [row["env_steps"] for row in _rows(tmp_path / "run/evaluation.csv")]
  assert evaluated == [str(summary["env_steps"])] * 2
  logged = _rows(tmp_path / "run/learner.csv")
  assert len(logged) >= 2 and all(float(row["epsilon"]) > 0 for row in logged)
  processes = json.loads((tmp_path / "run/processes.json").read_text())
  assert "learner" in processes and "evaluator" not in processes


def test_a_run_leaves_files_and_no_process(finished):
  assert (finished / "curve.png").exists() and not _ours_left()
  pids = json.loads((finished / "processes.json").read_text())
  roles = ("replay 0", "replay 1", "learner", "actor 0", "actor 1", "evaluator")
  assert set(pids) == {"driver", "board", *roles}
  assert len(set(pids.values())) == len(pids) and pids["driver"] == os.getpid()


def _pids(directory, roles):
  try:
    pids = json.loads((directory / "processes.json").read_text())
  except FileNotFoundError:
    pids = {}
  return [pids.get(role) for role in roles]


def _wait_for_rows(directory):
  before = len(_rows(directory / "metrics.csv"))
  _wait_for(lambda: len(_rows(directory / "metrics.csv")) >= before + 3)


def _kill(directory, *roles):
  """Kills processes of a run that is at work."""
  _wait_for(lambda: all(_pids(directory, roles)))
  _wait_for_rows(directory)
  before = _pids(directory, roles)
  for pid in before:
    os.kill(pid, signal.SIGKILL)
  return before


def _kill_all(directory):
  """Kills each process, at last the board; the others are replaced before."""
  # Replay dies beside a learner that lives, and the learner beside replay.
  for roles in (("evaluator", "replay 0"), ("actor 0", "learner")):
    before = _kill(directory, *roles)
    _wait_for(
      lambda roles=roles, before=before: not set(before) & set(_pids(directory, roles))
    )
  _kill(directory, "board")


REPLAY = "reverb" if importlib.util.find_spec("reverb") else "memory"
FAULTS = (
  "--num_actors=1",
  "--eval_every=20",
  "--eval_episodes=1",
  "--checkpoint_every=20",
  "--episodes=1000000",
)


@pytest.fixture(scope="module")
def survivor(tmp_path_factory):
  """(flags, directory) of a run each of whose processes was killed."""
  directory = tmp_path_factory.mktemp("survivor") / "run"
  flags = (*FAULTS, f"--replay={REPLAY}")
  _in_thread(lambda: _kill_all(directory))
  assert _run(directory, "fake", *flags) == 1
  assert not _ours_left()
  return flags, directory


def test_a_process_that_is_killed_is_replaced_and_the_board_ends_the_run(survivor):
  _, directory = survivor
  summary = json.loads((directory / "summary.json").read_text())
  assert summary["status"] == "failed"
  roles = ("actor", "learner", "replay", "evaluator")
  assert summary["replacements"] == dict.fromkeys(roles, 1)
  assert "the board" in (directory / "error.txt").read_text()
  rows = _rows(directory / "metrics.csv")
  _check_counted_once(rows)
  assert len(rows) == summary["episodes"]
  at = [int(row["env_steps"]) for row in _rows(directory / "evaluation.csv")]
  assert at == sorted(set(at))


def test_the_same_command_resumes_and_ctrl_c_ends_it(survivor, capsys):
  flags, directory = survivor

  def stop():
    _wait_for(lambda: _pids(directory, ["driver"]) and _pids(directory, ["learner"])[0])
    _wait_for_rows(directory)
    os.kill(os.getpid(), signal.SIGINT)

  (newest,) = sorted((directory / "checkpoints").glob("step_*"))[-1:]
  steps = int(newest.name.split("_")[1])
  _in_thread(stop)
  assert _run(directory, "fake", *flags) == 130
  assert f"Resuming at environment step {steps:,}" in capsys.readouterr().out
  rows = _rows(directory / "metrics.csv")
  _check_counted_once(rows)
  summary = json.loads((directory / "summary.json").read_text())
  assert summary["env_steps"] > steps and summary["status"] == "interrupted"
  assert (directory / "checkpoints" / f"step_{summary['env_steps']:012d}").is_dir()
  assert not _ours_left()


@pytest.mark.parametrize(
  "environment, culprit", [("fake_crashing", "actor 0"), ("no_such_thing",) * 2]
)
def test_a_run_that_fails_says_why_in_a_line(tmp_path, capsys, environment, culprit):
  flags = ("--num_actors=1", "--steps=1000000", "--max_env_failures=0")
  assert _run(tmp_path / "run", environment, "--replay=memory", *flags) in (1, 2)
  lines = [line for line in capsys.readouterr().err.splitlines() if culprit in line]
  assert len(lines) == 1 and lines[0].startswith("explorax: ")
  assert not _ours_left()


@pytest.mark.parametrize("server", ["gcs_server", "raylet"])
def test_a_run_whose_ray_dies_ends_with_a_line(server, tmp_path):
  argv = [*COMMAND, "--env=fakes:fake", "--replay=memory"]
  process = subprocess.Popen(
    [
      *(sys.executable, "-m", "explorax.experiments.run", *argv),
      *("--steps=1000000", f"--output={tmp_path}/run"),
    ],
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
    text=True,
  )
  _wait_for(lambda: _rows(tmp_path / "run/metrics.csv") or process.poll() is not None)
  children = psutil.Process(process.pid).children()
  (victim,) = (child for child in children if child.name() == server)
  victim.kill()
  out, err = process.communicate(timeout=60)
  assert process.returncode == 1 and "(raylet)" not in out
  # Ray's C++ may log an error that reaches no one any more.
  lines = [x for x in err.splitlines() if not re.match(r"\[\d{4}-\S+ \S+ E \d+", x)]
  assert len(lines) == 1 and lines[0].startswith("explorax: ") and server in err
