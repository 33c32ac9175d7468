"""Runs that are interrupted and resumed, through the real `main`."""

import csv
import json
import pathlib

import fakes
import numpy as np
import pytest

from explorax.experiments import checkpoint, run

SMALL = ("--set=hidden_sizes=8", "--set=min_replay_size=150", "--set=batch_size=4")
DEVICE = ("--agent=dqn", "--env=jax:deep_sea/4", "--runner=device", *SMALL)
OF_TIME = ("steps_per_second", "wall_seconds")


@pytest.fixture(autouse=True)
def _empty_directory(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)


def rows(directory: str, name: str = "metrics.csv") -> list[dict[str, str]]:
  with open(f"{directory}/{name}", newline="") as file:
    return [
      {k: v for k, v in row.items() if k not in OF_TIME} for row in csv.DictReader(file)
    ]


def weights(directory: str) -> dict[str, bytes]:
  with np.load(f"{directory}/checkpoints/final.npz") as file:
    names = set(file.files) - {checkpoint.EXTRA}
    return {name: file[name].tobytes() for name in names}


def summary(directory: str) -> dict:
  return json.loads(pathlib.Path(directory, "summary.json").read_text())


def assert_same(a: str, b: str) -> None:
  """The files of two runs are the same, except for times."""
  assert weights(a) == weights(b)
  assert rows(a) == rows(b)
  assert rows(a, "learner.csv") == rows(b, "learner.csv")
  name = "evaluation.csv"
  assert pathlib.Path(a, name).exists() == pathlib.Path(b, name).exists()
  if pathlib.Path(a, name).exists():
    assert rows(a, name) == rows(b, name)
  for name in (
    "env_steps",
    "episodes",
    "learner_updates",
    "policies",
    "evaluation_return",
  ):
    assert summary(a).get(name) == summary(b).get(name)


def uninterrupted_and_not(interrupted, argv: tuple[str, ...], *asked: int) -> None:
  """Runs a command as a whole and in parts, which must have the same results."""
  assert run.main([*argv, "--output=whole"]) == 0
  argv = (*argv, "--output=parts")
  for times in asked:
    assert interrupted(times, *argv) == 143
    assert summary("parts")["status"] == "interrupted"
  assert run.main(argv) == 0
  assert_same("whole", "parts")


def test_the_device_runner_resumes_bit_for_bit(interrupted, capsys):
  """Stopped while replay fills and after it; a finished run stays as it is."""
  argv = (*DEVICE, "--steps=450", "--eval_every=150", "--eval_episodes=1")
  argv = (*argv, "--log_every=50")
  uninterrupted_and_not(interrupted, argv, 1, 3)
  whole = summary("whole")
  assert whole["env_steps"] >= 450 and whole["episodes"] >= 112
  assert whole["learner_updates"] == whole["env_steps"] - 150
  assert whole["evaluation_episodes"] >= 1
  assert len(rows("whole", "learner.csv")) == 3  # At reports.
  found = rows("whole")
  assert [int(row["env_steps"]) for row in found[:3]] == [4, 8, 12]
  assert "bad_episode" in found[-1]
  assert "Resuming at environment step" in capsys.readouterr().out
  config = json.loads(pathlib.Path("parts/config.json").read_text())
  assert (config["runner"], config["replay"]) == ("device", "device")
  before = weights("parts")
  assert run.main([*argv, "--output=parts"]) == 0
  assert "is finished" in capsys.readouterr().out and weights("parts") == before


LOCAL = ("--env=jax:deep_sea/4", "--replay=memory", "--steps=60", "--eval_every=20")
TINY = ("--set=hidden_sizes=4", "--set=batch_size=2", "--set=min_replay_size=12")


@pytest.mark.parametrize(("num_envs", "asked"), [(1, (7, 25)), (3, (3, 6))])
def test_the_local_runner_resumes_with_new_episodes(
  interrupted, capsys, num_envs, asked
):
  """Nothing is lost or twice; other settings are refused, naming them."""
  argv = ("--agent=dqn", *LOCAL, *TINY, "--eval_episodes=1", "--log_every=9")
  argv = (*argv, f"--num_envs={num_envs}", "--output=parts")
  for times in asked:
    assert interrupted(times, *argv) == 143
    assert summary("parts")["status"] == "interrupted"
  assert run.main(argv) == 0
  after = summary("parts")
  assert (after["env_steps"], after["learner_updates"]) == (60, 60 - 12 + num_envs)
  steps = [int(row["env_steps"]) for row in rows("parts")]
  assert steps == sorted(steps)
  episodes = [int(row["episode"]) for row in rows("parts")]
  assert episodes == list(range(1, len(episodes) + 1))
  logged = [int(row["env_steps"]) for row in rows("parts", "learner.csv")]
  assert logged == [9, 18, 27, 36, 45, 54]
  evaluated = [int(row["env_steps"]) // 20 for row in rows("parts", "evaluation.csv")]
  assert evaluated == [1, 2, 3]
  capsys.readouterr()
  assert run.main([*argv, "--seed=1", "--set=learning_rate=0.5"]) == 2
  (other,) = capsys.readouterr().err.splitlines()
  assert "seed is 0 there, but 1 here" in other
  assert "config.learning_rate is 0.001 there, but 0.5 here" in other


def test_what_was_learnt_while_acting_resumes(interrupted):
  """Counts of the first part: without them, r_int of a new state would be larger."""
  argv = ("--agent=dqn_counts", "--env=jax:deep_sea/4", *TINY, "--output=out")
  argv = (*argv, "--steps=48", "--eval_episodes=0")
  assert interrupted(41, *argv) == 143
  before = float(rows("out")[-1]["intrinsic_return"])
  assert run.main(argv) == 0
  assert float(rows("out")[-1]["intrinsic_return"]) < 1.5 * before


def test_an_interrupted_last_evaluation_is_repeated(interrupted):
  argv = ("--agent=dqn", "--env=jax:deep_sea/4", *TINY, "--steps=30")
  argv = (*argv, "--eval_episodes=9", "--output=out")
  assert interrupted(45, *argv) == 143  # Asked after each step, also of evaluations.
  before = weights("out")
  assert run.main(argv) == 0
  assert weights("out") == before and summary("out")["evaluation_episodes"] == 9


def test_a_finished_run_is_extended():
  argv = ("--agent=dqn", "--env=jax:deep_sea/4", *TINY, "--output=parts")
  for steps in (30, 45, 62):  # In mid-episode, all of them.
    assert run.main([*argv, f"--steps={steps}"]) == 0
    assert summary("parts")["env_steps"] == steps
  assert summary("parts")["learner_updates"] == 62 - 11
  assert json.loads(pathlib.Path("parts/config.json").read_text())["steps"] == 62


seeds: list[int] = []


def seeded(seed: int) -> fakes.FakeEnvironment:
  seeds.append(seed)
  return fakes.fake()


def test_environments_get_other_seeds_when_a_run_resumes(interrupted):
  env = f"--env={__name__}:seeded"
  argv = ("--agent=dqn", env, *TINY, "--steps=60", "--eval_every=20", "--seed=7")
  seeds.clear()
  assert interrupted(20, *argv, "--output=out") == 143
  assert seeds[0] == 7 and len(set(seeds)) == 2
  used = set(seeds)
  for asked in (30, 40):
    seeds.clear()
    assert interrupted(asked, *argv, "--output=out") == 143
    new = set(seeds) - used
    assert len(new) == 2, "An environment, and that of evaluations."
    used |= new
  again, seeds[:] = set(used), []
  assert interrupted(20, *argv, "--output=again") == 143
  assert interrupted(30, *argv, "--output=again") == 143
  assert set(seeds) <= again, "They repeat with the run."


def test_bsuites_environments_start_an_episode(interrupted):
  env = "bsuite:deep_sea/0"
  argv = ("--agent=dqn", f"--env={env}", "--replay=memory", *TINY, "--output=out")
  assert interrupted(65, *argv, "--steps=120") == 143
  before = summary("out")
  assert run.main([*argv, "--steps=120"]) == 0
  after = summary("out")
  assert after["env_steps"] >= 120 and after["episodes"] > before["episodes"]
  found = rows("out")
  assert [int(row["episode"]) for row in found] == list(range(1, len(found) + 1))
  steps = [int(row["env_steps"]) for row in found]
  assert steps == sorted(set(steps))
  # bsuite's count of bad episodes resumes, and so does its file.
  bad = [float(row["total_bad_episodes"]) for row in found]
  assert bad == sorted(bad) and len(bad) - 1 <= bad[-1] <= len(bad)
  own = rows("out/bsuite", "bsuite_id_-_deep_sea-0.csv")
  assert [int(r["episode"]) for r in own] == sorted({int(r["episode"]) for r in own})


@pytest.mark.reverb
def test_reverb_keeps_its_windows_if_asked_to(interrupted):
  argv = ("--agent=dqn", "--env=jax:deep_sea/4", "--steps=60", *TINY, "--output=out")
  argv = (*argv, "--checkpoint_replay")
  assert interrupted(41, *argv) == 143
  assert summary("out")["learner_updates"] > 0
  assert run.main(argv) == 0
  # Had replay been empty, there would have been no updates for some steps.
  after = summary("out")
  assert after["learner_updates"] == after["env_steps"] - 11
