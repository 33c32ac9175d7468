"""Evaluation, videos and crashes through the real command line."""

import csv
import json
import pathlib
from typing import Any

import fakes
import numpy as np
import pytest

from explorax.experiments import run

Image = pytest.importorskip("PIL.Image")

OUT = pathlib.Path("out")


@pytest.fixture(autouse=True)
def _empty_directory(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)


def launch(env: str, *argv: str, agent: str = "dqn", learns: bool = False) -> int:
  """Runs small networks, which learn only if they are to: that takes seconds."""
  if ":" not in env:
    env = f"fakes:{env}"
  command = [f"--agent={agent}", f"--env={env}", "--replay=memory", "--output=out"]
  small = ("hidden_sizes=8", "batch_size=4", f"min_replay_size={16 if learns else 999}")
  return run.main([*command, *(f"--set={setting}" for setting in small), *argv])


def summary() -> dict[str, Any]:
  return json.loads((OUT / "summary.json").read_text())


def rows(name: str) -> list[dict[str, str]]:
  with open(OUT / name, newline="") as file:
    return list(csv.DictReader(file))


def videos() -> list[str]:
  return sorted(path.name for path in (OUT / "videos").iterdir())


def refused(capsys, env: str, *argv: str) -> str:
  assert launch(env, *argv) == 2
  text = capsys.readouterr().err
  assert text.startswith("explorax: ") and text.count("\n") == 1
  assert not OUT.exists()
  return text


def test_evaluations_are_written_down(capsys):
  argv = ("--steps=30", "--eval_every=12", "--eval_episodes=2")
  assert launch("fake_choice", *argv) == 0
  evaluated = rows("evaluation.csv")
  places = [(row["env_steps"], row["episode"]) for row in evaluated]
  assert places == [(steps, n) for steps in ("15", "25", "30") for n in "12"]
  assert {row["episode_length"] for row in evaluated} == {"5"}
  content = summary()
  assert (content["env_steps"], content["episodes"]) == (30, 6)
  means = {
    int(steps): np.mean(
      [float(row["episode_return"]) for row in evaluated if row["env_steps"] == steps]
    )
    for steps in ("15", "25", "30")
  }
  assert content["evaluation_return"] == means[30]
  assert [row["env_steps"] for row in rows("metrics.csv")] == [
    str(5 * n) for n in range(1, 7)
  ]
  (events,) = OUT.glob("events.out.tfevents.*")
  assert events.read_bytes().count(b"evaluation/return") == 3
  text = capsys.readouterr().out
  assert "Greedy policy: mean return" in text
  config = json.loads((OUT / "config.json").read_text())
  assert (config["eval_every"], config["eval_episodes"], config["video"]) == (
    12,
    2,
    False,
  )
  assert not (OUT / "videos").exists()


def test_a_video_of_the_last_evaluation():
  argv = ("--steps=20", "--eval_every=10", "--eval_episodes=2", "--video")
  assert launch("fake_drawn", *argv) == 0
  assert videos() == ["step_00000020.gif"]  # All are alike: none was better.
  with Image.open(OUT / "videos/step_00000020.gif") as video:
    assert video.n_frames == 6
    widths = []
    for index in range(6):
      video.seek(index)
      picture = np.asarray(video.convert("RGB"))
      widths.append(int((picture[60, :, 0] == 240).sum()))
  # 60 pixels drawn three times as wide, a fifth of them more at each step.
  assert picture.shape == (120, 180, 3)
  assert widths == [0, 36, 72, 108, 144, 180]


def test_no_video_of_what_has_no_picture(capsys):
  text = refused(capsys, "fake", "--steps=20", "--video")
  assert "'fakes:fake' has no picture" in text
  assert "render()" in text


def test_an_episode_without_an_end_is_left(capsys):
  """And what is learnt in it is logged, though no episode ends."""
  endless = f"{__name__}:endless"
  assert launch(endless, "--steps=50", "--log_every=20", learns=True) == 0
  (episode,) = rows("evaluation.csv")
  assert (episode["episode_length"], episode["left"]) == ("5000", "1")
  assert "1 of them left without an end" in capsys.readouterr().out
  assert not rows("metrics.csv")
  first, second = rows("learner.csv")
  assert (first["env_steps"], second["env_steps"]) == ("20", "40")
  assert float(second["loss"]) > 0 and float(second["epsilon"]) > 0
  assert float(second["learning_rate"]) > 0 and int(second["learner_updates"]) > 0
  (events,) = OUT.glob("events.out.tfevents.*")
  assert events.read_bytes().count(b"learner/epsilon") == 2


def endless() -> fakes.FakeEnvironment:
  return fakes.FakeEnvironment(episode_length=10**9)


def test_a_crash_ends_the_run_and_the_same_command_resumes_it(capsys):
  """Each process crashes at the eighth step of its environment."""
  argv = ("--episodes=3", "--checkpoint_every=5", "--eval_episodes=0")
  assert launch("fake_crashing", *argv) == 1
  (line,) = capsys.readouterr().err.splitlines()
  assert "RuntimeError: the emulator went away (fakes.py:" in line
  assert "environment step 7" in line and "error.txt" in line
  assert "RuntimeError" in (OUT / "error.txt").read_text()
  assert summary()["status"] == "failed" and summary()["episodes"] == 1
  assert (OUT / "checkpoints/final.npz").exists()
  assert launch("fake_crashing", *argv) == 1
  assert launch("fake_crashing", *argv) == 0
  assert [row["env_steps"] for row in rows("metrics.csv")] == ["5", "10", "15"]
  # There were no evaluations, and there is no trace of any.
  assert not (OUT / "evaluation.csv").exists() and "evaluation" not in summary()
