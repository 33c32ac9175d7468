"""Runs that are interrupted and resumed, through the real `main`."""

import csv
import json
import pathlib
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from explorax.experiments import checkpoint, config, parts, run

DEEP_SEA = ("--agent=dqn", "--env=jax:deep_sea/4", "--set=hidden_sizes=4")
TINY = ("--set=hidden_sizes=4", "--set=batch_size=2", "--set=min_replay_size=12")


@pytest.fixture(autouse=True)
def _empty_directory(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)


def rows(directory: str, name: str = "metrics.csv") -> list[dict[str, str]]:
  of_time = ("steps_per_second", "wall_seconds")
  with open(f"{directory}/{name}", newline="") as file:
    return [
      {k: v for k, v in row.items() if k not in of_time} for row in csv.DictReader(file)
    ]


def numbers(directory: str, column: str, name: str = "metrics.csv") -> list[int]:
  return [int(row[column]) for row in rows(directory, name)]


def weights(directory: str) -> dict[str, bytes]:
  with np.load(f"{directory}/checkpoints/final.npz") as file:
    names = set(file.files) - {checkpoint.EXTRA}
    return {name: file[name].tobytes() for name in names}


def summary(directory: str) -> dict:
  return json.loads(pathlib.Path(directory, "summary.json").read_text())


def test_the_device_runner_resumes_bit_for_bit(interrupted, capsys):
  """Two seeds, stopped while replay fills and in a first, shorter run's evaluation.

  Each leaves what it does alone; but the last digits of sums over a batch depend on how
  XLA has laid it out. With a limit of episodes there are reports every 100 steps.
  """
  argv = (*DEEP_SEA, "--runner=device", "--set=batch_size=4", "--log_every=50")
  argv = (*argv, "--set=min_replay_size=150", "--eval_episodes=1", "--episodes=999")
  longer = (*argv, "--steps=450")
  assert run.main([*longer, "--seed=2", "--output=alone"]) == 0
  seeds = ("--seed=1", "--seeds=2")
  assert run.main([*longer, *seeds, "--output=whole"]) == 0
  for asked in (1, 2):  # With memory for fewer steps.
    part = (*argv, "--steps=250", *seeds, "--output=parts")
    assert interrupted(asked, *part) == 143
  assert summary("parts/seed1")["env_steps"] == 250
  argv = (*longer, *seeds, "--output=parts")
  assert run.main(argv) == 0
  assert "Resuming at environment step" in capsys.readouterr().out
  for seed in ("seed1", "seed2"):
    whole, resumed = f"whole/{seed}", f"parts/{seed}"
    assert weights(whole) == weights(resumed)
    for name in ("metrics.csv", "learner.csv", "evaluation.csv"):
      assert rows(whole, name) == rows(resumed, name)
    for name in ("env_steps", "episodes", "learner_updates", "evaluation_return"):
      assert summary(whole)[name] == summary(resumed)[name]
  assert rows("whole/seed1") != rows("whole/seed2")
  for row, other in zip(rows("whole/seed2"), rows("alone"), strict=True):
    for name, value in other.items():
      is_sum = name in ("loss", "q", "td_error") and value
      same = pytest.approx(float(value), rel=1e-5) if is_sum else value
      assert (float(row[name]) if is_sum else row[name]) == same, name
  end = summary("alone")
  assert (end["env_steps"], end["learner_updates"]) == (450, 300)
  assert numbers("alone", "env_steps")[:3] == [4, 8, 12]


def test_the_local_runner_resumes_with_new_episodes(interrupted, capsys):
  """Nothing is lost or twice, bsuite's files included; a finished run is extended."""
  argv = ("--agent=dqn", "--env=bsuite:deep_sea/0", "--replay=memory", *TINY)
  argv = (*argv, "--eval_every=20", "--eval_episodes=1", "--log_every=9")
  argv = (*argv, "--output=parts")
  for times in (7, 25):
    assert interrupted(times, *argv, "--steps=60") == 143
    assert summary("parts")["status"] == "interrupted"
  for steps in (60, 75):
    assert run.main([*argv, f"--steps={steps}"]) == 0
    after = summary("parts")
    assert (after["env_steps"], after["learner_updates"]) == (steps, steps - 11)
  steps, episodes = numbers("parts", "env_steps"), numbers("parts", "episode")
  assert steps == sorted(set(steps)) and episodes == [*range(1, len(steps) + 1)]
  logged = numbers("parts", "env_steps", "learner.csv")
  assert logged == [9, 18, 27, 36, 45, 54, 63, 72]
  evaluated = numbers("parts", "env_steps", "evaluation.csv")
  assert [steps // 20 for steps in evaluated] == [1, 2, 3, 3]
  # bsuite's count of bad episodes resumes, and so does its file.
  bad = [float(row["total_bad_episodes"]) for row in rows("parts")]
  assert bad == sorted(bad) and len(bad) - 1 <= bad[-1] <= len(bad)
  of_bsuite = numbers("parts/bsuite", "episode", "bsuite_id_-_deep_sea-0.csv")
  assert of_bsuite == sorted(set(of_bsuite))
  capsys.readouterr()
  assert run.main([*argv, "--steps=75", "--seed=1", "--set=learning_rate=0.5"]) == 2
  (other,) = capsys.readouterr().err.splitlines()
  assert "seed is 0 there, but 1 here" in other
  assert "config.learning_rate is 0.001 there, but 0.5 here" in other


def test_what_was_learnt_while_acting_resumes(interrupted):
  """Counts of the first part: without them, r_int of a new state would be larger."""
  argv = ("--agent=dqn_counts", *DEEP_SEA[1:], "--output=out")
  argv = (*argv, "--steps=48", "--eval_episodes=0", "--num_envs=3")
  assert interrupted(13, *argv) == 143
  before = float(rows("out")[-1]["intrinsic_return"])
  assert run.main(argv) == 0
  assert float(rows("out")[-1]["intrinsic_return"]) < 1.5 * before


@pytest.mark.reverb
def test_reverb_keeps_its_windows_if_asked_to(interrupted):
  argv = (*DEEP_SEA, "--steps=60", *TINY, "--output=out")
  argv = (*argv, "--replay=reverb", "--checkpoint_replay")
  assert interrupted(41, *argv) == 143
  assert summary("out")["learner_updates"] > 0
  assert run.main(argv) == 0
  # Had replay been empty, there would have been no updates for some steps.
  after = summary("out")
  assert after["learner_updates"] == after["env_steps"] - 11


def test_environments_get_other_seeds_when_a_run_resumes(monkeypatch):
  seeds: list[int] = []
  make = parts.environments.make
  monkeypatch.setattr(
    parts.environments,
    "make",
    lambda name, *, seed: seeds.append(seed) or make(name, seed=seed),
  )
  settings = config.RunConfig(
    agent="dqn", env="jax:chain/4", seed=7, steps=9, eval_every=3
  )
  for resumed_at in (0, 20, 30, 20):
    with parts.opened(settings, resumed_at=resumed_at):
      pass
  assert seeds[0] == 7 and len(set(seeds[:6])) == 6
  assert seeds[6:] == seeds[2:4], "They repeat with the run."


def test_a_killed_process_leaves_a_run_that_resumes(interrupted, capsys, request):
  """While it lives, no other process has its directory."""
  argv = (*DEEP_SEA, *TINY, "--steps=2000000000", "--checkpoint_every=40")
  argv = (*argv, "--output=out")
  command = [sys.executable, "-P", "-m", "explorax.experiments.run", *argv]
  process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
  request.addfinalizer(process.kill)
  while len([*pathlib.Path("out/checkpoints").glob("step_*")]) < 2:
    assert process.poll() is None
    time.sleep(0.05)
  assert run.main(argv) == 2
  assert "is in use by another process" in capsys.readouterr().err
  process.kill()
  assert process.wait() == -signal.SIGKILL
  assert interrupted(30, *argv) == 143
  steps, episodes = numbers("out", "env_steps"), numbers("out", "episode")
  assert "Resuming at environment step" in capsys.readouterr().out
  assert steps == sorted(set(steps)) and episodes == [*range(1, len(steps) + 1)]
