"""Distributed runs from the command line, on one Ray for all: counts, kills, ends."""

import csv
import io
import json
import os
import signal
import threading
import time

import numpy as np
import pytest

from explorax.experiments import ray_cluster, run
from explorax.experiments.runners.distributed import failures

pytest.importorskip("ray")
psutil = pytest.importorskip("psutil")

MIN_SIZE, STEPS = 20, 300
COMMAND = (
  "--agent=dqn",
  "--runner=distributed",
  "--error_buffer=16",
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
  env = f"--env=explorax.environments.testing:{environment}"
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
  assert [int(row["episode"]) for row in rows] == list(range(1, len(rows) + 1))
  assert len(rows) == summary["episodes"]
  steps = [int(row["env_steps"]) for row in rows]
  assert steps == sorted(steps) and steps[-1] <= summary["env_steps"]
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


def test_a_run_leaves_files_and_no_process(finished):
  assert (finished / "curve.png").exists() and not _ours_left()
  pids = json.loads((finished / "processes.json").read_text())
  roles = ("replay 0", "replay 1", "learner", "actor 0", "actor 1", "evaluator")
  assert set(pids) == {"driver", "board", *roles}
  assert len(set(pids.values())) == len(pids) and pids["driver"] == os.getpid()


def _kill_in_turn(directory, groups):
  """Kills the processes of a group, the next once they were replaced; then Ctrl-C."""
  metrics = directory / "metrics.csv"

  def pids(roles):
    try:
      found = json.loads((directory / "processes.json").read_text())
    except FileNotFoundError:
      found = {}
    return [found.get(role) for role in roles]

  def wait_for_rows():
    before = len(_rows(metrics))
    _wait_for(lambda: len(_rows(metrics)) >= before + 3)

  for roles in groups:
    _wait_for(lambda roles=roles: all(pids(roles)))
    wait_for_rows()
    before = pids(roles)
    for pid in before:
      os.kill(pid, signal.SIGKILL)
    _wait_for(
      lambda roles=roles, before=before: (
        all(pids(roles)) and not set(before) & set(pids(roles))
      )
    )
  wait_for_rows()
  os.kill(os.getpid(), signal.SIGINT)


FAULTS = (
  "--num_actors=1",
  "--eval_every=100",
  "--eval_episodes=1",
  "--checkpoint_every=20",
  "--episodes=1000000",
)


@pytest.fixture(scope="module")
def survivor(tmp_path_factory):
  """(directory, stderr's lines) of a run each of whose processes was killed."""
  directory = tmp_path_factory.mktemp("survivor") / "run"
  # Replay dies beside a learner that lives, and the learner beside replay.
  groups = (("evaluator", "replay 0"), ("actor 0", "learner"), ("board",))
  _in_thread(lambda: _kill_in_turn(directory, groups))
  said = io.StringIO()
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr("sys.stderr", said)
    assert _run(directory, "fake", *FAULTS) == 130
  assert not _ours_left()
  return directory, said.getvalue().splitlines()


@pytest.mark.reverb
def test_each_process_that_is_killed_is_replaced(survivor):
  directory, said = survivor
  summary = json.loads((directory / "summary.json").read_text())
  roles = ("actor", "learner", "replay", "evaluator", "board")
  assert summary["replacements"] == dict.fromkeys(roles, 1)
  for role, remedy in (
    ("actor 0", "Ray restarted it, and drops its unfinished episodes"),
    ("learner", "Ray restarted it from the checkpoint of environment step"),
    ("replay 0", "Ray restarted it empty; learning waits"),
    ("evaluator", "Ray restarted it"),
    ("board", "Ray restarted it"),
  ):
    (line,) = [line for line in said if line.startswith(f"explorax: {role} died")]
    assert remedy in line


@pytest.mark.reverb
def test_after_kills_no_row_is_there_twice(survivor):
  directory, _ = survivor
  summary = json.loads((directory / "summary.json").read_text())
  rows = _rows(directory / "metrics.csv")
  assert [int(row["episode"]) for row in rows] == list(range(1, len(rows) + 1))
  assert len(rows) == summary["episodes"]
  steps = [int(row["env_steps"]) for row in rows]
  assert steps == sorted(steps)
  at = [int(row["env_steps"]) for row in _rows(directory / "evaluation.csv")]
  assert at == sorted(set(at)) and at


@pytest.mark.reverb
def test_the_same_command_resumes(survivor, capsys):
  directory, _ = survivor
  metrics = directory / "metrics.csv"
  before = _rows(metrics)
  summary = json.loads((directory / "summary.json").read_text())

  def stop():
    _wait_for(lambda: len(_rows(metrics)) >= len(before) + 3)
    os.kill(os.getpid(), signal.SIGTERM)

  _in_thread(stop)
  assert _run(directory, "fake", *FAULTS) == 143
  assert f"Resuming at environment step {summary['env_steps']:,}" in (
    capsys.readouterr().out
  )
  rows = _rows(metrics)
  assert rows[: len(before)] == before and len(rows) > len(before)
  assert [int(row["episode"]) for row in rows] == list(range(1, len(rows) + 1))
  assert int(rows[len(before)]["env_steps"]) > summary["env_steps"]
  after = json.loads((directory / "summary.json").read_text())
  assert after["learner_updates"] >= summary["learner_updates"]
  assert after["replacements"] == summary["replacements"]
  assert not _ours_left()


def test_an_environment_that_hangs_is_replaced(tmp_path, capsys):
  directory = tmp_path / "run"

  def stop():
    _wait_for(lambda: len(_rows(directory / "metrics.csv")) >= 3)
    os.kill(os.getpid(), signal.SIGINT)

  _in_thread(stop)
  flags = ("--num_actors=1", "--episodes=1000000", "--environment_timeout=2")
  assert _run(directory, "fake_hanging", "--replay=memory", *flags) == 130
  said = capsys.readouterr().err
  assert "actor 0 ended itself because its environment did not answer for" in said
  assert "(--environment_timeout); Ray restarted it" in said
  summary = json.loads((directory / "summary.json").read_text())
  assert set(summary["replacements"]) == {"actor"}


@pytest.mark.parametrize(
  "environment, sentence",
  [
    ("fake_crashing", "actor 0 stopped: the environment of training failed after 2"),
    ("no_such_thing", "no_such_thing"),
  ],
)
def test_a_run_that_fails_says_why_in_a_sentence(
  tmp_path, capsys, environment, sentence
):
  flags = ("--num_actors=1", "--steps=1000000", "--max_env_failures=0")
  assert _run(tmp_path / "run", environment, "--replay=memory", *flags) in (1, 2)
  lines = [x for x in capsys.readouterr().err.splitlines() if sentence in x]
  assert len(lines) == 1 and lines[0].startswith("explorax: ")
  assert not _ours_left()


def test_a_constructor_that_fails_says_why():
  import ray

  class Fails:
    def __init__(self):
      raise ValueError("no such game")

    def run(self):
      pass

  process = ray.remote(Fails).options(num_cpus=0, max_restarts=-1).remote()
  with pytest.raises(ray.exceptions.RayActorError) as told:
    ray.get(process.run.remote())
  stopped = failures.stopped("actor 3", told.value, [None])
  assert str(stopped) == "the process of actor 3 failed: ValueError: no such game"
