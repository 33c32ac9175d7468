"""Distributed runs from the command line, on one Ray for all: counts, kills, ends."""

import contextlib
import csv
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import psutil
import pytest

from explorax.experiments import processes, run

pytest.importorskip("ray")

MIN_SIZE = 20
COMMAND = (
  "--agent=dqn",
  "--env=jax:catch",
  "--runner=distributed",
  "--num_actors=2",
  "--eval_episodes=1",
  f"--set=min_replay_size={MIN_SIZE}",
  "--set=replay_capacity=200",
  "--set=batch_size=4",
  "--set=hidden_sizes=4",
  "--set=updates_per_step=1",
  "--set=n_step=1",
)
LENGTH = 9  # Steps of an episode of Catch.


@pytest.fixture(scope="module", autouse=True)
def ray_for_all():
  with processes.connect(None, 8):
    yield


def _run(directory, *flags):
  return run.main([*COMMAND, f"--output={directory}", *flags])


def _rows(path):
  if not path.exists():
    return []
  with path.open(encoding="utf-8") as file:
    return list(csv.DictReader(file))


def _wait_for(condition):
  until = time.monotonic() + 300
  while not condition() and time.monotonic() < until:
    time.sleep(0.05)


def _actors():
  """The processes that act."""
  actors = []
  for child in psutil.Process().children(recursive=True):
    with contextlib.suppress(psutil.NoSuchProcess):  # It has just ended.
      if "ray::RolloutActor" in " ".join(child.cmdline()[:1]):
        actors.append(child)
  return actors


def _check(directory, num_steps):
  """Each step and each episode is counted once."""
  summary = json.loads((directory / "summary.json").read_text())
  assert (summary["status"], summary["env_steps"]) == ("finished", num_steps)
  rows = _rows(directory / "metrics.csv")
  assert [int(row["episode"]) for row in rows] == list(range(1, len(rows) + 1))
  assert len(rows) == summary["episodes"]
  steps = [int(row["env_steps"]) for row in rows]
  assert steps == sorted(steps) and steps[-1] <= num_steps
  assert {row["episode_length"] for row in rows} == {str(LENGTH)}
  assert {row["actor"] for row in rows} == {"0", "1"}
  return summary


def test_steps_episodes_updates_and_evaluations_are_counted_once(tmp_path):
  directory, num_steps = tmp_path / "run", 300
  assert (
    _run(directory, f"--steps={num_steps}", "--num_envs=3", "--eval_every=100") == 0
  )
  summary = _check(directory, num_steps)
  # Whole episodes, and one under way in each of six environments.
  assert 0 <= num_steps - LENGTH * summary["episodes"] < 6 * LENGTH
  # One for each step after the first ones, which may end within a slice.
  assert 0 <= summary["learner_updates"] - (num_steps - MIN_SIZE) < 70
  evaluated = [int(row["env_steps"]) for row in _rows(directory / "evaluation.csv")]
  assert evaluated == sorted(set(evaluated)) and evaluated[-1] == num_steps
  _wait_for(lambda: not _actors())  # Ray's processes end after the run.
  assert not _actors()


def test_an_actor_that_is_killed_is_replaced(tmp_path, capsys):
  directory, num_steps = tmp_path / "run", 3000

  def kill():
    _wait_for(lambda: len(_rows(directory / "metrics.csv")) > 3)
    for actor in _actors():  # One may not have answered yet.
      actor.kill()

  threading.Thread(target=kill, daemon=True).start()
  assert _run(directory, f"--steps={num_steps}") == 0
  _check(directory, num_steps)
  assert "died" in capsys.readouterr().err


def test_the_same_command_resumes_a_run_whose_process_was_killed(tmp_path, capsys):
  directory, num_steps = tmp_path / "run", 3000
  flags = (f"--steps={num_steps}", "--checkpoint_every=500", "--checkpoint_replay")
  command = (sys.executable, "-m", "explorax.experiments.run", *COMMAND, *flags)
  with subprocess.Popen([*command, f"--output={directory}"]) as process:
    _wait_for(lambda: list(directory.glob("checkpoints/step_*[1-9]*")))
    os.kill(process.pid, signal.SIGKILL)
  assert _run(directory, *flags) == 0
  assert "Resuming at environment step" in capsys.readouterr().out
  _check(directory, num_steps)


@pytest.mark.parametrize(
  ("in_step", "in_make", "named"),
  [
    ("sys.exit('no power')", "pass", "SystemExit: no power (broken.py:15)"),
    ("pass", "raise RuntimeError('no power')", "RuntimeError: no power (broken.py:19)"),
    ("os._exit(1)", "pass", "died"),  # Another actor would do the same.
  ],
)
def test_an_environment_that_fails_from_the_start_ends_the_run(
  tmp_path, capsys, monkeypatch, in_step, in_make, named
):
  (tmp_path / "broken.py").write_text(
    textwrap.dedent(f"""
      import os
      import sys

      import gymnasium

      class Broken(gymnasium.Env):
        observation_space = gymnasium.spaces.Box(0.0, 1.0, (2,))
        action_space = gymnasium.spaces.Discrete(2)

        def reset(self, seed=None, options=None):
          return self.observation_space.sample(), {{}}

        def step(self, action):
          {in_step}

      def make(seed):
        if os.getpid() != {os.getpid()}:
          {in_make}
        return Broken()
      """)
  )
  monkeypatch.syspath_prepend(tmp_path)
  assert _run(tmp_path / "run", "--env=broken:make", "--steps=100") == 1
  (line,) = capsys.readouterr().err.splitlines()
  assert "actor" in line and named in line
